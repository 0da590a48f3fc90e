import { type CallContext, type HostReport, systemContext, withTimeout } from '@svc/core'
import type { Check, McpClients, MetricFamily, PeerAnswer, Peers } from '@svc/core/contracts'
import type { McpContext } from './ownership/context.ts'
import { createLogins } from './ownership/logins.ts'
import { createClients } from './ownership/mcp-clients.ts'
import { createAnswer, createPeerWorkers } from './ownership/questions.ts'
import { ServerOwner } from './ownership/server-owner.ts'
import { ServerRegistry } from './registry/server-registry.ts'
import { createEditor } from './registry/edit.ts'
import type { EditContext } from './registry/settings.ts'
import { createHealth, McpServerMetrics, serverInfoOf } from './registry/server-status.ts'

export { TOPIC } from './ownership/questions.ts'

export interface McpServiceOptions extends Omit<McpContext, 'workers' | 'self' | 'serverId' | 'holder' | 'registry' | 'metrics'> {
  readonly host: Pick<HostReport, 'serverId' | 'worker'>
  readonly peers: Pick<Peers, 'self' | 'ask'> | undefined
  readonly config: EditContext['config']
  /** Called for each change of a server. */
  readonly changed: (server: string) => void
}

/** The connections to MCP servers, with the hooks that the plugin adds to a host. */
export interface McpService {
  readonly clients: McpClients
  readonly health: Check
  readonly answer: PeerAnswer
  metrics(): readonly MetricFamily[]
  /** Connects the servers. */
  begin(ctx: CallContext): Promise<void>
  /** A worker has ended; `holder` is the prefix of its leases. */
  workerExited(holder: string): void
  /** Another process takes over; this one serves until then. */
  leave(): Promise<void>
  /** Waits for the running calls, at most `limitMs` milliseconds. */
  drain(limitMs?: number): Promise<void>
  close(): Promise<void>
}

const MAINTAIN_MS = 10_000
const CLOSE_MS = 30_000
const DRAIN_MS = 30_000

/** Reads the records of the servers. Connects nothing before `begin`. */
export async function createMcpService({ peers, changed, host, config, ...given }: McpServiceOptions): Promise<McpService> {
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
  const clients = { ...createClients(context, owners, logins), ...createEditor({ ...options, config }) }
  return {
    clients,
    health: createHealth(clients),
    answer: createAnswer(context, owners, logins),
    metrics() {
      const owned = owners.filter(owner => owner.session).map(owner => serverInfoOf(owner.server, registry))
      return metrics.read(owned.map(({ name, state }) => ({ server: name, state })))
    },
    async begin(ctx) {
      await each(owner => owner.begin(ctx))
    },
    workerExited(holder) {
      for (const owner of owners) owner.workerExited(holder)
    },
    async leave() {
      await Promise.all(owners.map(owner => owner.leave()))
    },
    async drain(limitMs = DRAIN_MS) {
      const idle = Promise.all(owners.map(owner => owner.drain()))
      await withTimeout(limitMs, () => Promise.race([idle, over.promise])).catch(() => {})
      // the shortest of several limits counts
      over.resolve()
    },
    async close() {
      clearInterval(timer)
      const ctx = systemContext(AbortSignal.timeout(CLOSE_MS), 'mcp-client')
      await Promise.all(owners.map(owner => owner.close(ctx)))
    },
  }
}
