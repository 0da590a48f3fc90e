import { type CallContext, type Events, type HostReport, type Log, systemContext, withTimeout } from '@svc/core'
import {
  type Check,
  type Fence,
  type McpClients,
  McpServerConnected,
  McpServerDisconnected,
  type McpServerEvent,
  type MetricFamily,
  type PeerAnswer,
  type Peers,
  type ProcessSandbox,
  type Store,
} from '@svc/core/contracts'
import { createClients, currentInfo } from './ownership/mcp-clients.ts'
import { PeerWorkers, ServerLease } from './ownership/peer-workers.ts'
import { createAnswer } from './ownership/questions.ts'
import { ServerOwner } from './ownership/server-owner.ts'
import { type ConnectionListener, ServerSession } from './ownership/server-session.ts'
import { clientOptions } from './registry/client-options.ts'
import type { Server } from './registry/configured-servers.ts'
import { loginKey, loginStorage, stateKey } from './registry/records.ts'
import { ServerRegistry } from './registry/server-registry.ts'
import { createHealth, publicUrl, ServerMetrics } from './registry/server-status.ts'

export { TOPIC } from './ownership/peer-workers.ts'

export interface McpServiceOptions {
  readonly servers: readonly Server[]
  readonly store: Store
  readonly events: Events
  readonly peers: Peers | undefined
  readonly sandbox: ProcessSandbox | undefined
  readonly host: Pick<HostReport, 'serverId' | 'worker'>
  /** Whether this host serves: then servers are connected before the first call. */
  readonly isEager: boolean
  /** Milliseconds after which the tools of a remote server are listed again; 0 for never. */
  readonly recheckMs: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly lasting: CallContext
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
export async function createMcpService(options: McpServiceOptions): Promise<McpService> {
  const { servers, store, peers, log, host, lasting } = options
  const workers = peers && new PeerWorkers(peers)
  const self = (await peers?.self(lasting)) ?? 'alone'
  const registry: ServerRegistry = new ServerRegistry({
    store,
    serverId: host.serverId,
    servers,
    log,
    shared: workers !== undefined,
    changed(server, kind) {
      owners.find(owner => owner.server === server)?.changed(kind)
      options.changed(server.entry.name)
    },
  })
  const metrics = new ServerMetrics()
  const owners = servers.map(server => createOwner({ ...options, registry, workers, self, metrics }, server))
  const failed =
    ({ server }: ServerOwner) =>
    (err: unknown) => {
      if (!lasting.signal.aborted) log.warn({ err, server: server.entry.name }, 'failed to maintain an MCP server')
    }
  await registry.open(lasting)
  const maintain = () => void Promise.all(owners.map(owner => owner.maintain().catch(failed(owner))))
  const timer = setInterval(maintain, MAINTAIN_MS).unref()
  const over = Promise.withResolvers<void>()
  const clients = createClients({ owners, registry, workers })
  return {
    clients,
    health: createHealth(clients),
    answer: createAnswer({ owners, registry, clients, lasting, openClient: server => openTestClient(options, server) }),
    metrics() {
      const owned = owners.filter(owner => owner.session).map(owner => owner.server)
      return metrics.read(owned.map(server => ({ server: server.entry.name, state: currentInfo(server, registry).state })))
    },
    async begin(ctx) {
      await Promise.all(owners.map(owner => owner.begin(ctx).catch(failed(owner))))
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

interface OwnerContext extends McpServiceOptions {
  readonly registry: ServerRegistry
  readonly workers: PeerWorkers | undefined
  readonly self: string
  readonly metrics: ServerMetrics
}

function createOwner(context: OwnerContext, server: Server): ServerOwner {
  const { store, registry, workers, self, host, isEager, recheckMs, env, sandbox, metrics, log, lasting } = context
  const holder = `${host.worker}/`
  const storage = loginStorage(store, server, lasting, record => void registry.take(loginKey(server), record, lasting))
  const deadHolder = () => {
    const state = registry.state(server)
    return state?.worker && workers?.hasExited(state.worker) ? state.holder : undefined
  }
  const lease = new ServerLease({ store, lease: `mcp/${stateKey(host.serverId, server)}`, holder, deadHolder, log, lasting })
  const common = { server, registry, self, log, lasting }
  const session = {
    ...common,
    holder,
    recheckMs: server.entry.url === undefined ? 0 : recheckMs,
    metrics,
    listener: eventPublisher(context),
    clientOptions: () => clientOptions(server, { env, sandbox, storage, lasting, known: registry.state(server)?.known }),
  }
  const createSession = (fence: Fence | undefined, lost: () => void) => new ServerSession({ ...session, fence, lost })
  return new ServerOwner({ ...common, workers, lease, isEager, createSession })
}

/** Makes a client for a test, which fails with the first error: a user waits. */
const openTestClient =
  ({ store, env, sandbox, lasting }: McpServiceOptions, server: Server) =>
  async () => {
    const storage = loginStorage(store, server, lasting)
    const { createMcpClient } = await import('./connection/mcp-client.ts')
    const client = createMcpClient(clientOptions(server, { env, sandbox, storage, lasting }))
    client.setReconnectPolicy(0, 'constant')
    return client
  }

/** Publishes the events of connections in this worker. */
function eventPublisher({ events, lasting }: McpServiceOptions): ConnectionListener {
  const event = ({ entry }: Server, duration: number): McpServerEvent => ({
    source: 'mcp',
    tool_name: null,
    server: entry.name,
    duration,
    timestamp: Date.now(),
    ...(entry.url === undefined ? {} : { url: publicUrl(entry.url) }),
  })
  return {
    connected: (server, protocol_version, seconds) =>
      void events.publish(McpServerConnected, { ...event(server, seconds), protocol_version }, lasting),
    disconnected: (server, reason, seconds) =>
      void events.publish(McpServerDisconnected, { ...event(server, seconds), reason }, lasting),
  }
}
