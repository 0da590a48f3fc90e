// Answers `tools/list` and `tools/call` without the SDK, whose setup per request takes ten times as long as the answer. Only requests that are certainly valid are
// answered here. The SDK answers all others, and continues calls that ask a question. test/fast.spec.ts checks that both give the same answers.
import { type CallContext, isTree } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { LEGACY_VERSIONS, META, MODERN_VERSION } from '@svc/mcp-protocol'
import { type CallArguments, type CallEnd, callForResult } from './call.ts'
import type { Era } from './catalogue.ts'
import { type HttpAnswer, jsonAnswer, type RpcId, type MessageHeaders } from './messages.ts'
import type { Published } from './published.ts'
import { wireResult } from './result.ts'
import { askable } from './sdk.ts'
import { forEra, isStateError } from './tool-handlers.ts'

/** A valid request that can be answered without the SDK. */
export type PlainRequest = (
  | { readonly method: 'tools/list'; readonly cursor: string | undefined }
  | {
      readonly method: 'tools/call'
      readonly name: string
      readonly args: CallArguments
      /** Whether the caller wants progress or log messages. */
      readonly wantsNotifications: boolean
      /** The questions that the caller supports. Absent in a session, which knows them. */
      readonly can?: readonly InputRequest['method'][]
    }
) & { readonly id: RpcId }

type Params = { readonly [key: string]: unknown }

/** Reads a stateless request and checks its headers and `_meta`. Returns `undefined` if the SDK must handle it. */
export function plainModern(headers: MessageHeaders, body: unknown): PlainRequest | undefined {
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

/** Reads a request of a session. The caller has checked the owner of the session. */
export function plainLegacy(headers: MessageHeaders, body: unknown): PlainRequest | undefined {
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

/** Whether the client info has only strings. The SDK checks anything else. */
function isClient(info: unknown): boolean {
  if (info === undefined) return true
  if (!isTree(info) || typeof info.name !== 'string' || typeof info.version !== 'string') return false
  return Object.values(info).every(item => typeof item === 'string')
}

function plainOf({ id, method, params }: Request, logs: boolean): PlainRequest | undefined {
  const { name, arguments: args, cursor } = params
  if (method === 'tools/list') return cursor === undefined || typeof cursor === 'string' ? { id, method, cursor } : undefined
  if (method !== 'tools/call' || typeof name !== 'string' || params.task !== undefined) return undefined
  if (args !== undefined && !isTree(args)) return undefined
  const wantsNotifications = logs || (params._meta as Params | undefined)?.progressToken !== undefined
  return { id, method, name, args: (args ?? {}) as CallArguments, wantsNotifications }
}

/** A call that the SDK must continue, with its outcome so far. */
export interface StartedCall {
  readonly begun: CallEnd
}

/** Members that an era adds to results. */
export interface ResultFrame {
  readonly era: Era
  /** Members of every result, with a leading comma. */
  readonly result: string
  /** Members of every list, with a leading comma. */
  readonly list: string
}

export const LEGACY_FRAME: ResultFrame = { era: 'legacy', result: '', list: '' }

/** Since 2026-07-28, a result contains its type and the server, and a list contains its time to live. */
export function modernFrame(info: object): ResultFrame {
  const result = `,"resultType":"complete","_meta":${JSON.stringify({ 'io.modelcontextprotocol/serverInfo': info })}`
  return { era: 'modern', result, list: `,"ttlMs":0,"cacheScope":"private"${result}` }
}

interface Caller {
  readonly ctx: CallContext
  readonly can: readonly InputRequest['method'][]
  /** Whether the caller wants log messages of the tool. */
  readonly logs?: boolean
}

/**
 * Answers a plain request without the SDK's server. Returns `undefined` if that is not possible, and `StartedCall` if the call needs more than one answer: then
 * the SDK continues.
 */
export async function answerPlain(
  plain: PlainRequest,
  frame: ResultFrame,
  { catalogue, calls }: Published,
  { ctx, can, logs = false }: Caller
): Promise<HttpAnswer | StartedCall | undefined> {
  const { id } = plain
  if (plain.method === 'tools/list') {
    const page = catalogue().page(frame.era, plain.cursor)
    const next = page?.next === undefined ? '' : `,"nextCursor":${JSON.stringify(page.next)}`
    return page && jsonAnswer(resultText(id, `{"tools":${page.json}${next}${frame.list}}`))
  }
  const tool = catalogue().get(plain.name)
  if (!tool || (tool.tool.run && (plain.wantsNotifications || logs))) return undefined
  const end = await callForResult(calls, tool, plain.args, ctx, { dialog: { can } })
  if (end.type === 'input' || isStateError(end)) return { begun: end }
  const { result } = end
  const json = forEra(result, frame.era) === result ? end.json : JSON.stringify(wireResult(forEra(result, frame.era)))
  return jsonAnswer(resultText(id, `${json.slice(0, -1)}${frame.result}}`))
}

const resultText = (id: RpcId, result: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
