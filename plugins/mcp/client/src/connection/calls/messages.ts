import type { InputRequest, Json, ToolResult, ToolStep } from '@svc/core/contracts'
import { deeper, HIDDEN_KEY } from '@svc/mcp-protocol'
import { stripped, stripResult } from '@svc/plugin-kit'
import { protocolError, saysUnknownTool, toolNotFound } from '../failures.ts'

type JsonObject = { readonly [key: string]: unknown }
type InputMethod = InputRequest['method']

/** The outcome of a call: its result, or questions (stateless servers). */
export type Outcome =
  | { readonly type: 'result'; readonly result: ToolResult }
  | { readonly type: 'input'; readonly requests: { readonly [key: string]: InputRequest }; readonly state?: string }

/** Maximum nesting of a message: a deeper one cannot be written as JSON again. */
export const MAX_DEPTH = 500
/** Limit on the kinds of hidden characters that the metadata of a result names. */
const MAX_HIDDEN = 20
/** The prefix of the protocol's own keys. */
const RESERVED = 'io.modelcontextprotocol/'

/** Reads the answer to a call and removes hidden characters. Throws MCP_CALL_FAILED. */
export function readOutcome(server: string, tool: string, raw: unknown): Outcome {
  const { resultType = 'complete', content, structuredContent, isError, _meta } = raw as JsonObject
  if (resultType === 'input_required') return readInput(server, raw as JsonObject)
  if (resultType !== 'complete') throw protocolError(server, 'its result has a type that the protocol does not define')
  const parts = content === undefined && structuredContent !== undefined ? [] : content
  if (!Array.isArray(parts) || !parts.every(isPart)) throw protocolError(server, 'its result has no list of contents')
  if (deeper(raw, MAX_DEPTH)) throw protocolError(server, `its result has more than ${MAX_DEPTH} levels`)
  if (isError === true && saysUnknownTool(textOfPart(parts[0]))) throw toolNotFound(server, tool, { delivered: 'yes' })
  const hidden = new Set<string>()
  const clean = <T>(value: T): T => stripped(value, found => found.forEach(one => hidden.add(one)))
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
function readInput(server: string, { inputRequests = {}, requestState }: JsonObject): Outcome {
  const entries = Object.entries((inputRequests ?? {}) as JsonObject)
  const isKnown = ([key, one]: readonly [string, unknown]) =>
    isInputMethod((one as JsonObject | null)?.['method']) && stripResult(key).found.length === 0
  if (!entries.every(isKnown) || deeper(inputRequests, MAX_DEPTH))
    throw protocolError(server, 'it asks for something that the protocol does not define')
  return {
    type: 'input',
    requests: Object.fromEntries(entries.map(([key, one]) => [key, stripped(one as InputRequest, () => {})])),
    ...(typeof requestState === 'string' && { state: requestState }),
  }
}

/** The text of a result, for an error. */
export const textOfResult = (content: ToolResult['content']): string =>
  content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

type LogStep = Extract<ToolStep, { type: 'log' }>
const LEVELS = new Set<unknown>(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'])

/** Reads a log message of the server as a step of a call, `undefined` if it is not one. */
export function readLog(params: unknown): LogStep | undefined {
  const { level, data, logger } = (params ?? {}) as Record<string, unknown>
  if (!LEVELS.has(level) || data === undefined || deeper(data, MAX_DEPTH)) return undefined
  return { type: 'log', level: level as LogStep['level'], data: data as Json, ...(typeof logger === 'string' && { logger }) }
}

/** The questions of a server, as capabilities of the protocol. */
const CAPABILITIES: Readonly<Record<InputMethod, object>> = {
  'elicitation/create': { elicitation: { form: {}, url: {} } },
  'sampling/createMessage': { sampling: {} },
  'roots/list': { roots: {} },
}

export const capabilitiesOf = (can: readonly InputMethod[]): Record<string, object> =>
  Object.assign({}, ...can.map(method => CAPABILITIES[method]))

export const isInputMethod = (method: unknown): method is InputMethod =>
  typeof method === 'string' && Object.hasOwn(CAPABILITIES, method)

/** The response to a question that the caller does not answer. */
export function noAnswer(method: InputMethod): { readonly result: object } | { readonly error: object } {
  if (method === 'elicitation/create') return { result: { action: 'cancel' } }
  if (method === 'roots/list') return { result: { roots: [] } }
  return { error: { code: -1, message: 'the caller cannot answer this' } }
}
