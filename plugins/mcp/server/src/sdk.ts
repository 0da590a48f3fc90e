// The only file that imports the SDK. SDK and zod take 200 ms to load, so the first request that needs them imports them.
import type { AuthInfo, Server, ServerContext } from '@modelcontextprotocol/server'
import { type CallContext, isTree } from '@svc/core'
import type { InputRequest, Json, ToolDialog } from '@svc/core/contracts'
import { INPUT_CAPABILITIES, META } from '@svc/mcp-protocol'
import type { CallEnd } from './call.ts'
import type { HttpAnswer, HttpMessage } from './messages.ts'

export type Sdk = typeof import('@modelcontextprotocol/server')
export type { Server, ServerContext }

let loading: Promise<Sdk> | undefined

export const loadSdk = (): Promise<Sdk> => (loading ??= import('@modelcontextprotocol/server'))

/** The context that svc attaches to a request for its handlers. */
export interface HandlerContext {
  readonly ctx: CallContext
  /** The outcome of a call that began without the SDK. */
  begun?: CallEnd | undefined
}

const attached = new WeakMap<AuthInfo, HandlerContext>()

/** Attaches a context to a request. The SDK passes the returned object to the handlers. */
export function attachContext(context: HandlerContext): AuthInfo {
  const { id, scopes } = context.ctx.principal
  const info: AuthInfo = { token: '', clientId: id, scopes: [...scopes] }
  attached.set(info, context)
  return info
}

/** Returns the context of the request that a handler answers. `own` is the context for transports without one, such as stdio. */
export function handlerContextOf(context: ServerContext, own: CallContext | undefined): HandlerContext {
  const info = context.http?.authInfo
  const found = info && attached.get(info)
  if (found) return found
  if (own) return { ctx: own }
  throw new TypeError('the request has no call context')
}

// Conversion between HttpMessage, HttpAnswer and the Request and Response of the SDK.
/** The SDK requires a complete URL and does not use it. */
const ADDRESS = 'http://localhost/mcp'

/** Creates a request for the SDK, which gets the parsed body separately. The signal aborts when the client disconnects. */
export function webRequest({ method, headers }: HttpMessage, signal?: AbortSignal): Request {
  const given = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]]
  )
  return new Request(ADDRESS, { method, headers: given, ...(signal && { signal }) })
}

const EVENTS = 'text/event-stream'

/** Converts the response of the SDK. Events are streamed until the signal aborts; any other body is read completely. */
export async function answerOf(response: Response, signal: AbortSignal): Promise<HttpAnswer> {
  const { status } = response
  // the HTTP server sets these headers
  const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== 'connection' && name !== 'content-length'))
  const { body } = response
  if (body === null || !isEvents(headers)) return { status, headers, body: await response.text() }
  return { status, headers, body: textsOf(body, signal) }
}

export const isEvents = (headers: HttpAnswer['headers']) => headers['content-type']?.startsWith(EVENTS) === true

/** The body ends with the signal, even if its reading never begins, because its client has left. */
function textsOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const reader = body.getReader()
  const leave = () => {
    signal.removeEventListener('abort', leave)
    reader.cancel().catch(() => {})
  }
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  return readTexts(reader, leave)
}

async function* readTexts(reader: ReadableStreamDefaultReader<Uint8Array>, end: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    end()
  }
}

const ASKABLE = Object.entries(INPUT_CAPABILITIES) as [InputRequest['method'], object][]

/** Returns the questions that a client with these capabilities supports. */
export function askable(capabilities: unknown): InputRequest['method'][] {
  const can = isTree(capabilities) ? capabilities : {}
  return ASKABLE.flatMap(([method, needed]) => (Object.keys(needed).every(key => can[key] !== undefined) ? [method] : []))
}

/** Returns the questions that the caller of a request supports, and its answers. */
export function dialogOf(server: Server, { mcpReq }: ServerContext): ToolDialog {
  const envelope: { readonly [key: string]: unknown } | undefined = mcpReq.envelope
  const capabilities = envelope === undefined ? server.getClientCapabilities() : envelope[META.capabilities]
  const state = mcpReq.requestState<unknown>()
  return {
    can: askable(capabilities),
    ...(mcpReq.inputResponses === undefined ? {} : { answers: mcpReq.inputResponses as { readonly [key: string]: Json } }),
    ...(typeof state === 'string' ? { state } : {}),
  }
}
