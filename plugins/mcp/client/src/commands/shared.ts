import { Args, errorFromRecord, SvcCommand } from '@svc/cli/command'
import { type CallContext, formatError, systemContext } from '@svc/core'
import {
  type ErrorRecord,
  McpClients,
  type McpInspection,
  type McpServerInfo,
  type McpTestStep,
  type McpTool,
  type ServerChoice,
  type ServerClient,
  type Store,
} from '@svc/core/contracts'
import { definedOf, fromRecord, managedServer, oneLine, sharedStore } from '@svc/plugin-kit'
import { reloadServers } from '@svc/runtime'
import { homeFile, type McpServerSettings, readValidServers, serverNamed } from '../registry/configured-servers.ts'
import { openRecords } from '../registry/records.ts'
import { MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'

/** Limit for a line of a problem: a plugin can have written it. */
const MAX_LINE = 2_000

/** Base class of `svc mcp`. */
export abstract class McpCommand extends SvcCommand {
  get callContext(): CallContext {
    return systemContext(this.signal, `svc ${(this.id ?? 'mcp').replaceAll(':', ' ')}`)
  }

  /** The servers of the configuration and of mcp.yaml. Throws the first problem. */
  protected async servers(): Promise<readonly McpServerSettings[]> {
    const config = structuredClone((await this.setting('mcp', 'clients')) ?? []) as readonly McpClientConfig[]
    // `svc config check` and the host report what does not match the schema
    return readValidServers(MCP_CLIENTS.check(config).length === 0 ? config : [], homeFile(this.home))
  }

  protected async serverNamed(name: string): Promise<McpServerSettings> {
    return serverNamed(await this.servers(), name)
  }

  /** The store that all servers of this home share. Throws STORE_NOT_SHARED if it is not durable. */
  protected async openStore(): Promise<Store> {
    const ctx = this.callContext
    const store = await sharedStore(await this.host(), 'the server would not see the change', ctx)
    await openRecords(store, ctx)
    return store
  }

  /** The name of a server: as it is for a server elsewhere, which has its own configuration. Throws MCP_SERVER_UNKNOWN. */
  protected async checkedName(name: string, { url }: ServerChoice): Promise<string> {
    return url === undefined ? (await this.serverNamed(name)).entry.name : name
  }

  /** The connections of the chosen server, or of the plugins in this process if none runs. Throws SERVER_AMBIGUOUS. */
  protected async clients(choice: ServerChoice): Promise<ManagedClients> {
    const server = await managedServer(this, choice)
    return server ? remoteClients(server) : (await this.host()).service(McpClients)
  }

  /** As `clients`, for a change. Throws STORE_NOT_SHARED if no server would see it. */
  protected async changedClients(choice: ServerChoice): Promise<ManagedClients> {
    const server = await managedServer(this, choice)
    if (server) return remoteClients(server)
    await this.openStore()
    return (await this.host()).service(McpClients)
  }

  /** Reloads the running servers of this home. Returns the exit code: 1 if one reports a problem. */
  protected async reloadServers(): Promise<number> {
    const servers = await Array.fromAsync(reloadServers(this.home, this.callContext))
    if (servers.length === 0) this.note('no server is running; the change applies with the next svc serve')
    let code = 0
    for (const { url, problems } of servers) {
      if (problems.length === 0) this.note(`${url} has applied the change`)
      for (const line of problems.flatMap(problem => formatError(problem).split('\n')))
        this.note(`${/^ */.exec(line)![0]}${oneLine(line, MAX_LINE)}`)
      if (problems.length > 0) code = 1
    }
    return code
  }
}

export const SERVER_ARG = { name: Args.string({ description: 'Name of an MCP server', required: true, ignoreStdin: true }) }

/** The part of the service that commands use. */
type ManagedClients = Pick<McpClients, 'list' | 'inspect' | 'approveVersions' | 'setEnabled' | 'test'>

const PATH = '/api/v1/mcp/servers'

/** A server as the API shows it: times are text. */
type ServerShown = Omit<McpServerInfo, 'since' | 'nextRetryAt'> & { readonly since?: string; readonly nextRetryAt?: string }

/** An event of a test. */
type TestEvent =
  | ({ readonly type: 'step' } & McpTestStep)
  | { readonly type: 'end' }
  | ({ readonly type: 'error' } & Omit<ErrorRecord, 'success'>)

/** The MCP servers of a server over its API, which checks the caller. */
const remoteClients = (server: ServerClient): ManagedClients => ({
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
