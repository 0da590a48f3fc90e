import { fstatSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { codeOf } from '@svc/core'
import { reachServer } from '@svc/core/processes'
import type { ChatBody } from '@svc/wire'
import { localPartner } from './chat-local.ts'
import type { Partner } from './chat-partner.ts'
import { remotePartner } from './chat-remote.ts'
import { createScreen } from './chat-screen.ts'
import { converse, oneShot } from './chat-talk.ts'
import { nothingToSay } from './errors.ts'
import { svcHome } from '@svc/core/config'

/** What `svc chat` was asked. */
export interface ChatOptions {
  readonly message?: string | undefined
  readonly url?: string | undefined
  readonly port?: number | undefined
  /** A host of its own, whatever runs. */
  readonly local: boolean
  readonly config?: string | undefined
  readonly profile?: string | undefined
  readonly mode?: string | undefined
  readonly debug: boolean
  readonly json: boolean
  readonly conversation?: string | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly temperature?: number | undefined
  readonly maxTokens?: number | undefined
}

/** `svc chat`; resolves with the exit code: 1 when the turn failed, 130 when it was interrupted. */
export async function chat(options: ChatOptions): Promise<number> {
  const interactive = options.message === undefined && process.stdin.isTTY === true
  const message = interactive ? '' : await messageOf(options.message)
  const screen = createScreen(options.json)
  await using partner = await partnerOf(options)
  if (interactive) return await converse(partner, askOf(options), screen)
  return await oneShot(partner, { message, ...askOf(options) }, screen, options.json)
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
  const { url, port } = options
  if (url !== undefined) return remotePartner(url)
  const own = options.local || [options.config, options.profile, options.mode].some(word => word !== undefined)
  const found = own ? undefined : await runningUrl(port)
  return found === undefined
    ? localPartner(definedOf({ config: options.config, profile: options.profile, mode: options.mode, debug: options.debug }))
    : remotePartner(found)
}

async function runningUrl(port: number | undefined): Promise<string | undefined> {
  try {
    using server = await reachServer(svcHome(), { port })
    return server.info.url === '' ? undefined : server.info.url
  } catch (error) {
    if (codeOf(error) !== 'SERVER_NONE') throw error
    // a server of another home or machine may listen there all the same
    return port === undefined ? undefined : `http://127.0.0.1:${port}`
  }
}

const askOf = ({ conversation, provider, model, temperature, maxTokens }: ChatOptions): Omit<ChatBody, 'message'> =>
  definedOf({ conversation_id: conversation, provider, model, temperature, max_tokens: maxTokens })

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
const definedOf = <T extends object>(values: T): Defined<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>
