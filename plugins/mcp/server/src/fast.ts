// What is answered without the SDK: `tools/list` and `tools/call`, whose wiring per request costs it ten times what the answer does. Only requests that are surely
// well-formed are taken; all others, and what follows on a question to the caller, are the SDK's. test/fast.spec.ts holds that both give the same answers.
import { isTree, type CallContext } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { LEGACY_VERSIONS, META, MODERN_VERSION } from '@svc/mcp-protocol'
import { type Arguments, type CallEnd, callOrTell } from './call.ts'
import type { Era } from './catalogue.ts'
import { askable } from './dialog.ts'
import { type HttpAnswer, jsonAnswer, type RpcId } from './message.ts'
import type { Headers } from './parameter-headers.ts'
import type { Published } from './published.ts'
import { wireResult } from './result.ts'
import { forEra, isStateFault } from './tool-handlers.ts'

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

/** Where the SDK has to go on, and what came of the call so far. */
export interface Begun {
  readonly begun: CallEnd
}

/** What the era writes around a result. */
export interface Frame {
  readonly era: Era
  /** Members of every result, with the comma before them. */
  readonly result: string
  /** Members of every list. */
  readonly list: string
}

export const LEGACY_FRAME: Frame = { era: 'legacy', result: '', list: '' }

/** Since 2026-07-28, a result says that it is whole and who gives it, a list how long it holds. */
export function modernFrame(info: object): Frame {
  const result = `,"resultType":"complete","_meta":${JSON.stringify({ 'io.modelcontextprotocol/serverInfo': info })}`
  return { era: 'modern', result, list: `,"ttlMs":0,"cacheScope":"private"${result}` }
}

interface Asker {
  readonly ctx: CallContext
  readonly can: readonly InputRequest['method'][]
  /** The caller takes what a tool logs. */
  readonly logs?: boolean
}

/**
 * Answers a plain request without building a server for it. `undefined` where that cannot be done; `Begun` where it has begun and needs more than one answer:
 * the SDK then goes on.
 */
export async function answerPlain(
  plain: Plain,
  frame: Frame,
  { catalogue, calls }: Published,
  { ctx, can, logs = false }: Asker
): Promise<HttpAnswer | Begun | undefined> {
  const { id } = plain
  if (plain.method === 'tools/list') {
    const page = catalogue().page(frame.era, plain.cursor)
    const next = page?.next === undefined ? '' : `,"nextCursor":${JSON.stringify(page.next)}`
    return page && jsonAnswer(resultText(id, `{"tools":${page.json}${next}${frame.list}}`))
  }
  const tool = catalogue().get(plain.name)
  if (!tool || (tool.tool.run && (plain.follows || logs))) return undefined
  const end = await callOrTell(calls, tool, plain.args, ctx, { dialog: { can } })
  if (end.type === 'input' || isStateFault(end)) return { begun: end }
  const { result } = end
  const json = forEra(result, frame.era) === result ? end.json : JSON.stringify(wireResult(forEra(result, frame.era)))
  return jsonAnswer(resultText(id, `${json.slice(0, -1)}${frame.result}}`))
}

const resultText = (id: RpcId, result: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
