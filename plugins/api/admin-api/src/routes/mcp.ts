import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { BOOLEAN, INTEGER, list, nullable, OBJECT, object, ok, STRING, text, words } from '@svc/api-types'
import type { CallContext, JsonSchema } from '@svc/core'
import type {
  Json,
  McpClients,
  McpInspection,
  McpServerEntry,
  McpServerInfo,
  McpServersChange,
  McpTool,
  Route,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { HINT, isAdmin, notFound, RELOAD_HINT, STALE, timeRecord } from '../records.ts'
import { closed, failure, loginAnswerRoute, MCP_PATH, streamRoutes } from './mcp-connections.ts'

const STATES = [
  'disconnected',
  'connecting',
  'connected',
  'degraded',
  'reconnecting',
  'failed',
  'disabled',
  'quarantined',
  'needs_auth',
] as const satisfies readonly McpServerInfo['state'][]
const SERVER: JsonSchema = {
  ...(object({
    name: STRING,
    url: { ...(nullable('string') as object), description: 'Without its query. null: a local program.' },
    command: { type: ['array', 'null'], items: STRING, description: 'The command line of a local program, for the scope admin.' },
    runs: words('remote', 'sandbox', 'all rights'),
    state: words(...STATES),
    since: { type: ['string', 'null'], format: 'date-time' },
    last_error: failure,
    attempts: INTEGER,
    next_retry_at: { type: ['string', 'null'], format: 'date-time' },
    protocol_version: nullable('string'),
    tools: { ...(list(STRING) as object), description: 'The usable tools.' },
    changed: { ...(list(STRING) as object), description: 'Changed tools, unusable until they are approved.' },
    effects: list(words('read', 'write', 'execute', 'network')),
    call_limit_ms: INTEGER,
    removable: { ...(BOOLEAN as object), description: 'False: it is in the configuration.' },
    stderr: { ...(nullable('string') as object), description: 'The last lines of its standard error, for the scope admin.' },
  }) as object),
  title: 'McpServer',
}
const WORDS = {
  title: nullable('string'),
  description: STRING,
  input_schema: OBJECT,
  output_schema: { type: ['object', 'null'] },
  annotations: { type: ['object', 'null'] },
  ui: { type: ['object', 'null'], description: 'Its app: `_meta.ui` of MCP Apps.' },
} as const satisfies Record<string, JsonSchema>
const TOOL: JsonSchema = {
  ...(object({
    name: STRING,
    ...WORDS,
    status: words('good', 'changed', 'hidden'),
    difference: { ...(list(STRING) as object), description: 'Differences of a changed tool, one per line.' },
    approved: {
      oneOf: [object(WORDS), { type: 'null' }],
      description: 'A changed tool as it was approved or first seen. null: it is not changed, or too many tools are remembered.',
    },
    stripped: { ...(list(STRING) as object), description: 'Removed hidden characters by place.' },
    version: { ...(STRING as object), description: 'A digest of this description, for the approval.' },
  }) as object),
  title: 'McpServerTool',
}
const CHANGE: JsonSchema = {
  ...(object({
    server: STRING,
    applied: { ...(BOOLEAN as object), description: 'A running server has loaded it. false: a reload is needed.' },
    problems: list(object({ code: STRING, message: STRING })),
    hint: HINT,
  }) as object),
  title: 'McpServersChange',
}
/** A change that no running server has taken waits for a reload. */
const changeRecord = (server: string, { applied, problems }: Omit<McpServersChange, 'name'>) => ({
  server,
  applied,
  problems: problems.map(({ code, message }) => ({ code, message })),
  hint: applied ? null : RELOAD_HINT,
})
const texts = { type: 'array', items: { ...(text() as object), maxLength: 200 }, maxItems: 1_000 } as const

/** The keys of `mcp.clients`. The service checks their values, and refuses those that run a program. */
const addBody: JsonSchema = closed(
  object(
    {
      name: { ...(text('Name of the server; prefix of its tools.') as object), maxLength: 32 },
      url: {
        type: 'string',
        pattern: '^\\S+$',
        patternHint: 'must be a URL without spaces',
        maxLength: 2_000,
        description: 'URL of a remote server (HTTP).',
      },
      command: { ...(STRING as object), description: 'Only with mcp.allow_stdio_over_http: program of a local server.' },
      args: { ...(list(STRING) as object), description: 'Only with mcp.allow_stdio_over_http.' },
      env: { ...(OBJECT as object), description: 'Only with mcp.allow_stdio_over_http.' },
      idle_timeout: { type: 'number', description: 'Only with mcp.allow_stdio_over_http.' },
      timeout: { type: 'number', description: 'Maximum seconds of a call.' },
      retry_attempts: INTEGER,
      api_key_env: { ...(STRING as object), description: 'A variable of svc whose name begins with SVC_MCP_.' },
      api_key_header: STRING,
      oauth: { ...(OBJECT as object), description: 'As mcp.clients[].oauth.' },
      sandbox: BOOLEAN,
      sandbox_config: OBJECT,
      tools: texts,
      allow: texts,
      deny: texts,
      effects: list(STRING),
      enabled: BOOLEAN,
    },
    ['name']
  )
)
const approveBody: JsonSchema = closed(
  object({
    tools: {
      type: 'array',
      items: closed(object({ name: text('Name of the tool.'), version: text('The version that was shown.') })),
      minItems: 1,
      maxItems: 1_000,
    },
  })
)
/** Routes for the connected MCP servers. */
export const createMcpRoutes = (clients: McpClients, publish: Publish, leaving: AbortSignal): Record<string, Route> => ({
  ...readRoutes(clients),
  ...editRoutes(clients, publish, leaving),
  ...changeRoutes(clients, publish),
  ...streamRoutes(clients, publish),
})

const readRoutes = (clients: McpClients): Record<string, Route> => ({
  mcp_servers: {
    method: 'GET',
    path: MCP_PATH,
    summary: 'List the connected MCP servers',
    scope: 'read',
    responses: ok('The servers.', object({ servers: list(SERVER) })),
    handle: async (_request, ctx) => ({ body: { servers: (await clients.list(ctx)).map(info => serverRecord(info, ctx)) } }),
  },
  mcp_server: {
    method: 'GET',
    path: `${MCP_PATH}/:name`,
    summary: 'Read the state of an MCP server',
    scope: 'read',
    responses: ok('The server.', SERVER),
    handle: async ({ params }, ctx) => ({ body: serverRecord(await serverNamed(clients, params.name!, ctx), ctx) }),
  },
  mcp_server_tools: {
    method: 'GET',
    path: `${MCP_PATH}/:name/tools`,
    summary: 'List the tools of an MCP server with their changes',
    scope: 'read',
    query: object({ fresh: { ...(words('true', 'false') as object), description: 'true asks the server now.' } }, []),
    responses: ok('The tools.', object({ server: STRING, tools: list(TOOL), left_out: list(STRING), failure })),
    async handle({ params, query }, ctx) {
      const inspection = await clients.inspect(params.name!, query.fresh === 'true', ctx)
      return { body: inspectionRecord(params.name!, inspection) }
    },
  },
})

const editRoutes = (clients: McpClients, publish: Publish, leaving: AbortSignal): Record<string, Route> => ({
  mcp_server_add: {
    method: 'POST',
    path: MCP_PATH,
    summary: 'Add an MCP server',
    description: 'Writes it to mcp.yaml, and reloads the server, as `svc mcp add` does.',
    scope: 'admin',
    body: addBody,
    responses: { '201': { description: 'It is written.', schema: CHANGE } },
    async handle({ body }, ctx) {
      const entry = body as unknown as McpServerEntry
      const { name, ...change } = await clients.add(entry, ctx)
      publish({ type: 'mcp_server_added', subject: `mcp/servers/${name}`, after: shownEntry(entry) }, ctx)
      if (change.applied) await untilDraining(leaving)
      return { status: 201, body: changeRecord(name, change) }
    },
  },
  mcp_server_remove: {
    method: 'DELETE',
    path: `${MCP_PATH}/:name`,
    summary: 'Remove an MCP server with its approvals and its login',
    scope: 'admin',
    responses: ok('It is removed.', CHANGE),
    async handle({ params }, ctx) {
      const before = (await clients.list(ctx)).find(({ name }) => name === params.name)
      const { name, ...change } = await clients.remove(params.name!, ctx)
      publish({ type: 'mcp_server_removed', subject: `mcp/servers/${name}`, before: before ? { url: before.url } : {} }, ctx)
      if (change.applied) await untilDraining(leaving)
      return { body: changeRecord(name, change) }
    },
  },
})

const changeRoutes = (clients: McpClients, publish: Publish): Record<string, Route> => ({
  mcp_server_approve: {
    method: 'POST',
    path: `${MCP_PATH}/:name/approve`,
    summary: 'Approve changed tools of an MCP server, in the versions that were shown',
    description: 'PRECONDITION_FAILED (412) if one of them has changed again.',
    scope: 'admin',
    body: approveBody,
    responses: { ...ok('The server.', SERVER), ...STALE },
    async handle({ params, body }, ctx) {
      const { tools } = body as unknown as { readonly tools: readonly { readonly name: string; readonly version: string }[] }
      await clients.approveVersions(params.name!, tools, ctx)
      publish(
        { type: 'mcp_tools_approved', subject: `mcp/servers/${params.name}`, after: { tools: tools as unknown as Json } },
        ctx
      )
      return { body: serverRecord(await serverNamed(clients, params.name!, ctx), ctx) }
    },
  },
  mcp_server_enable: switchRoute(clients, publish, true),
  mcp_server_disable: switchRoute(clients, publish, false),
  mcp_login_answer: loginAnswerRoute(clients),
})

const switchRoute = (clients: McpClients, publish: Publish, enabled: boolean): Route => ({
  method: 'POST',
  path: `${MCP_PATH}/:name/${enabled ? 'enable' : 'disable'}`,
  summary: enabled ? 'Enable an MCP server, and end a quarantine' : 'Disable an MCP server until it is enabled',
  scope: 'admin',
  responses: ok('The server.', SERVER),
  async handle({ params }, ctx) {
    const before = await serverNamed(clients, params.name!, ctx)
    await clients.setEnabled(params.name!, enabled, ctx)
    const after = await serverNamed(clients, params.name!, ctx)
    const type = enabled ? 'mcp_server_enabled' : 'mcp_server_disabled'
    publish({ type, subject: `mcp/servers/${params.name}`, before: { state: before.state }, after: { state: after.state } }, ctx)
    return { body: serverRecord(after, ctx) }
  },
})

/** Limit for the wait, and the time in which the HTTP server begins to drain. */
const [DRAINING_MS, CLOSED_MS] = [2_000, 100]

/**
 * A reload has brought up other workers. Once this one drains, its response closes the connection: the next request of this client reaches a worker that has
 * loaded the change.
 */
async function untilDraining(leaving: AbortSignal): Promise<void> {
  if (!leaving.aborted) await once(leaving, 'abort', { signal: AbortSignal.timeout(DRAINING_MS) }).catch(() => undefined)
  await setTimeout(CLOSED_MS)
}

async function serverNamed(clients: McpClients, name: string, ctx: CallContext): Promise<McpServerInfo> {
  const server = (await clients.list(ctx)).find(one => one.name === name)
  if (server) return server
  throw notFound('server', name)
}

/** The entry without its credentials, for the event of its addition. */
const shownEntry = ({ oauth, env, url, ...entry }: McpServerEntry): { [key: string]: Json } => ({
  ...(entry as { [key: string]: Json }),
  ...(url === undefined ? {} : { url: url.replace(/[?#].*$/s, '') }),
  ...(oauth === undefined ? {} : { oauth: '[set]' }),
  ...(env === undefined ? {} : { env: '[set]' }),
})

/** Command lines and standard error can have paths of the machine, so that only an administrator gets them. */
function serverRecord(info: McpServerInfo, ctx: CallContext) {
  const isShown = isAdmin(ctx)
  return {
    name: info.name,
    url: info.url ?? null,
    command: isShown && info.command ? [...info.command] : null,
    runs: info.runs ?? (info.url === undefined ? 'all rights' : 'remote'),
    state: info.state,
    since: timeRecord(info.since || undefined),
    last_error: info.lastError ? { class: info.lastError.class, message: info.lastError.message } : null,
    attempts: info.attempts,
    next_retry_at: timeRecord(info.nextRetryAt),
    protocol_version: info.protocolVersion ?? null,
    tools: [...info.tools],
    changed: [...(info.changed ?? [])],
    effects: [...info.effects],
    call_limit_ms: info.callLimitMs,
    removable: info.removable ?? false,
    stderr: (isShown && info.stderr) || null,
  }
}

const wordsOf = ({ title, description, inputSchema, outputSchema, annotations, ui }: NonNullable<McpTool['approved']>) => ({
  title: title ?? null,
  description,
  input_schema: inputSchema,
  output_schema: outputSchema ?? null,
  annotations: annotations ?? null,
  ui: ui ? { ...ui, visibility: [...ui.visibility] } : null,
})

const toolRecord = ({ name, status, ...tool }: McpTool) => ({
  name,
  ...wordsOf(tool),
  status,
  difference: [...(tool.difference ?? [])],
  approved: tool.approved ? wordsOf(tool.approved) : null,
  stripped: [...(tool.stripped ?? [])],
  version: tool.version ?? '',
})

const inspectionRecord = (server: string, { tools, problems, failure: reason }: McpInspection) => ({
  server,
  tools: tools.map(toolRecord),
  left_out: [...problems],
  failure: reason ? { class: reason.class, message: reason.message } : null,
})
