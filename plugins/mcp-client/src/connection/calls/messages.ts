import type { InputRequest, Json, ToolResult, ToolStep } from '@svc/core/contracts'
import { deeper, HIDDEN_KEY } from '@svc/mcp'
import { stripped, stripResult } from '@svc/tool-parts'
import { protocolError, saysUnknownTool, toolNotFound } from '../failures.ts'

/** What a call came to: its result, or questions (stateless servers). */
export type Outcome =
  | { readonly type: 'result'; readonly result: ToolResult }
  | { readonly type: 'input'; readonly requests: { readonly [key: string]: InputRequest }; readonly state?: string }

type Fact = { readonly [key: string]: unknown }
/** Levels of what a server says: what is deeper cannot be written as JSON again. */
export const DEPTH = 500

/** Reads what a server answers to a call, and passes it on as it is, but for hidden characters. Throws MCP_CALL_FAILED. */
export function readOutcome(server: string, tool: string, raw: unknown): Outcome {
  const { resultType = 'complete', content, structuredContent, isError, _meta } = raw as Fact
  if (resultType === 'input_required') return readInput(server, raw as Fact)
  if (resultType !== 'complete') throw protocolError(server, 'it answers with a kind of result that was not agreed on')
  const parts = content === undefined && structuredContent !== undefined ? [] : content
  if (!Array.isArray(parts) || !parts.every(isPart)) throw protocolError(server, 'its result has no list of contents')
  if (deeper(raw, DEPTH)) throw protocolError(server, `its result is deeper than ${DEPTH} levels`)
  if (isError === true && saysUnknownTool(textOf(parts[0]))) throw toolNotFound(server, tool, { delivered: 'yes' })
  const hidden = new Set<string>()
  const clean = <T>(value: T): T => stripped(value, found => found.forEach(one => hidden.add(one)))
  const result: ToolResult = {
    content: clean(parts) as unknown as ToolResult['content'],
    ...(structuredContent !== undefined && { structured: clean(structuredContent) as Json }),
    ...(isError === true && { isError }),
    ...metaOf(clean(_meta)),
  }
  if (hidden.size === 0) return { type: 'result', result }
  return { type: 'result', result: { ...result, meta: { ...result.meta, [HIDDEN_KEY]: [...hidden].slice(0, MOST_HIDDEN) } } }
}

/** Limit on the kinds of hidden characters that the metadata of a result names. */
const MOST_HIDDEN = 20

/** What belongs to the connection with this server is nobody else's. */
function metaOf(given: unknown): Pick<ToolResult, 'meta'> {
  if (typeof given !== 'object' || given === null) return {}
  const own = Object.entries(given as Fact).filter(([key]) => !key.startsWith(RESERVED))
  return own.length === 0 ? {} : { meta: Object.fromEntries(own) as NonNullable<ToolResult['meta']> }
}

/** The protocol's own keys begin so. */
const RESERVED = 'io.modelcontextprotocol/'

const isPart = (part: unknown): part is Fact =>
  typeof part === 'object' && part !== null && typeof (part as Fact)['type'] === 'string'
const textOf = (part: Fact | undefined) => (typeof part?.['text'] === 'string' ? part['text'] : '')

function readInput(server: string, { inputRequests = {}, requestState }: Fact): Outcome {
  const requests = Object.entries((inputRequests ?? {}) as Fact)
  const isKnown = ([key, one]: readonly [string, unknown]) =>
    isInputMethod((one as Fact | null)?.['method']) && stripResult(key).found.length === 0
  if (!requests.every(isKnown) || deeper(inputRequests, DEPTH))
    throw protocolError(server, 'it asks for what the protocol does not know')
  return {
    type: 'input',
    requests: shownRequests(Object.fromEntries(requests) as { readonly [key: string]: InputRequest }),
    ...(typeof requestState === 'string' && { state: requestState }),
  }
}

/** What a person is asked, without hidden characters. The keys are what the server knows its questions by. */
const shownRequests = (requests: { readonly [key: string]: InputRequest }) =>
  Object.fromEntries(Object.entries(requests).map(([key, request]) => [key, stripped(request, () => {})] as const))

/** The text of a result, for an error. */
export const wordsOf = (result: ToolResult): string =>
  result.content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

type LogStep = Extract<ToolStep, { type: 'log' }>

const LEVELS = new Set<unknown>(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'])

/** What a server logs, as a step of a call; `undefined` where it is no log message. */
export function readLog(params: unknown): LogStep | undefined {
  const { level, data, logger } = (params ?? {}) as Record<string, unknown>
  if (!LEVELS.has(level) || data === undefined || deeper(data, DEPTH)) return undefined
  return {
    type: 'log',
    level: level as LogStep['level'],
    data: data as Json,
    ...(typeof logger === 'string' && { logger }),
  }
}

/** What a server may ask for, in the protocol's words. */
const CAPABILITIES: Readonly<Record<InputRequest['method'], object>> = {
  'elicitation/create': { elicitation: { form: {}, url: {} } },
  'sampling/createMessage': { sampling: {} },
  'roots/list': { roots: {} },
}

export const capabilitiesOf = (can: readonly InputRequest['method'][]): Record<string, object> =>
  Object.assign({}, ...can.map(method => CAPABILITIES[method]))

export const isInputMethod = (method: unknown): method is InputRequest['method'] =>
  typeof method === 'string' && Object.hasOwn(CAPABILITIES, method)

/** What a server is answered whose question nobody can be asked, or nobody answers. */
export function noAnswer(method: InputRequest['method']): { readonly result: object } | { readonly error: object } {
  if (method === 'elicitation/create') return { result: { action: 'cancel' } }
  if (method === 'roots/list') return { result: { roots: [] } }
  return { error: { code: -1, message: 'nobody can be asked' } }
}
