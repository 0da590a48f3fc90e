import { isTree, type CallContext } from '@svc/core'
import { deeper, isModern, META } from '@svc/mcp-protocol'
import { notJson, notRpc, sessionUnknown, tooDeep } from './faults.ts'
import { type HttpAnswer, type HttpMessage, idOf } from './message.ts'
import type { Modern } from './modern.ts'
import type { Sessions } from './sessions.ts'
import type { Workers } from './workers.ts'

/** Levels of a message: whoever walks it must not run out of stack. */
export const DEEPEST = 100

export interface EndpointParts {
  readonly path: string
  readonly modern: Modern
  readonly sessions: Sessions
  readonly workers: Workers
}

/** One address of the protocol: both eras of it. */
export interface Endpoint {
  answer(message: HttpMessage, ctx: CallContext): Promise<HttpAnswer>
  /** The same for a session of this worker: another one asks. */
  answerHere(message: HttpMessage, ctx: CallContext): Promise<HttpAnswer>
}

export function createEndpoint({ path, modern, sessions, workers }: EndpointParts): Endpoint {
  const here = (message: HttpMessage, body: unknown, ctx: CallContext) =>
    sessions.answer(message, body, message.headers['mcp-session-id'], ctx)
  return {
    async answer(message, ctx) {
      const refused = refusalOf(message)
      if (refused) return refused
      const body = bodyOf(message)
      if (deeper(body, DEEPEST)) return tooDeep(DEEPEST, idOf(body))
      if (message.method === 'POST' && body !== undefined && !isRpc(body)) return notRpc()
      if (isStateless(message, body)) return modern.answer(message, body, ctx)
      const found = workers.elsewhere(message.headers['mcp-session-id'], ctx)
      const worker = found instanceof Promise ? await found : found
      if (worker === undefined) return here(message, body, ctx)
      return (await workers.ask(worker, { path, message }, ctx)) ?? sessionUnknown()
    },
    answerHere: (message, ctx) => here(message, bodyOf(message), ctx),
  }
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i

function refusalOf({ method, headers }: HttpMessage): HttpAnswer | undefined {
  if (method !== 'POST') return undefined
  const coding = headers['content-encoding'] ?? 'identity'
  const isJson = JSON_TYPE.test(headers['content-type'] ?? '') && coding.toLowerCase() === 'identity'
  return isJson ? undefined : notJson()
}

/** The body as JSON; `undefined` where it is none. */
function bodyOf({ method, text }: HttpMessage): unknown {
  if (method !== 'POST') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRpc = (body: unknown) => Array.isArray(body) || (isTree(body) && body.jsonrpc === '2.0')

/** Whether a request is of the era without sessions: its header says so, or its envelope. All faults of that era are told by its part. */
function isStateless({ method, headers }: HttpMessage, body: unknown): boolean {
  if (method !== 'POST' || body === undefined) return false
  if (Array.isArray(body)) return body.some(hasEnvelope)
  return isModern(headers['mcp-protocol-version'] ?? '') || hasEnvelope(body)
}

const hasEnvelope = (message: unknown) =>
  isTree(message) && isTree(message.params) && isTree(message.params._meta) && META.version in message.params._meta
