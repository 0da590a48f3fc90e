import type { JsonSchema, CallContext } from '@svc/core'
import type { Route, RouteReply } from '@svc/core/contracts'
import type { Arguments, Calls } from './call.ts'
import type { Catalogue, PublishedTool } from './catalogue.ts'
import { toolUnknown, toolWithheld } from './errors.ts'
import type { Published } from './published.ts'
import { failureOf } from './call-failure.ts'

/** What the routes stand on. */
type ToolRouteParts = Pick<Published, 'catalogue' | 'withheld' | 'calls'>

/** A tool as `GET /tools` tells it; `parameters` is its JSON Schema, untouched. */
interface ToolSchemaRecord {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/** Decisions.md section 2, limits. */
const BODY_LIMIT = 4 * 1_048_576
/** Seconds a caller may give a call. */
const LONGEST = 3_600

const object = (properties: Readonly<Record<string, JsonSchema>>, required = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required,
})
const STRING: JsonSchema = { type: 'string' }
const OBJECT: JsonSchema = { type: 'object' }
const toolSchema: JsonSchema = {
  title: 'ToolSchema',
  type: 'object',
  properties: { name: STRING, description: STRING, parameters: { ...OBJECT, description: 'JSON Schema of the arguments.' } },
  required: ['name', 'description', 'parameters'],
}
const toolList = object({ tools: { type: 'array', items: toolSchema }, count: { type: 'integer' } })
const callBody = object(
  {
    arguments: { type: ['object', 'null'], description: 'What the tool is given, by its parameters; null is like absent.' },
    timeout: { type: 'number', exclusiveMinimum: 0, maximum: LONGEST, description: 'Seconds that the call may take.' },
  },
  []
)
const callResult = object(
  {
    success: { const: true },
    tool: STRING,
    content: { type: 'array', items: OBJECT, description: 'Blocks of content as the tool protocol (MCP) has them.' },
    structured_content: { description: 'The same as data, where the tool answers data.' },
    is_error: { const: false },
    duration_ms: { type: 'integer' },
  },
  ['success', 'tool', 'content', 'is_error', 'duration_ms']
)

const refusal = object({ success: { const: false }, error: STRING, error_code: STRING, details: OBJECT })

const ok = (description: string, schema: JsonSchema) => ({ '200': { description, schema } })

/** The tools over plain HTTP: `GET /tools`, `GET /tools/{name}`, `POST /tools/{name}/call`. */
export function createToolRoutes({ catalogue, withheld, calls }: ToolRouteParts): Record<string, Route> {
  const listed = listing()
  const toolOf = async (name = '', ctx: CallContext): Promise<PublishedTool> => {
    const found = catalogue().get(name)
    if (found) return found
    const server = await withheld(name, ctx)
    throw server === undefined ? toolUnknown(name) : toolWithheld(name, server)
  }
  return {
    mcp_tools: {
      method: 'GET',
      path: '/tools',
      summary: 'List the published tools',
      scope: 'tools',
      responses: ok('The tools in the order of their names.', toolList),
      handle: async () => listed(catalogue()),
    },
    mcp_tool: {
      method: 'GET',
      path: '/tools/:name',
      summary: 'Get the schema of one tool',
      scope: 'tools',
      responses: ok('The tool.', toolSchema),
      handle: async ({ params }, ctx) => ({ body: schemaRecord(await toolOf(params.name, ctx)) }),
    },
    mcp_tool_call: {
      method: 'POST',
      path: '/tools/:name/call',
      summary: 'Run a tool',
      scope: 'tools',
      body: callBody,
      bodyLimit: BODY_LIMIT,
      responses: {
        ...ok('What the tool answered.', callResult),
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
  parameters: tool.parameters,
})

/** The list as text, written once for each state of the catalogue. */
function listing(): (catalogue: Catalogue) => RouteReply {
  const written = new WeakMap<Catalogue, string>()
  return catalogue => {
    const { tools } = catalogue
    const text = written.get(catalogue) ?? JSON.stringify({ tools: tools.map(schemaRecord), count: tools.length })
    written.set(catalogue, text)
    return { text, headers: { 'Content-Type': 'application/json; charset=utf-8' } }
  }
}

/** As the route's schema has checked it. */
interface CallBody {
  readonly arguments?: Arguments | null
  readonly timeout?: number
}

async function callTool(published: PublishedTool, { arguments: args, timeout }: CallBody, calls: Calls, ctx: CallContext) {
  const begun = performance.now()
  const limit = timeout === undefined ? {} : { timeoutMs: timeout * 1000 }
  const end = await calls.call(published, args ?? {}, ctx, limit)
  if (end.type === 'input' || end.result.isError) throw failureOf(published.name, end)
  const { content, structured } = end.result
  return {
    success: true,
    tool: published.name,
    content,
    ...(structured === undefined ? {} : { structured_content: structured }),
    is_error: false,
    duration_ms: Math.round(performance.now() - begun),
  }
}
