import { errorFromRecord } from '@svc/cli/command'
import type {
  ErrorRecord,
  McpClients,
  McpFailure,
  McpInspection,
  McpServerInfo,
  McpTestStep,
  McpTool,
  ServerClient,
} from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'

/** The part of the service that commands use. */
export type ManagedClients = Pick<McpClients, 'list' | 'inspect' | 'approveVersions' | 'setEnabled' | 'test'>

const PATH = '/api/v1/mcp/servers'

/** A server as the API shows it: absent members are null, times are text. */
interface ServerShown {
  readonly name: string
  readonly url: string | null
  readonly command: readonly string[] | null
  readonly runs: NonNullable<McpServerInfo['runs']>
  readonly state: McpServerInfo['state']
  readonly since: string | null
  readonly last_error: McpFailure | null
  readonly attempts: number
  readonly next_retry_at: string | null
  readonly protocol_version: string | null
  readonly tools: readonly string[]
  readonly changed: readonly string[]
  readonly effects: McpServerInfo['effects']
  readonly call_limit_ms: number
  readonly removable: boolean
  readonly stderr: string | null
}

interface ToolShown extends Pick<McpTool, 'name' | 'description' | 'status'> {
  readonly title: string | null
  readonly input_schema: McpTool['inputSchema']
  readonly output_schema: NonNullable<McpTool['outputSchema']> | null
  readonly annotations: NonNullable<McpTool['annotations']> | null
  readonly difference: readonly string[]
  readonly stripped: readonly string[]
  readonly version: string
}

/** An event of a test. */
type TestEvent =
  | {
      readonly type: 'step'
      readonly step: McpTestStep['step']
      readonly ms: number
      readonly found: string | null
      readonly error: McpFailure | null
    }
  | { readonly type: 'end' }
  | ({ readonly type: 'error' } & Omit<ErrorRecord, 'success'>)

/** The MCP servers of a server over its API, which checks the caller. */
export const remoteClients = (server: ServerClient): ManagedClients => ({
  async list() {
    const { servers } = await server.request<{ servers: readonly ServerShown[] }>('GET', PATH)
    return servers.map(serverOf)
  },
  async inspect(name, fresh) {
    const path = `${pathOf(name)}/tools?fresh=${fresh}`
    const {
      tools,
      left_out: problems,
      failure,
    } = await server.request<{
      tools: readonly ToolShown[]
      left_out: readonly string[]
      failure: McpFailure | null
    }>('GET', path)
    return { tools: tools.map(toolOf), problems, ...definedOf({ failure: failure ?? undefined }) } satisfies McpInspection
  },
  approveVersions: (name, tools) => server.request('POST', `${pathOf(name)}/approve`, { body: { tools } }),
  setEnabled: (name, enabled) => server.request('POST', `${pathOf(name)}/${enabled ? 'enable' : 'disable'}`),
  async *test(name, call) {
    const body = call === undefined ? {} : { tool: call.tool, arguments: call.args }
    for await (const { data } of server.stream('POST', `${pathOf(name)}/test`, { body })) {
      // the server is of the same project
      const event = JSON.parse(data) as TestEvent
      if (event.type === 'error') throw errorFromRecord(event, { where: server.url })
      if (event.type === 'step') yield stepOf(event)
    }
  },
})

const pathOf = (name: string) => `${PATH}/${encodeURIComponent(name)}`
const listed = (lines: readonly string[]) => (lines.length === 0 ? undefined : lines)

const serverOf = (server: ServerShown): McpServerInfo => ({
  name: server.name,
  state: server.state,
  since: server.since === null ? 0 : Date.parse(server.since),
  attempts: server.attempts,
  tools: server.tools,
  effects: server.effects,
  callLimitMs: server.call_limit_ms,
  runs: server.runs,
  removable: server.removable,
  ...definedOf({
    url: server.url ?? undefined,
    command: server.command ?? undefined,
    lastError: server.last_error ?? undefined,
    nextRetryAt: server.next_retry_at === null ? undefined : Date.parse(server.next_retry_at),
    protocolVersion: server.protocol_version ?? undefined,
    changed: listed(server.changed),
    stderr: server.stderr ?? undefined,
  }),
})

const toolOf = (tool: ToolShown): McpTool => ({
  name: tool.name,
  description: tool.description,
  inputSchema: tool.input_schema,
  status: tool.status,
  version: tool.version,
  ...definedOf({
    title: tool.title ?? undefined,
    outputSchema: tool.output_schema ?? undefined,
    annotations: tool.annotations ?? undefined,
    difference: listed(tool.difference),
    stripped: listed(tool.stripped),
  }),
})

const stepOf = ({ step, ms, found, error }: Extract<TestEvent, { type: 'step' }>): McpTestStep => ({
  step,
  ms,
  ...definedOf({ found: found ?? undefined, error: error ?? undefined }),
})
