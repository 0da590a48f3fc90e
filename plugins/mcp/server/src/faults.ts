import { RPC } from '@svc/mcp-protocol'
import { faultAnswer, type HttpAnswer, type RpcId } from './message.ts'

/** Codes that servers of the protocol use for what JSON-RPC has no code for. */
const SERVER_FAULT = -32_000
const SESSION_UNKNOWN = -32_001

const fault = (status: number, code: number, message: string, id: RpcId | null = null, headers = {}): HttpAnswer =>
  faultAnswer({ status, code, message, id, headers })

/** Where a connection is not to be read to the end of what it sends. */
const CLOSE = { connection: 'close' }

export const bodyTooLarge = (limit: number) =>
  fault(413, SERVER_FAULT, `Payload Too Large: the body has more than ${limit} bytes`, null, CLOSE)
export const notJson = () => fault(415, SERVER_FAULT, 'Unsupported Media Type: send application/json, not compressed')
export const unreadable = (reason: string) => fault(400, RPC.parse, `Parse error: ${reason}`)
export const tooDeep = (levels: number, id: RpcId | null) =>
  fault(400, RPC.invalidRequest, `Invalid Request: nested deeper than ${levels} levels`, id)
export const methodWrong = () =>
  fault(405, SERVER_FAULT, 'Method Not Allowed: POST, GET and DELETE are', null, { allow: 'GET, POST, DELETE' })
export const pathUnknown = () => fault(404, RPC.methodUnknown, 'Not Found: there is no set of tools at this path')
export const sessionMissing = () =>
  fault(400, SERVER_FAULT, 'Bad Request: the header Mcp-Session-Id is missing; begin with initialize')
/** Nobody is told whether it is another's, or never was. */
export const sessionUnknown = () => fault(404, SESSION_UNKNOWN, 'Session not found: begin a new one with initialize')
export const sessionsFull = () =>
  fault(503, SERVER_FAULT, 'Service Unavailable: too many sessions are at work', null, { 'retry-after': '5' })
export const notRpc = (id: RpcId | null = null) =>
  fault(400, RPC.invalidRequest, 'Invalid Request: this is no JSON-RPC 2.0 message', id)
export const overLong = (limit: number) => fault(413, SERVER_FAULT, `Payload Too Large: the line has more than ${limit} bytes`)
/** Two answers of one id could not be told apart. */
export const resourceUnknown = (id: RpcId | null) => fault(400, RPC.invalidParams, 'Resource not found', id)
export const idTaken = (id: RpcId) =>
  fault(400, RPC.invalidRequest, 'Invalid Request: a request of this id is under way in the session', id)
export const headerMismatch = (message: string, id: RpcId | null) => fault(400, RPC.headerMismatch, `Bad Request: ${message}`, id)
