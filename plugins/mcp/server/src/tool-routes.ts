import { type CallContext, codeOf, type JsonSchema, messageOf, type SvcError } from '@svc/core'
import type { McpErrorClass, Route, RouteReply, ToolResult } from '@svc/core/contracts'
import { textOfResult } from '@svc/mcp-protocol'
import { type CallArguments, CALL_LIMITS, type CallEnd, type ToolCaller } from './call.ts'
import type { Catalogue, PublishedTool } from './catalogue.ts'
import { callLate, toolFailed, toolForbidden, toolLate, toolUnknown, toolWithheld, upstreamFailed } from './errors.ts'
import type { Published } from './published.ts'

type ToolRouteOptions = Pick<Published, 'catalogue' | 'withheld' | 'forbidden' | 'calls'>

/** A tool in the response of `GET /tools`. `parameters` is its JSON Schema, always with `type`, `properties` and `required`. */
interface ToolSchemaRecord {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/** Maximum bytes of the request body. */
const BODY_LIMIT = 4 * 1_048_576
/** Maximum timeout of a call, in seconds. */
const MAX_TIMEOUT_S = 3_600

const object = (properties: Readonly<Record<string, JsonSchema>>, required = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required,
})
const STRING: JsonSchema = { type: 'string' }
const OBJECT: JsonSchema = { type: 'object' }
/** No query parameters. */
const NO_QUERY: JsonSchema = { type: 'object', properties: {}, additionalProperties: false }
const toolSchema: JsonSchema = {
  title: 'ToolSchema',
  type: 'object',
  properties: { name: STRING, description: STRING, parameters: { ...OBJECT, description: 'JSON Schema of the arguments.' } },
  required: ['name', 'description', 'parameters'],
}
const toolList = object({ tools: { type: 'array', items: toolSchema }, count: { type: 'integer' } })
const callBody = object(
  {
    arguments: {
      type: ['object', 'null'],
      description: 'Arguments of the tool, as its parameters describe them. null means no arguments.',
    },
    timeout: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: MAX_TIMEOUT_S,
      description: 'Maximum duration of the call in seconds.',
    },
  },
  []
)
const callResult = object(
  {
    success: { const: true },
    tool: STRING,
    content: { type: 'array', items: OBJECT, description: 'Content blocks in the form of the Model Context Protocol (MCP).' },
    structured_content: { description: 'Structured result of the tool, if it returns one.' },
    is_error: { const: false },
    duration_ms: { type: 'integer' },
  },
  ['success', 'tool', 'content', 'is_error', 'duration_ms']
)

const refusal = object({ success: { const: false }, error: STRING, error_code: STRING, details: OBJECT })

/** A server without the tool server has none of these routes. */
const NEEDS = 'Needs the tool server: run `svc serve --mcp`, or set `mcp.server.enabled: true`.'

const ok = (description: string, schema: JsonSchema) => ({ '200': { description, schema } })

/** Creates the routes `GET /tools`, `GET /tools/{name}` and `POST /tools/{name}/call`. */
export function createToolRoutes({ catalogue, withheld, forbidden, calls }: ToolRouteOptions): Record<string, Route> {
  const listed = listing()
  const toolOf = async (name = '', ctx: CallContext): Promise<PublishedTool> => {
    const found = catalogue().get(name)
    if (found) return found
    const mode = forbidden(name)
    if (mode !== undefined) throw toolForbidden(name, mode)
    const server = await withheld(name, ctx)
    throw server === undefined ? toolUnknown(name) : toolWithheld(name, server)
  }
  return {
    mcp_tools: {
      method: 'GET',
      path: '/tools',
      summary: 'List the published tools',
      description: NEEDS,
      scope: 'tools',
      query: NO_QUERY,
      responses: ok('The tools, sorted by name.', toolList),
      handle: async () => listed(catalogue()),
    },
    mcp_tool: {
      method: 'GET',
      path: '/tools/:name',
      summary: 'Get the schema of one tool',
      description: NEEDS,
      scope: 'tools',
      query: NO_QUERY,
      responses: ok('The tool.', toolSchema),
      handle: async ({ params }, ctx) => ({ body: schemaRecord(await toolOf(params.name, ctx)) }),
    },
    mcp_tool_call: {
      method: 'POST',
      path: '/tools/:name/call',
      summary: 'Run a tool',
      description: NEEDS,
      scope: 'tools',
      query: NO_QUERY,
      body: callBody,
      bodyLimit: BODY_LIMIT,
      responses: {
        ...ok('The result of the tool.', callResult),
        '504': { description: 'TIMEOUT: the call took too long.', schema: refusal },
      },
      handle: async ({ params, body }, ctx) => ({
        body: await callTool(await toolOf(params.name, ctx), body as CallBody, calls, ctx),
      }),
    },
  }
}

const schemaRecord = ({ name, tool }: PublishedTool): ToolSchemaRecord => ({
  name,
  description: tool.description,
  parameters: { type: 'object', properties: {}, required: [], ...(tool.parameters as object) },
})

/** Caches the serialized list for each version of the catalogue. */
function listing(): (catalogue: Catalogue) => RouteReply {
  const written = new WeakMap<Catalogue, string>()
  return catalogue => {
    const { tools } = catalogue
    const text = written.get(catalogue) ?? JSON.stringify({ tools: tools.map(schemaRecord), count: tools.length })
    written.set(catalogue, text)
    return { text, headers: { 'Content-Type': 'application/json; charset=utf-8' } }
  }
}

/** The request body. The schema of the route has validated it. */
interface CallBody {
  readonly arguments?: CallArguments | null
  readonly timeout?: number
}

async function callTool(published: PublishedTool, { arguments: args, timeout }: CallBody, calls: ToolCaller, ctx: CallContext) {
  const startedAt = performance.now()
  const timeoutMs = timeout === undefined ? (published.tool.timeoutMs ?? CALL_LIMITS.timeoutMs) : timeout * 1000
  const limit = timeout === undefined ? {} : { timeoutMs }
  const end = await calls.call(published, args ?? {}, ctx, limit)
  if (end.type === 'input' || end.result.isError) throw callError(published.name, end, timeoutMs)
  const { content, structured } = end.result
  return {
    success: true,
    tool: published.name,
    content,
    ...(structured === undefined ? {} : { structured_content: structured }),
    is_error: false,
    duration_ms: Math.round(performance.now() - startedAt),
  }
}

type Details = Readonly<Record<string, unknown>>

/** Converts a failed call to an error of the API. The cause can be in a connected server. */
function callError(name: string, end: CallEnd, timeoutMs: number): SvcError {
  if (end.type === 'input') return toolFailed(name, 'it needs an answer, and this route does not support questions', [])
  const { result, thrown } = end
  const details: Details = (thrown as { details?: Details } | undefined)?.details ?? {}
  const translate = TRANSLATED[codeOf(thrown) ?? '']
  return translate?.(name, thrown, details, timeoutMs) ?? toolFailed(name, reasonOf(details) ?? textOf(result), result.content)
}

type Translate = (name: string, thrown: unknown, details: Details, timeoutMs: number) => SvcError | undefined

const upstream: Translate = (_name, thrown, { server, retryable }) =>
  typeof server === 'string' ? upstreamFailed(messageOf(thrown), server, retryable === true) : undefined

const BY_CLASS: Readonly<Partial<Record<McpErrorClass, Translate>>> = {
  connection_refused: upstream,
  authentication_failed: upstream,
  protocol_error: upstream,
  cancelled: upstream,
  tool_not_found: name => toolUnknown(name),
  // one error, whether this server or the connected one counts the time
  timeout: (name, _thrown, _details, timeoutMs) => callLate(name, timeoutMs),
}

/** Errors that have another cause than the tool itself, by code. */
const TRANSLATED: Readonly<Record<string, Translate>> = {
  TIMEOUT: (name, thrown) => toolLate(name, messageOf(thrown)),
  PROVIDER_ERROR: upstream,
  MCP_CALL_FAILED: (name, thrown, details, timeoutMs) =>
    BY_CLASS[details.class as McpErrorClass]?.(name, thrown, details, timeoutMs),
  PLUGIN_GONE: (_name, thrown) => thrown as SvcError,
}

const MAX_REASON = 2_000

const reasonOf = ({ reason }: Details) => (typeof reason === 'string' ? reason.slice(0, MAX_REASON) : undefined)

const textOf = ({ content }: ToolResult) => textOfResult(content).slice(0, MAX_REASON) || 'the tool reported a failure'
