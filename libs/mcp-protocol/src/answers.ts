import { isTree, type SvcError } from '@svc/core'
import type { InputRequest, Json, ToolResult, ToolStep } from '@svc/core/contracts'
import { stripped, stripResult } from '@svc/plugin-kit'
import { callFailed, protocolError, toolNotFound } from './failures.ts'
import { deeper } from './listed-tool.ts'
import { APP_TYPE } from './tool-ui.ts'

type JsonObject = { readonly [key: string]: unknown }
type InputMethod = InputRequest['method']

/** The outcome of a call: its result, or questions (stateless servers). */
type Outcome =
  | { readonly type: 'result'; readonly result: ToolResult }
  | { readonly type: 'input'; readonly requests: { readonly [key: string]: InputRequest }; readonly state?: string }

/** Maximum nesting of a message: a deeper one cannot be written as JSON again. */
export const MAX_DEPTH = 500
/** Maximum characters of a message in an error or a step. */
const MAX_MESSAGE = 2_000
/** Limit on the kinds of hidden characters that the metadata of a result names. */
const MAX_HIDDEN = 20
/** The prefix of the protocol's own keys. */
const RESERVED = 'io.modelcontextprotocol/'

/** Reads the answer to a call and removes hidden characters. `can` lists the questions that the client declared. Throws MCP_CALL_FAILED. */
export function readOutcome(server: string, tool: string, raw: unknown, can: readonly InputMethod[]): Outcome {
  const { resultType = 'complete', content, structuredContent, isError, _meta } = raw as JsonObject
  if (resultType === 'input_required') return readInput(server, raw as JsonObject, can)
  if (resultType !== 'complete') throw protocolError(server, 'its result has a type that the protocol does not define')
  const parts = content === undefined && structuredContent !== undefined ? [] : content
  if (!Array.isArray(parts) || !parts.every(isPart)) throw protocolError(server, 'its result has no list of contents')
  if (deeper(raw, MAX_DEPTH)) throw protocolError(server, `its result has more than ${MAX_DEPTH} levels`)
  if (isError === true && saysUnknownTool(textOfPart(parts[0]))) throw toolNotFound(server, tool, { delivered: 'yes' })
  const hidden = new Set<string>()
  const clean = <T>(value: T): T => stripped(value, found => found.forEach(item => hidden.add(item)))
  const result: ToolResult = {
    content: clean(parts) as unknown as ToolResult['content'],
    ...(structuredContent !== undefined && { structured: clean(structuredContent) as Json }),
    ...(isError === true && { isError }),
    ...metaOf(clean(_meta)),
  }
  if (hidden.size === 0) return { type: 'result', result }
  return { type: 'result', result: { ...result, meta: { ...result.meta, [HIDDEN_KEY]: [...hidden].slice(0, MAX_HIDDEN) } } }
}

/** Metadata without the keys that belong to the connection. */
function metaOf(given: unknown): Pick<ToolResult, 'meta'> {
  if (typeof given !== 'object' || given === null) return {}
  const own = Object.entries(given as JsonObject).filter(([key]) => !key.startsWith(RESERVED))
  return own.length === 0 ? {} : { meta: Object.fromEntries(own) as NonNullable<ToolResult['meta']> }
}

const isPart = (part: unknown): part is JsonObject =>
  typeof part === 'object' && part !== null && typeof (part as JsonObject)['type'] === 'string'
const textOfPart = (part: JsonObject | undefined) => (typeof part?.['text'] === 'string' ? part['text'] : '')

/** Reads questions. Removes hidden characters from them, not from their keys: the server identifies its questions by these. */
function readInput(server: string, { inputRequests = {}, requestState }: JsonObject, can: readonly InputMethod[]): Outcome {
  const entries = Object.entries((inputRequests ?? {}) as JsonObject)
  const isKnown = ([key, item]: readonly [string, unknown]) =>
    isInputMethod((item as JsonObject | null)?.['method']) && stripResult(key).found.length === 0
  if (!entries.every(isKnown) || deeper(inputRequests, MAX_DEPTH))
    throw protocolError(server, 'it asks for something that the protocol does not define')
  const undeclared = entries.map(([, item]) => (item as InputRequest).method).find(method => !can.includes(method))
  if (undeclared !== undefined) throw protocolError(server, `it asks for ${undeclared}, which the client did not declare`)
  return {
    type: 'input',
    requests: Object.fromEntries(entries.map(([key, entry]) => [key, stripped(entry as InputRequest, () => {})])),
    ...(typeof requestState === 'string' && { state: requestState }),
  }
}

/** The text of a result, for an error. */
export const textOfResult = (content: ToolResult['content']): string =>
  content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

type ProgressStep = Extract<ToolStep, { type: 'progress' }>

/** Reads the progress of a call, `undefined` if it is none. */
export function readProgress(params: unknown): ProgressStep | undefined {
  const { progress, total, message } = (params ?? {}) as JsonObject
  if (typeof progress !== 'number') return undefined
  return {
    type: 'progress',
    progress,
    ...(typeof total === 'number' && { total }),
    ...(typeof message === 'string' && { message: message.slice(0, MAX_MESSAGE) }),
  }
}

type LogStep = Extract<ToolStep, { type: 'log' }>
const LEVELS = new Set<unknown>(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'])

/** Reads a log message of the server as a step of a call, `undefined` if it is not one. */
export function readLog(params: unknown): LogStep | undefined {
  const { level, data, logger } = (params ?? {}) as Record<string, unknown>
  if (!LEVELS.has(level) || data === undefined || deeper(data, MAX_DEPTH)) return undefined
  return { type: 'log', level: level as LogStep['level'], data: data as Json, ...(typeof logger === 'string' && { logger }) }
}

/** The capabilities of a client that can answer the questions of a server. */
export const INPUT_CAPABILITIES: Readonly<Record<InputMethod, object>> = {
  'elicitation/create': { elicitation: { form: {}, url: {} } },
  'sampling/createMessage': { sampling: {} },
  'roots/list': { roots: {} },
}

/** The capabilities to declare: the questions, and MCP Apps, which the console shows. */
export const capabilitiesOf = (can: readonly InputMethod[]): Record<string, object> =>
  Object.assign(
    { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [APP_TYPE] } } },
    ...can.map(method => INPUT_CAPABILITIES[method])
  )

/** Whether a request of the server is a question. */
export const isInputMethod = (method: unknown): method is InputMethod =>
  typeof method === 'string' && Object.hasOwn(INPUT_CAPABILITIES, method)

/** The response to a question that the caller does not answer. */
function noAnswer(method: InputMethod): { readonly result: object } | { readonly error: object } {
  if (method === 'elicitation/create') return { result: { action: 'cancel' } }
  if (method === 'roots/list') return { result: { roots: [] } }
  return { error: { code: -1, message: 'the caller cannot answer this' } }
}

/** The response to a question of a server with the answer of the caller, `undefined` if there is none. Empty fields of a form get their defaults. */
export function responseTo(
  { method, params }: { readonly method: InputMethod; readonly params?: unknown },
  answer: Json | undefined
) {
  const filled = method === 'elicitation/create' ? withDefaults(params, answer) : answer
  return filled === undefined ? noAnswer(method) : { result: filled }
}

/** An accepted form; empty fields get the defaults that the form declares. */
function withDefaults(params: unknown, answer: Json | undefined): Json | undefined {
  const schema = isTree(params) ? params['requestedSchema'] : undefined
  const properties = isTree(schema) ? schema['properties'] : undefined
  if (!isTree(answer) || answer['action'] !== 'accept' || !isTree(properties)) return answer
  const content = isTree(answer['content']) ? answer['content'] : {}
  const defaults = Object.entries(properties).flatMap(([name, field]) =>
    isTree(field) && field['default'] !== undefined ? [[name, field['default']] as const] : []
  )
  return { ...answer, content: { ...Object.fromEntries(defaults), ...content } } as Json
}

/** An error of JSON-RPC. */
export interface RpcError {
  readonly code: number
  readonly message: string
}

const UNKNOWN_TOOL = /unknown tool|tool .{0,200}(not found|does not exist|unknown)|no (such )?tool/is
const V1_ERROR = /^MCP error -32602: /

/** The failure for an error that the server returned to a call. */
export function refused(server: string, tool: string, { code, message }: RpcError): SvcError {
  const facts = { delivered: 'yes', rpcCode: code } as const
  if (code === RPC.invalidParams && isUnknownTool(message)) return toolNotFound(server, tool, facts)
  const kind = code === RPC.methodUnknown || code === RPC.parse || code === RPC.invalidRequest ? 'protocol_error' : 'tool_error'
  return callFailed(server, kind, String(message).slice(0, MAX_MESSAGE), facts)
}

const isUnknownTool = (message: unknown) => UNKNOWN_TOOL.test(String(message).slice(0, MAX_MESSAGE))

/** Whether the text of a failed result means an unknown tool: servers of the SDK's version 1 report it so. */
const saysUnknownTool = (text: string): boolean => V1_ERROR.test(text) && isUnknownTool(text)

/** The newest version of the protocol. It is stateless: each request carries version, client and capabilities. */
export const MODERN_VERSION = '2026-07-28'

/** Versions with a handshake and sessions, newest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']

/** All versions that svc supports, newest first. */
export const PROTOCOL_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]

/** Whether a version is stateless. Versions are dates, so they compare as strings. */
export const isModern = (version: string): boolean => version >= MODERN_VERSION

/** Keys of `params._meta` in a stateless request: version, client, capabilities of the client and log level. */
export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  client: 'io.modelcontextprotocol/clientInfo',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
} as const

/** Key in the `_meta` of a result that lists the hidden characters that svc removed, with their counts: `U+200B × 3`. */
export const HIDDEN_KEY = 'svc/hidden_characters'

/** Error codes of JSON-RPC and of the protocol. */
export const RPC = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodUnknown: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** A header is missing or contradicts the body. The server did not execute the request. */
  headerMismatch: -32_020,
} as const
