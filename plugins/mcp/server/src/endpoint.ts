import { type CallContext, isTree } from '@svc/core'
import { deeper, isModern, META } from '@svc/mcp-protocol'
import { type HttpAnswer, type HttpMessage, idOf, notJson, notRpc, sessionUnknown, tooDeep } from './messages.ts'
import type { Modern } from './modern.ts'
import type { Sessions } from './sessions.ts'
import type { Workers } from './workers.ts'

/** Maximum nesting of a message. Recursive functions must not exceed the stack. */
export const DEEPEST = 100

interface EndpointOptions {
  readonly path: string
  readonly modern: Modern
  readonly sessions: Sessions
  readonly workers: Workers
}

/** One path of the protocol, for both eras. */
export interface Endpoint {
  answer(message: HttpMessage, ctx: CallContext): Promise<HttpAnswer>
  /** Answers a request that another worker forwards to a session of this worker. */
  answerHere(message: HttpMessage, ctx: CallContext): Promise<HttpAnswer>
}

export function createEndpoint({ path, modern, sessions, workers }: EndpointOptions): Endpoint {
  const here = (message: HttpMessage, body: unknown, ctx: CallContext) =>
    sessions.answer(message, body, message.headers['mcp-session-id'], ctx)
  return {
    async answer(message, ctx) {
      const rejection = rejectionOf(message)
      if (rejection) return rejection
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

function rejectionOf({ method, headers }: HttpMessage): HttpAnswer | undefined {
  if (method !== 'POST') return undefined
  const coding = headers['content-encoding'] ?? 'identity'
  const isJson = JSON_TYPE.test(headers['content-type'] ?? '') && coding.toLowerCase() === 'identity'
  return isJson ? undefined : notJson()
}

/** Parses the body. Returns `undefined` if it is not valid JSON. */
function bodyOf({ method, text }: HttpMessage): unknown {
  if (method !== 'POST') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRpc = (body: unknown) => Array.isArray(body) || (isTree(body) && body.jsonrpc === '2.0')

/** Whether a request belongs to the stateless era, by its header or its `_meta`. The handler of that era reports its errors. */
function isStateless({ method, headers }: HttpMessage, body: unknown): boolean {
  if (method !== 'POST' || body === undefined) return false
  if (Array.isArray(body)) return body.some(hasEnvelope)
  return isModern(headers['mcp-protocol-version'] ?? '') || hasEnvelope(body)
}

const hasEnvelope = (message: unknown) =>
  isTree(message) && isTree(message.params) && isTree(message.params._meta) && META.version in message.params._meta
