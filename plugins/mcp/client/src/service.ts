import { type CallContext, type HostReport, systemContext, withTimeout } from '@svc/core'
import type { McpClients, MetricFamily, Peers } from '@svc/core/contracts'
import { createPeerWorkers, type McpContext } from './ownership/context.ts'
import { createLogins } from './ownership/logins.ts'
import { createClients } from './ownership/mcp-clients.ts'
import { createAnswer } from './ownership/questions.ts'
import { ServerOwner } from './ownership/server-owner.ts'
import { ServerRegistry } from './registry/server-registry.ts'
import { createEditor } from './registry/edit.ts'
import type { EditContext } from './registry/settings.ts'
import { createHealth, McpServerMetrics, serverInfoOf } from './registry/server-status.ts'

export { TOPIC } from './ownership/context.ts'

interface McpServiceOptions extends Omit<McpContext, 'workers' | 'self' | 'serverId' | 'holder' | 'registry' | 'metrics'> {
  readonly host: Pick<HostReport, 'serverId' | 'worker'>
  readonly peers: Pick<Peers, 'self' | 'ask'> | undefined
  readonly config: EditContext['config']
  /** Called for each change of a server. */
  readonly changed: (server: string) => void
}

const MAINTAIN_MS = 10_000
const CLOSE_MS = 30_000
const DRAIN_MS = 30_000

/** The connections to MCP servers. Reads their records, and connects nothing before `begin`. */
export async function createMcpService({ peers, changed, host, config, ...given }: McpServiceOptions) {
  const options = { ...given, serverId: host.serverId }
  const { servers, log, lasting } = options
  const self = (await peers?.self(lasting)) ?? 'alone'
  const registry: ServerRegistry = new ServerRegistry({
    ...options,
    shared: peers !== undefined,
    changed(server, kind) {
      owners.find(owner => owner.server === server)?.changed(kind)
      changed(server.entry.name)
    },
  })
  const metrics = new McpServerMetrics()
  const workers = peers && createPeerWorkers(peers)
  const context: McpContext = { ...options, workers, self, holder: `${host.worker}/`, registry, metrics }
  const owners = servers.map(server => new ServerOwner(context, server))
  const each = (work: (owner: ServerOwner) => Promise<void>) =>
    Promise.all(
      owners.map(owner =>
        work(owner).catch((err: unknown) => {
          if (!lasting.signal.aborted) log.warn({ err, server: owner.server.entry.name }, 'failed to maintain an MCP server')
        })
      )
    )
  await registry.open(lasting)
  const timer = setInterval(() => void each(owner => owner.maintain()), MAINTAIN_MS).unref()
  const over = Promise.withResolvers<void>()
  const logins = createLogins(context)
  const clients: McpClients = { ...createClients(context, owners, logins), ...createEditor({ ...options, config }) }
  return {
    clients,
    health: createHealth(clients),
    answer: createAnswer(context, owners, logins),
    metrics(): readonly MetricFamily[] {
      const owned = owners.filter(owner => owner.session).map(owner => serverInfoOf(owner.server, registry))
      return metrics.read(owned.map(({ name, state }) => ({ server: name, state })))
    },
    async begin(ctx: CallContext): Promise<void> {
      await each(owner => owner.begin(ctx))
    },
    /** A worker has ended; `holder` is the prefix of its leases. */
    workerExited(holder: string): void {
      for (const owner of owners) owner.workerExited(holder)
    },
    /** Another process takes over; this one serves until then. */
    async leave(): Promise<void> {
      await Promise.all(owners.map(owner => owner.leave()))
    },
    /** Waits for the running calls, at most `limitMs` milliseconds. */
    async drain(limitMs = DRAIN_MS): Promise<void> {
      const idle = Promise.all(owners.map(owner => owner.drain()))
      await withTimeout(limitMs, () => Promise.race([idle, over.promise])).catch(() => {})
      // the shortest of several limits counts
      over.resolve()
    },
    async close(): Promise<void> {
      clearInterval(timer)
      const ctx = systemContext(AbortSignal.timeout(CLOSE_MS), 'mcp-client')
      await Promise.all(owners.map(owner => owner.close(ctx)))
    },
  }
}
