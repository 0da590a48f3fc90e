import { fstatSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { codeOf } from '@svc/core'
import type { ServerChoice } from '@svc/core/contracts'
import { svcHome } from '@svc/core/config'
import type { ChatBody } from '@svc/wire'
import { localPartner } from './chat-local.ts'
import type { Partner } from './chat-partner.ts'
import { remotePartner } from './chat-remote.ts'
import { jsonScreen } from './chat-screen.ts'
import { converse, oneShot } from './chat-talk.ts'
import { failureEvent } from './chat-turn.ts'
import { isUsage, nothingToSay } from './errors.ts'
import { createServerClient } from './server-client.ts'
import { serverUrl } from './which-server.ts'

/** What `svc chat` was asked. */
export interface ChatOptions extends ServerChoice {
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

/** `svc chat`; resolves with the exit code: 1 when the turn failed, 130 when it was interrupted. */
export async function chat(options: ChatOptions): Promise<number> {
  try {
    const interactive = options.message === undefined && process.stdin.isTTY === true
    const message = interactive ? '' : await messageOf(options.message)
    await using partner = await partnerOf(options)
    if (interactive) return await converse(partner, askOf(options), options.json, svcHome())
    return await oneShot(partner, { message, ...askOf(options) }, options.json)
  } catch (error) {
    // who reads events reads this one too, whatever failed before the first
    if (!options.json || isUsage(codeOf(error))) throw error
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
async function partnerOf(options: ChatOptions): Promise<Partner> {
  const own = options.local || [options.config, options.profile, options.mode].some(word => word !== undefined)
  const url = await serverUrl({ ...options, local: own })
  return url === undefined
    ? localPartner(definedOf({ config: options.config, profile: options.profile, mode: options.mode, debug: options.debug }))
    : remotePartner(createServerClient(url, new AbortController().signal))
}

const askOf = ({ conversation, provider, model, temperature, maxTokens, tools }: ChatOptions): Omit<ChatBody, 'message'> =>
  definedOf({ conversation_id: conversation, provider, model, temperature, max_tokens: maxTokens, tools })

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
const definedOf = <T extends object>(values: T): Defined<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>
