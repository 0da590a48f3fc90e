import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { BOOLEAN, INTEGER, list, nullable, OBJECT, object, ok, STRING, text, words } from '@svc/api-types'
import type { CallContext, JsonSchema } from '@svc/core'
import type {
  Json,
  McpClients,
  McpInspection,
  McpLoginStep,
  McpServerEntry,
  McpServerInfo,
  McpServersChange,
  McpTestStep,
  McpTool,
  Route,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { framesOf } from '../frames.ts'
import { HINT, isAdmin, notFound, RELOAD_HINT, STALE, timeRecord } from '../records.ts'

const PATH = '/api/v1/mcp/servers'
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
const STEPS = [
  'resolve',
  'connect',
  'tls',
  'start',
  'auth',
  'handshake',
  'list',
  'call',
] as const satisfies readonly McpTestStep['step'][]

const FAILURE: JsonSchema = { ...(object({ class: STRING, message: STRING }) as object), title: 'McpFailure' }
const failure: JsonSchema = { oneOf: [FAILURE, { type: 'null' }] }
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
const closed = (schema: JsonSchema): JsonSchema => ({ ...(schema as object), additionalProperties: false })
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
const testBody: JsonSchema = closed(
  object({ tool: text('A tool to call at the end.'), arguments: { ...(OBJECT as object), description: 'Its arguments.' } }, [])
)
const loginBody: JsonSchema = closed(
  object(
    {
      port: { type: 'integer', minimum: 1, maximum: 65_535, description: 'Local port for the browser. Default: any free port.' },
    },
    []
  )
)
const answerBody: JsonSchema = closed(
  object({
    login_id: { ...(text('The login_id of the page event.') as object), maxLength: 300 },
    address: { ...(text('The address to which the browser was sent back.') as object), maxLength: 8_000 },
  })
)
const errorEvent = object({ type: { const: 'error' }, error: STRING, error_code: STRING, details: OBJECT })
const streamOf = (description: string, schemas: readonly JsonSchema[], title: string) => ({
  '200': { description, schema: { title, oneOf: [...schemas, errorEvent] }, contentType: 'text/event-stream' },
})

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
    path: PATH,
    summary: 'List the connected MCP servers',
    scope: 'read',
    responses: ok('The servers.', object({ servers: list(SERVER) })),
    handle: async (_request, ctx) => ({ body: { servers: (await clients.list(ctx)).map(info => serverRecord(info, ctx)) } }),
  },
  mcp_server: {
    method: 'GET',
    path: `${PATH}/:name`,
    summary: 'Read the state of an MCP server',
    scope: 'read',
    responses: ok('The server.', SERVER),
    handle: async ({ params }, ctx) => ({ body: serverRecord(await serverNamed(clients, params.name!, ctx), ctx) }),
  },
  mcp_server_tools: {
    method: 'GET',
    path: `${PATH}/:name/tools`,
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
    path: PATH,
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
    path: `${PATH}/:name`,
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
    path: `${PATH}/:name/approve`,
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

const loginAnswerRoute = (clients: McpClients): Route => ({
  method: 'POST',
  path: `${PATH}/:name/login/answer`,
  summary: 'Complete a login with the address to which the browser was redirected',
  description: 'Use it if the browser runs on another machine, because it cannot reach the local port of the server.',
  scope: 'admin',
  body: answerBody,
  responses: ok('The login continues.', object({ success: BOOLEAN })),
  async handle({ body }, ctx) {
    const { login_id: id, address } = body as unknown as { readonly login_id: string; readonly address: string }
    await clients.answerLogin(id, address, ctx)
    return { body: { success: true } }
  },
})

const switchRoute = (clients: McpClients, publish: Publish, enabled: boolean): Route => ({
  method: 'POST',
  path: `${PATH}/:name/${enabled ? 'enable' : 'disable'}`,
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

const streamRoutes = (clients: McpClients, publish: Publish): Record<string, Route> => ({
  mcp_server_test: {
    method: 'POST',
    path: `${PATH}/:name/test`,
    summary: 'Test the connection to an MCP server step by step',
    scope: 'admin',
    body: testBody,
    responses: streamOf(
      'Server-sent events: a step event for each step, then an end. The first failed step is the last. Comments are heartbeats.',
      [
        object({
          type: { const: 'step' },
          step: words(...STEPS),
          ms: { type: 'number' },
          found: nullable('string'),
          error: failure,
        }),
        object({ type: { const: 'end' }, server: STRING, ok: BOOLEAN }),
      ],
      'McpTestEvent'
    ),
    streams: 'text/event-stream',
    stream({ params, body }, ctx) {
      const { tool, arguments: args = {} } = body as unknown as {
        readonly tool?: string
        readonly arguments?: Record<string, Json>
      }
      const call = tool === undefined ? undefined : { tool, args }
      const record = (step: McpTestStep | TestEnd) => ('ok' in step ? step : stepRecord(step))
      const steps = withEnd(clients.test(params.name!, call, ctx), params.name!)
      return framesOf(steps, { record, failed: () => ({ type: 'end', server: params.name!, ok: false }) }, ctx)
    },
  },
  mcp_server_login: loginRoute(clients, publish),
})

const loginRoute = (clients: McpClients, publish: Publish): Route => ({
  method: 'POST',
  path: `${PATH}/:name/login`,
  summary: 'Log in to an MCP server in a browser',
  description:
    'The page event has the address to open. The browser comes back to a local port of the server. If it runs on another machine, pass the address that it shows then to POST …/login/answer.',
  scope: 'admin',
  body: loginBody,
  responses: streamOf(
    'Server-sent events: page, then done. Without a page event, no login was needed. The login ends with the stream.',
    [
      object({ type: { const: 'page' }, login_id: STRING, url: STRING, redirect: STRING }),
      object({ type: { const: 'done' }, server: STRING }),
      object({ type: { const: 'failed' }, server: STRING }),
    ],
    'McpLoginEvent'
  ),
  streams: 'text/event-stream',
  stream({ params, body }, ctx) {
    const server = params.name!
    const { port } = body as unknown as { readonly port?: number }
    const record = (step: McpLoginStep) => {
      if (step.type === 'page') return { type: 'page', login_id: step.id, url: step.url, redirect: step.redirect }
      publish({ type: 'mcp_server_logged_in', subject: `mcp/servers/${server}`, after: {} }, ctx)
      return { type: 'done', server }
    }
    return framesOf(clients.login(server, port, ctx), { record, failed: () => ({ type: 'failed', server }) }, ctx)
  },
})

type TestEnd = { readonly type: 'end'; readonly server: string; readonly ok: boolean }

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

async function* withEnd(steps: AsyncIterable<McpTestStep>, server: string): AsyncGenerator<McpTestStep | TestEnd, void> {
  let isGood = true
  for await (const step of steps) {
    if (step.error) isGood = false
    yield step
  }
  yield { type: 'end', server, ok: isGood }
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

const wordsOf = ({ title, description, inputSchema, outputSchema, annotations }: NonNullable<McpTool['approved']>) => ({
  title: title ?? null,
  description,
  input_schema: inputSchema,
  output_schema: outputSchema ?? null,
  annotations: annotations ?? null,
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

const stepRecord = ({ step, ms, found, error }: McpTestStep) => ({
  type: 'step',
  step,
  ms,
  found: found ?? null,
  error: error ? { class: error.class, message: error.message } : null,
})
