import {
  codeOf,
  definePlugin,
  type HookCallers,
  Host,
  type HostReport,
  type Scope,
  type SlotView,
  type CallContext,
  withTimeout,
  type SvcError,
  svcError,
  systemContext,
} from '@svc/core'
import {
  Cluster,
  type KeptCertificate,
  type ListenAddress,
  type Listener,
  type WorkerMetrics,
  type Json,
  Listeners,
  NodeBus,
  type NodePluginSet,
  type OperatorAnswers,
  type OperatorRequest,
  type PeerAnswer,
  type PeerMessage,
  PeerAnswers,
  Peers,
  type PeersHooks,
  Redis,
  Store,
  StoreAdmin,
} from '@svc/core/contracts'
import { ClusterNodes, nodesOrNone } from './cluster-nodes.ts'
import { QUARANTINE } from './blame.ts'
import { broadcastTimeout } from './errors.ts'
import { ReclaimRounds } from './reclaim-rounds.ts'
import type { WorkerLink, WorkerStart } from './worker-link.ts'

/** Before the http plugin listens: a serving worker has received all messages. */
const BEFORE_SERVING = 900
/** After the http plugin has drained: these metrics are the last. */
const AFTER_SERVING = 1_000
const JOIN_MS = 30_000
const PROBE_MS = 5_000

interface ClusterOptions {
  /** The plugins that this server has from the store of its cluster. Default: none. */
  readonly pluginSet?: () => Promise<NodePluginSet>
  /** Milliseconds that a broadcast waits for the workers of other nodes. Default 15,000. */
  readonly notifyMs?: number
}

/** The service `Peers` of a worker of `svc serve`, over its connection to the supervisor, and the supervisor as listener. */
export const workersPlugin = (
  link: Pick<WorkerLink, 'peers' | 'listen' | 'keep' | 'kept' | 'start'>,
  workers: number,
  configuration: unknown = {},
  { pluginSet = async () => ({ revision: 0 }), notifyMs = NOTIFY_MS }: ClusterOptions = {}
) =>
  definePlugin({
    requires: { host: Host, answers: PeerAnswers },
    optional: { store: Store, bus: NodeBus, admin: StoreAdmin, redis: Redis },
    provides: Peers,
    alsoProvides: [Cluster],
    async setup(scope, { answers, store, bus, host, admin, redis }) {
      const { hooks, log } = scope
      const { peers: line } = link
      const lasting = systemContext(scope.signal, 'workers')
      const report = await host.report(lasting)
      const { nodeId: node } = report
      const isAlone = !bus || report.clusterId === report.serverId
      const metrics = (ctx: CallContext) => hooks.metrics({}, ctx)
      const { item: listener, address } = listenerOf(link)
      const nodes = isAlone
        ? undefined
        : new ClusterNodes({ bus, host, admin, configuration, pluginSet, metrics, address, store, redis, log, lasting }, report)
      const cluster = isAlone ? undefined : clusterOf({ report, bus, hooks, lasting, notifyMs })
      const release = (holder: string, ctx: CallContext) =>
        store
          ?.releaseHolder(holder, ctx)
          .catch((err: unknown) =>
            log.warn({ err, holder }, 'failed to release the leases of an exited worker; they expire on their own')
          )
      const operator = createOperatorDoor()
      const join = () =>
        line.join({
          operate: (request, ctx) => operator.answer(request, ctx),
          message: (message, ctx) => hooks.message(message, ctx),
          metrics,
          inherit: (metrics, ctx) => hooks.inherit(metrics as WorkerMetrics, ctx),
          reclaim: (name, ctx) => hooks.reclaim({ name }, ctx),
          answer: (topic, message, ctx) => answerOf(answers, topic).answer(message as Json, ctx),
          async workerExit(worker, ctx) {
            const holder = `${worker}/`
            await release(holder, ctx)
            await hooks.workerExit({ worker, node, holder }, ctx)
          },
        })
      const ready = async (ctx: CallContext) => {
        if (store) await checkShared(store, workers, ctx)
        await join()
        if (cluster && nodes) await cluster.join(await nodes.facts(ctx), ctx)
        // the plugins in quarantine get another try, on all nodes
        if (isOperatorReload(link.start)) await hooks.message({ topic: QUARANTINE, message: 'reloaded' }, ctx)
        return undefined
      }
      scope.add(Listeners, 'supervisor', { ...listener, serveOperator: operator.serve })
      if (cluster) joinOthers(scope, cluster)
      if (nodes) showNodes(scope, nodes)
      scope.tap(Host.hooks.ready, (_, ctx) => ready(ctx), { stage: BEFORE_SERVING, limitMs: JOIN_MS })
      scope.tap(Host.hooks.closing, () => line.leave(), { stage: AFTER_SERVING })
      return servicesOf({ hooks, line, cluster, nodes })
    },
  })

interface ServiceParts {
  readonly hooks: HookCallers<PeersHooks>
  readonly line: WorkerLink['peers']
  /** Undefined for a server outside of a cluster. */
  readonly cluster: OtherServers | undefined
  readonly nodes: ClusterNodes | undefined
}

const servicesOf = ({ hooks, line, cluster, nodes }: ServiceParts): Peers & Cluster => ({
  async broadcast(topic, message, ctx) {
    await hooks.message({ topic, message }, ctx)
    await Promise.all([line.broadcast({ topic, message }, ctx), cluster?.broadcast({ topic, message }, ctx)])
  },
  metrics: async ctx => (await line.metrics(ctx)) as readonly WorkerMetrics[],
  acquire: (name, limit, ctx) => (cluster ?? line).acquire(name, limit, ctx),
  release: (name, ctx) => (cluster ?? line).release(name, ctx),
  self: () => line.self(),
  ask: (worker, topic, message, ctx) =>
    cluster?.isOther(worker)
      ? cluster.ask(worker, topic, message, ctx)
      : (line.ask(worker, topic, message, ctx) as AsyncIterable<Json>),
  nodes: ctx => nodesOrNone(nodes, ctx),
  outdated: async ctx => (await nodes?.outdated(ctx)) ?? [],
})

/** Whether an operator has reloaded the server: a change of the plugins reloads it too. */
const isOperatorReload = (start: WorkerStart) => start.kind === 'reload' && start.reason !== 'svc plugins'

/** The topic of a message to the workers of other servers. */
const MESSAGE = 'peers.message'
/** As for workers of the same server. */
const NOTIFY_MS = 15_000

/** The topic of a request to release permits that a worker does not need. */
const RECLAIM = 'peers.reclaim'
/** A worker that does not answer in time keeps its permits. */
const RECLAIM_MS = 1_000
/** Between two rounds of these requests. */
const RECLAIM_PAUSE_MS = 100

/** The workers of the other servers of the cluster, and the limits that all share. */
interface OtherServers extends Pick<Peers, 'acquire' | 'release'> {
  join(facts: Json, ctx: CallContext): Promise<void>
  isOther(worker: string): boolean
  /** Resolves when all have handled the message. Throws UNAVAILABLE, which names the others. */
  broadcast(message: PeerMessage, ctx: CallContext): Promise<void>
  ask(worker: string, topic: string, message: Json, ctx: CallContext): AsyncIterable<Json>
}

interface ClusterDependencies {
  readonly report: HostReport
  readonly bus: NodeBus
  readonly hooks: HookCallers<PeersHooks>
  readonly lasting: CallContext
  /** How long a broadcast waits for the workers of other servers. */
  readonly notifyMs: number
}

function clusterOf({ report: { serverId, worker: self }, bus, hooks, lasting, notifyMs }: ClusterDependencies): OtherServers {
  const isOther = (worker: string) => !worker.startsWith(`${serverId}.`)
  /** Whether the worker has handled the message. One that has ended does not count. */
  const send = async (worker: string, topic: string, message: Json, ctx: CallContext, ms: number): Promise<boolean> => {
    const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(ms)])
    try {
      for await (const _ of bus.call(worker, topic, message, { ...ctx, signal })) break
      return true
    } catch (error) {
      ctx.signal.throwIfAborted()
      return codeOf(error) === 'PEER_GONE'
    }
  }
  const reclaim = async (names: readonly string[]) => {
    const others = (await bus.members(lasting)).filter(({ worker }) => worker !== self)
    const asked = others.map(({ worker }) => send(worker, RECLAIM, names, lasting, RECLAIM_MS))
    await Promise.all([...asked, ...names.map(name => hooks.reclaim({ name }, lasting))])
  }
  const rounds = new ReclaimRounds(reclaim, RECLAIM_PAUSE_MS)
  return {
    isOther,
    join: (facts, ctx) => bus.join(facts, ctx),
    ask: (worker, topic, message, ctx) => bus.call(worker, topic, message, ctx),
    async acquire(name, limit, ctx) {
      if (await bus.acquire(name, limit, ctx)) return true
      await rounds.ask(name)
      return bus.acquire(name, limit, ctx)
    },
    release: (name, ctx) => bus.release(name, ctx),
    async broadcast(message, ctx) {
      const others = (await bus.members(ctx)).filter(({ worker }) => isOther(worker))
      const done = await Promise.all(others.map(({ worker }) => send(worker, MESSAGE, { ...message }, ctx, notifyMs)))
      const silent = others.filter((_, at) => !done[at]).map(({ worker }) => worker)
      if (silent.length > 0) throw broadcastTimeout(silent, message.topic, notifyMs)
    },
  }
}

/** Passes on what other servers send and report. */
function joinOthers(scope: Scope<unknown, PeersHooks>, cluster: OtherServers): void {
  const { hooks } = scope
  const answer = (message: Json, ctx: CallContext) => handled(hooks.message(message as unknown as PeerMessage, ctx))
  scope.add(PeerAnswers, MESSAGE, { answer })
  const reclaim = (names: readonly string[], ctx: CallContext) => Promise.all(names.map(name => hooks.reclaim({ name }, ctx)))
  scope.add(PeerAnswers, RECLAIM, { answer: (message, ctx) => handled(reclaim(message as readonly string[], ctx)) })
  scope.tap(NodeBus.hooks.missed, (missed, ctx) => hooks.missed(missed, ctx))
  scope.tap(NodeBus.hooks.gone, (gone, ctx) => (cluster.isOther(gone.worker) ? hooks.workerExit(gone, ctx) : undefined))
}

/** Answers what other workers ask about this one, and compares them with it. */
function showNodes(scope: Scope<unknown, PeersHooks>, nodes: ClusterNodes): void {
  const { signal, log } = scope
  for (const [topic, answer] of Object.entries(nodes.answers)) scope.add(PeerAnswers, topic, answer)
  // an answer can take a while, and the bus waits for its taps
  scope.tap(NodeBus.hooks.joined, member => {
    nodes.joined(member).catch((err: unknown) => signal.aborted || log.debug({ err }, 'failed to compare a node with this one'))
  })
  scope.tap(Host.hooks.closing, (_, ctx) => nodes.leave(ctx), { stage: AFTER_SERVING })
  nodes.measure(signal)
}

/** The answer to a message: one item when it is handled. */
async function* handled(work: Promise<unknown>): AsyncGenerator<Json> {
  await work
  yield null
}

/** The name of the certificate in the memory of the supervisor. */
const CERTIFICATE = 'certificate'

/** The supervisor listens, and keeps the last valid certificate for the successors of this worker. */
function listenerOf({ listen, keep, kept }: Pick<WorkerLink, 'listen' | 'keep' | 'kept'>) {
  let bound: ListenAddress | undefined
  const item: Listener = {
    async listen(address, take) {
      const port = await listen({ host: address.host, port: address.port }, take)
      bound = { ...address, port }
      return port
    },
    keepCertificate: certificate => keep(CERTIFICATE, certificate),
    keptCertificate: async () => (await kept(CERTIFICATE)) as KeptCertificate | undefined,
  }
  return { item, address: () => bound }
}

/** The way of the operator's requests to the plugin that serves HTTP. It is no slot or service, so no other plugin can send one. */
function createOperatorDoor() {
  let served: OperatorAnswers | undefined
  return {
    async *answer(request: OperatorRequest, ctx: CallContext) {
      if (!served) throw noApi()
      yield* served(request, ctx)
    },
    serve: async (answer: OperatorAnswers) => void (served = answer),
  }
}

const noApi = (): SvcError =>
  svcError('NO_API', 'the running server has no HTTP API', {
    hint: 'Use the plugin @svc/plugin-http, or stop the server and run the command again',
  })

function answerOf(answers: SlotView<PeerAnswer>, topic: string): PeerAnswer {
  const answer = answers.get(topic)
  if (!answer) throw peerSilent(topic)
  return answer
}

/** Throws MEMORY_NOT_SHARED if several workers cannot share the store. Ignores errors of the store, which its health check reports. */
export async function checkShared(store: Store, workers: number, ctx: CallContext): Promise<void> {
  if (workers <= 1) return
  const probed = await withTimeout(PROBE_MS, signal => store.probe({ ...ctx, signal }), ctx).catch(() => undefined)
  if (probed?.scope === 'process') throw memoryNotShared(probed.kind, workers)
}

/** Each worker would have its own conversations, tokens and counts. */
const memoryNotShared = (kind: string, workers: number): SvcError =>
  svcError(
    'MEMORY_NOT_SHARED',
    `${workers} workers cannot share a store of the kind "${kind}": each would have its own conversations`,
    {
      details: { kind, workers },
      hint: 'Use a store that processes share, such as @svc/plugin-store-sqlite, or set server.workers to 1',
    }
  )

const peerSilent = (topic: string): SvcError =>
  svcError('PEER_SILENT', `this worker has no handler for the topic "${topic}"`, {
    details: { topic },
    hint: 'Run `svc reload`: the worker that sent the request has a different set of plugins',
  })
