import { RPC } from '@svc/mcp-protocol'

/** Headers of a request, with names in lower case. */
export type MessageHeaders = { readonly [name: string]: string | undefined }

/** An HTTP request as plain data, so that it can be forwarded to another worker. */
export interface HttpMessage {
  readonly method: string
  readonly headers: MessageHeaders
  /** The body, or an empty string. */
  readonly text: string
}

/** An HTTP response. `body` is complete, or a stream. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string | AsyncIterable<string>
}

/** Id of a JSON-RPC request. */
export type RpcId = string | number

const JSON_TYPE = { 'content-type': 'application/json' } as const

/** Creates a successful response with a complete body. */
export const jsonAnswer = (body: string, headers: HttpAnswer['headers'] = JSON_TYPE): HttpAnswer => ({
  status: 200,
  headers,
  body,
})

interface RpcErrorAnswer {
  readonly status: number
  readonly code: number
  readonly message: string
  readonly id?: RpcId | null
  readonly data?: object
  readonly headers?: HttpAnswer['headers']
}

/** Creates a response with a JSON-RPC error. */
const errorAnswer = ({ status, code, message, id = null, data, headers }: RpcErrorAnswer): HttpAnswer => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  body: JSON.stringify({ jsonrpc: '2.0', error: { code, message, ...(data === undefined ? {} : { data }) }, id }),
})

/** Returns the id of a parsed request, which its answer must repeat. */
export function idOf(body: unknown): RpcId | null {
  const { method, id } = (typeof body === 'object' && body !== null ? body : {}) as { method?: unknown; id?: unknown }
  return typeof method === 'string' && (typeof id === 'string' || typeof id === 'number') ? id : null
}

/** Codes that MCP servers use for errors without a code in JSON-RPC. */
const SERVER_ERROR = -32_000
const SESSION_UNKNOWN = -32_001

const error = (status: number, code: number, message: string, id: RpcId | null = null, headers = {}): HttpAnswer =>
  errorAnswer({ status, code, message, id, headers })

/** Closes the connection, so that the server does not read the rest of the body. */
const CLOSE = { connection: 'close' }

export const bodyTooLarge = (limit: number) =>
  error(413, SERVER_ERROR, `Payload Too Large: the body has more than ${limit} bytes`, null, CLOSE)
export const notJson = () => error(415, SERVER_ERROR, 'Unsupported Media Type: send application/json without compression')
export const unreadable = (reason: string) => error(400, RPC.parse, `Parse error: ${reason}`)
export const tooDeep = (levels: number, id: RpcId | null) =>
  error(400, RPC.invalidRequest, `Invalid Request: nested deeper than ${levels} levels`, id)
export const methodWrong = () =>
  error(405, SERVER_ERROR, 'Method Not Allowed: use POST, GET or DELETE', null, { allow: 'GET, POST, DELETE' })
export const pathUnknown = () => error(404, RPC.methodUnknown, 'Not Found: there is no set of tools at this path')
export const sessionMissing = () =>
  error(400, SERVER_ERROR, 'Bad Request: the header Mcp-Session-Id is missing; begin with initialize')
/** The same answer for a session of another principal, so that callers cannot probe for ids. */
export const sessionUnknown = () => error(404, SESSION_UNKNOWN, 'Session not found: begin a new one with initialize')
export const sessionsFull = () =>
  error(503, SERVER_ERROR, 'Service Unavailable: too many active sessions', null, { 'retry-after': '5' })
export const notRpc = (id: RpcId | null = null) =>
  error(400, RPC.invalidRequest, 'Invalid Request: not a valid JSON-RPC 2.0 message', id)
export const overLong = (limit: number) => error(413, SERVER_ERROR, `Payload Too Large: the line has more than ${limit} bytes`)
export const resourceUnknown = (id: RpcId | null) => error(400, RPC.invalidParams, 'Resource not found', id)
/** The client could not distinguish two answers with the same id. */
export const idTaken = (id: RpcId) =>
  error(400, RPC.invalidRequest, 'Invalid Request: a request with this id is already running in the session', id)
export const headerMismatch = (message: string, id: RpcId | null) => error(400, RPC.headerMismatch, `Bad Request: ${message}`, id)
