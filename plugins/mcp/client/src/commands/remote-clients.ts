import { errorFromRecord } from '@svc/cli/command'
import type {
  ErrorRecord,
  McpClients,
  McpInspection,
  McpServerInfo,
  McpTestStep,
  McpTool,
  ServerClient,
} from '@svc/core/contracts'
import { definedOf, fromRecord } from '@svc/plugin-kit'

/** The part of the service that commands use. */
export type ManagedClients = Pick<McpClients, 'list' | 'inspect' | 'approveVersions' | 'setEnabled' | 'test'>

const PATH = '/api/v1/mcp/servers'

/** A server as the API shows it: times are text. */
type ServerShown = Omit<McpServerInfo, 'since' | 'nextRetryAt'> & { readonly since?: string; readonly nextRetryAt?: string }

/** An event of a test. */
type TestEvent =
  | ({ readonly type: 'step' } & McpTestStep)
  | { readonly type: 'end' }
  | ({ readonly type: 'error' } & Omit<ErrorRecord, 'success'>)

/** The MCP servers of a server over its API, which checks the caller. */
export const remoteClients = (server: ServerClient): ManagedClients => ({
  async list() {
    const { servers } = await server.request<{ servers: readonly object[] }>('GET', PATH)
    return servers.map(serverOf)
  },
  async inspect(name, fresh) {
    const path = `${pathOf(name)}/tools?fresh=${fresh}`
    const answer = await server.request<{ tools: readonly object[]; left_out: readonly string[] }>('GET', path)
    const { failure } = fromRecord<Pick<McpInspection, 'failure'>>(answer)
    return { tools: answer.tools.map(toolOf), problems: answer.left_out, ...definedOf({ failure }) }
  },
  approveVersions: (name, tools) => server.request('POST', `${pathOf(name)}/approve`, { body: { tools } }),
  setEnabled: (name, enabled) => server.request('POST', `${pathOf(name)}/${enabled ? 'enable' : 'disable'}`),
  async *test(name, call) {
    const body = call === undefined ? {} : { tool: call.tool, arguments: call.args }
    for await (const { data } of server.stream('POST', `${pathOf(name)}/test`, { body })) {
      // the server is of the same project
      const event = JSON.parse(data) as TestEvent
      if (event.type === 'error') throw errorFromRecord(event, { where: server.url })
      if (event.type !== 'step') continue
      const { type: _type, ...step } = event
      yield fromRecord<McpTestStep>(step)
    }
  },
})

const pathOf = (name: string) => `${PATH}/${encodeURIComponent(name)}`
const listed = (lines: readonly string[] | undefined) => (lines?.length === 0 ? undefined : lines)

function serverOf(record: object): McpServerInfo {
  const { since, nextRetryAt, changed, ...info } = fromRecord<ServerShown>(record)
  return {
    ...info,
    since: since === undefined ? 0 : Date.parse(since),
    ...definedOf({ nextRetryAt: nextRetryAt === undefined ? undefined : Date.parse(nextRetryAt), changed: listed(changed) }),
  }
}

function toolOf(record: object): McpTool {
  const { difference, stripped, ...tool } = fromRecord<McpTool>(record)
  return { ...tool, ...definedOf({ difference: listed(difference), stripped: listed(stripped) }) }
}
