import { BOOLEAN, nullable, OBJECT, object, ok, STRING, text, words } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Json, McpClients, McpLoginStep, McpTestStep, Route } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { framesOf } from '../frames.ts'

// Routes that connect to an MCP server for a client: tests and logins.

export const MCP_PATH = '/api/v1/mcp/servers'
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
export const failure: JsonSchema = { oneOf: [FAILURE, { type: 'null' }] }
export const closed = (schema: JsonSchema): JsonSchema => ({ ...(schema as object), additionalProperties: false })
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

/** Tests and logins, as streams of their steps. */
export const streamRoutes = (clients: McpClients, publish: Publish): Record<string, Route> => ({
  mcp_server_test: {
    method: 'POST',
    path: `${MCP_PATH}/:name/test`,
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
  path: `${MCP_PATH}/:name/login`,
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

export const loginAnswerRoute = (clients: McpClients): Route => ({
  method: 'POST',
  path: `${MCP_PATH}/:name/login/answer`,
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

type TestEnd = { readonly type: 'end'; readonly server: string; readonly ok: boolean }

async function* withEnd(steps: AsyncIterable<McpTestStep>, server: string): AsyncGenerator<McpTestStep | TestEnd, void> {
  let isGood = true
  for await (const step of steps) {
    if (step.error) isGood = false
    yield step
  }
  yield { type: 'end', server, ok: isGood }
}

const stepRecord = ({ step, ms, found, error }: McpTestStep) => ({
  type: 'step',
  step,
  ms,
  found: found ?? null,
  error: error ? { class: error.class, message: error.message } : null,
})
