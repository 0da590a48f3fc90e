import { Args, SvcCommand } from '@svc/cli/command'
import { type CallContext, formatError, systemContext } from '@svc/core'
import { McpClients, type ServerChoice, Store } from '@svc/core/contracts'
import { managedServer, oneLine, storeNotShared } from '@svc/plugin-kit'
import { fromWire, reloadServers } from '@svc/runtime'
import { readServers, type McpServerSettings, serverNamed } from '../registry/configured-servers.ts'
import { homeFile } from '../registry/home-file.ts'
import { openRecords } from '../registry/records.ts'
import { MCP_CLIENTS, type McpClientConfig } from '../registry/settings.ts'
import { type ManagedClients, remoteClients } from './remote-clients.ts'

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
    const own = MCP_CLIENTS.check(config).length === 0 ? config : []
    const { servers, problems } = await readServers(own, homeFile(this.home))
    for (const problem of problems) throw problem
    return servers
  }

  protected async serverNamed(name: string): Promise<McpServerSettings> {
    return serverNamed(await this.servers(), name)
  }

  /** The store that all servers of this home share. Throws STORE_NOT_SHARED if it is not durable. */
  protected async openStore(): Promise<Store> {
    const ctx = this.callContext
    const store = (await this.host()).service(Store)
    const { durable, kind } = await store.probe(ctx)
    if (!durable) throw storeNotShared(kind, 'the server would not see the change')
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
      for (const line of problems.flatMap(problem => formatError(fromWire(problem)).split('\n')))
        this.note(`${/^ */.exec(line)![0]}${oneLine(line, MAX_LINE)}`)
      if (problems.length > 0) code = 1
    }
    return code
  }
}

export const SERVER_ARG = { name: Args.string({ description: 'Name of an MCP server', required: true, ignoreStdin: true }) }
