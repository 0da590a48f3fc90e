import { isTree } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { LEGACY_VERSIONS, META, MODERN_VERSION } from '@svc/mcp'
import type { Arguments } from './call.ts'
import { askable } from './dialog.ts'
import type { RpcId } from './message.ts'
import type { Headers } from './parameter-headers.ts'

/** A request that is surely well-formed, and of the kind that is answered without the SDK. */
export type Plain = (
  | { readonly method: 'tools/list'; readonly cursor: string | undefined }
  | {
      readonly method: 'tools/call'
      readonly name: string
      readonly args: Arguments
      /** The caller takes what the tool tells on its way. */
      readonly follows: boolean
      /** What the caller can be asked for; where a session knows, absent. */
      readonly can?: readonly InputRequest['method'][]
    }
) & { readonly id: RpcId }

type Params = { readonly [key: string]: unknown }

/** A stateless request; `undefined` where the SDK is to look at it. What the protocol demands of headers and envelope is checked here. */
export function plainModern(headers: Headers, body: unknown): Plain | undefined {
  const message = requestOf(body)
  if (!message || headers['mcp-protocol-version'] !== MODERN_VERSION || headers['mcp-method'] !== message.method) return undefined
  const { params } = message
  const meta = params._meta
  if (!isTree(meta) || meta[META.version] !== MODERN_VERSION || !isClient(meta[META.client])) return undefined
  const capabilities = meta[META.capabilities]
  if (!isTree(capabilities) || !Object.values(capabilities).every(isTree)) return undefined
  if (params.inputResponses !== undefined || params.requestState !== undefined) return undefined
  const plain = plainOf(message, meta[META.logLevel] !== undefined)
  if (plain?.method !== 'tools/call') return plain
  return headers['mcp-name'] === plain.name && plain.name !== '' ? { ...plain, can: askable(capabilities) } : undefined
}

/** A request of a session; whose session it is, is looked at elsewhere. */
export function plainLegacy(headers: Headers, body: unknown): Plain | undefined {
  const message = requestOf(body)
  const version = headers['mcp-protocol-version']
  const accept = headers.accept ?? ''
  if (!message || (version !== undefined && !LEGACY_VERSIONS.includes(version))) return undefined
  if (!accept.includes('application/json') || !accept.includes('text/event-stream')) return undefined
  return message.params._meta === undefined || isTree(message.params._meta) ? plainOf(message, false) : undefined
}

interface Request {
  readonly id: RpcId
  readonly method: string
  readonly params: Params
}

const MEMBERS = new Set(['jsonrpc', 'id', 'method', 'params'])

function requestOf(body: unknown): Request | undefined {
  if (!isTree(body)) return undefined
  const { jsonrpc, id, method, params = {} } = body as { readonly [key: string]: unknown }
  const isId = typeof id === 'string' || Number.isSafeInteger(id)
  if (jsonrpc !== '2.0' || !isId || typeof method !== 'string' || !isTree(params)) return undefined
  if (!Object.keys(body).every(key => MEMBERS.has(key))) return undefined
  return { id: id as RpcId, method, params: params as Params }
}

/** Who it says it is: two texts. With more, the SDK looks at it. */
function isClient(info: unknown): boolean {
  if (info === undefined) return true
  if (!isTree(info) || typeof info.name !== 'string' || typeof info.version !== 'string') return false
  return Object.values(info).every(one => typeof one === 'string')
}

function plainOf({ id, method, params }: Request, logs: boolean): Plain | undefined {
  const { name, arguments: args, cursor } = params
  if (method === 'tools/list') return cursor === undefined || typeof cursor === 'string' ? { id, method, cursor } : undefined
  if (method !== 'tools/call' || typeof name !== 'string' || params.task !== undefined) return undefined
  if (args !== undefined && !isTree(args)) return undefined
  const follows = logs || (params._meta as Params | undefined)?.progressToken !== undefined
  return { id, method, name, args: (args ?? {}) as Arguments, follows }
}
