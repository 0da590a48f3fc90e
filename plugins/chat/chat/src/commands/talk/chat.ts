import { fstatSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { CommandContext, ServerChoice } from '@svc/core/contracts'
import type { ChatBody } from '@svc/api-types'
import { nothingToSay } from '../errors.ts'
import { localPartner } from './local.ts'
import type { Partner } from './partner.ts'
import { remotePartner } from './remote.ts'
import { jsonScreen } from './screen.ts'
import { converse, oneShot } from './talk.ts'
import { failureEvent } from './turn.ts'

/** What `svc chat` was asked. */
interface ChatOptions extends ServerChoice {
  readonly message?: string | undefined
  readonly profile?: string | undefined
  readonly mode?: string | undefined
  readonly debug: boolean
  readonly json: boolean
  readonly conversation?: string | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
  readonly tools?: readonly string[] | undefined
}

/** `svc chat`; resolves with the exit code: 1 when the turn failed, 130 when it was interrupted. Throws MESSAGE_MISSING. */
export async function chat(command: CommandContext, options: ChatOptions): Promise<number> {
  const interactive = options.message === undefined && process.stdin.isTTY === true
  const message = interactive ? '' : await messageOf(options.message)
  try {
    const partner = await partnerOf(command, options)
    if (interactive) return await converse(partner, askOf(options), options.json, command)
    return await oneShot(partner, { message, ...askOf(options) }, options.json, command.signal)
  } catch (error) {
    if (!options.json) throw error
    // a program that reads events reads this one too, whatever failed before the first
    jsonScreen().show(failureEvent(error))
    return 1
  }
}

/** What was said on the line, and below it what came through a pipe. */
async function messageOf(given: string | undefined): Promise<string> {
  const piped = given === undefined || isPiped() ? (await text(process.stdin)).trimEnd() : ''
  const message = [given, piped].filter(Boolean).join('\n\n')
  if (message.trim() === '') throw nothingToSay()
  return message
}

// A program that starts this one often leaves a socket open there that never ends: beside an argument only a shell's pipe or a file speaks.
function isPiped(): boolean {
  const stat = fstatSync(0)
  return stat.isFIFO() || stat.isFile()
}

/** A server that was named, else the one that runs, else a host of its own. What is a server's for all its clients (profile, mode) takes a host of its own. */
async function partnerOf(command: CommandContext, options: ChatOptions): Promise<Partner> {
  const { url, port, config, debug, profile, mode } = options
  const selection = definedOf({ profile, mode })
  const isOwn = Object.keys(selection).length > 0
  const server = await command.server({ url, port, config, local: options.local || isOwn })
  return server ? remotePartner(server) : localPartner(command, { debug, ...(isOwn ? { settings: { selection } } : {}) })
}

const askOf = ({ conversation, provider, model, temperature, maxTokens, tools }: ChatOptions): Omit<ChatBody, 'message'> =>
  definedOf({ conversation_id: conversation, provider, model, temperature, max_tokens: maxTokens, tools })

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
const definedOf = <T extends object>(values: T): Defined<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>
