import { hostname } from 'node:os'
import { type CallContext, codeOf, type Host, type HostReport, type HostState, isTree, type Log } from '@svc/core'
import type {
  BusMember,
  Cluster,
  ClusterNode,
  ClusterWorker,
  Json,
  ListenAddress,
  NodeBus,
  NodeDifference,
  NodePluginSet,
  PeerAnswer,
  Redis,
  Store,
  StoreAdmin,
  WorkerMetrics,
} from '@svc/core/contracts'
import { addressFact, addressIn } from './node-address.ts'
import { NodeRecords } from './node-records.ts'
import {
  differencesOf,
  factsIn,
  hashOf,
  type NodeSetup,
  pluginSetDifferences,
  pluginSetIn,
  schemaDifferences,
  setupIn,
  setupOf,
  textOf,
  type WorkerFacts,
} from './node-setup.ts'

/** The topics of requests for the state and for the setup of a worker. */
const [STATE, SETUP] = ['cluster.state', 'cluster.setup']
/** A worker that does not answer in time is shown without a state. */
const ANSWER_MS = 3_000
/** How often the event loop is measured. */
const SAMPLE_MS = 5_000
/** A migrated space is reported after this time: the node that has migrated it must serve first. */
const OUTDATED_MS = 15_000
/** Most characters of the spaces in the facts of a member, which have 4 KiB. */
const MOST_SPACES = 3_000
/** The space of a bus in the store: it is opened when the worker joins, so later than the facts are read. */
const OF_THE_BUS = 'node_bus'
/** Most differences in a line of the log. */
const MOST_LOGGED = 10
const ROLES = ['http', 'runs']

interface ClusterNodesOptions {
  readonly bus: NodeBus
  readonly host: Host
  readonly admin: StoreAdmin | undefined
  /** The merged configuration. */
  readonly configuration: unknown
  /** The installed plugins of this node now. */
  readonly pluginSet: () => Promise<NodePluginSet>
  readonly metrics: (ctx: CallContext) => Promise<WorkerMetrics>
  /** Where this worker listens, once it does. */
  readonly address: () => ListenAddress | undefined
  readonly store: Store | undefined
  readonly redis: Redis | undefined
  readonly log: Log
  readonly lasting: CallContext
}

/** The nodes of the cluster as this worker sees them: what they do, and what they run differently. */
export class ClusterNodes implements Cluster {
  readonly #options: ClusterNodesOptions
  readonly #self: Pick<HostReport, 'worker' | 'nodeId' | 'serverId'>
  /** Undefined without a store. */
  readonly #records: NodeRecords | undefined
  #setup: NodeSetup = { plugins: {}, configuration: {} }
  #facts: WorkerFacts | undefined
  /** What was logged about a node last. */
  readonly #logged = new Map<string, string>()
  /** Spaces that others have in newer versions, and since when that is known. */
  readonly #outdated = new Map<string, { readonly difference: NodeDifference; readonly since: number }>()
  #busy = 0

  constructor(options: ClusterNodesOptions, self: Pick<HostReport, 'worker' | 'nodeId' | 'serverId' | 'clusterId'>) {
    this.#options = options
    this.#self = self
    const { store, redis, host, log, lasting } = options
    this.#records = store && new NodeRecords({ store, redis, host, self, log, lasting })
  }

  /** Records this worker in the store, once all plugins are set up. Returns what it publishes on the bus. */
  async facts(ctx: CallContext): Promise<Json> {
    await this.#records?.start(ctx)
    return this.#readFacts(ctx)
  }

  async leave(ctx: CallContext): Promise<void> {
    await this.#records?.leave(ctx)
  }

  async #readFacts(ctx: CallContext): Promise<Json> {
    const { host, admin, configuration } = this.#options
    const report = await host.report(ctx)
    this.#setup = setupOf(report, configuration)
    const contents = await admin?.contents(ctx).catch(() => undefined)
    const others = (contents?.spaces ?? []).filter(({ name }) => name !== OF_THE_BUS)
    const spaces = Object.fromEntries(others.map(({ name, version }) => [name, String(version)]))
    this.#facts = {
      version: report.version,
      host: hostname(),
      roles: report.roles ?? ROLES,
      setup: hashOf(this.#setup),
      spaces: JSON.stringify(spaces).length > MOST_SPACES ? {} : spaces,
    }
    return { ...this.#facts, roles: [...this.#facts.roles] }
  }

  /** Measures how busy the event loop is, until the signal aborts. */
  measure(signal: AbortSignal): void {
    let before = performance.eventLoopUtilization()
    const timer = setInterval(() => {
      const now = performance.eventLoopUtilization()
      this.#busy = performance.eventLoopUtilization(now, before).utilization
      before = now
    }, SAMPLE_MS).unref()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  get answers(): Readonly<Record<string, PeerAnswer>> {
    const state = (ctx: CallContext) => this.#state(ctx)
    const setup = () => this.#setup as unknown as Json
    return {
      [STATE]: {
        async *answer(_, ctx) {
          yield await state(ctx)
        },
      },
      [SETUP]: {
        async *answer() {
          yield setup()
        },
      },
    }
  }

  async nodes(ctx: CallContext): Promise<readonly ClusterNode[]> {
    const members = await this.#options.bus.members(ctx)
    const states = await Promise.all(members.map(({ worker }) => this.#stateOf(worker, ctx)))
    const stateOf = new Map(members.map(({ worker }, at) => [worker, states[at]]))
    const byNode = [...Map.groupBy(members, ({ node }) => node)].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const nodes = await Promise.all(byNode.map(([id, workers]) => this.#node(id, workers, stateOf, ctx)))
    return [...nodes, ...this.#unreachable(nodes)].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Nodes that are up, and are no members of the bus of this one. */
  #unreachable(known: readonly ClusterNode[]): ClusterNode[] {
    const split = this.#records?.split ?? []
    const unknown = split.filter(({ record }) => known.every(({ id }) => id !== record.node))
    return unknown.map(({ record: { node, host, worker }, differences }) => ({
      id: node,
      host,
      address: undefined,
      isSelf: false,
      roles: [],
      workers: [
        {
          name: worker,
          version: undefined,
          state: undefined,
          requestsActive: undefined,
          busy: undefined,
          memoryBytes: undefined,
        },
      ],
      pluginSet: undefined,
      differs: true,
      differences,
    }))
  }

  async outdated(ctx: CallContext): Promise<readonly NodeDifference[]> {
    const before = performance.now() - OUTDATED_MS
    const migrated = [...this.#outdated.values()].filter(({ since }) => since <= before).map(({ difference }) => difference)
    return [...migrated, ...((await this.#records?.waitsFor(ctx)) ?? [])]
  }

  /** Compares another worker with this one. Logs what differs, once for each node and setup: the first worker of this server does. */
  async joined(member: BusMember): Promise<void> {
    const { bus, log, lasting } = this.#options
    const own = this.#facts
    if (!own || member.node === this.#self.nodeId) return
    const { host, setup, spaces = {} } = factsIn(member.facts)
    for (const difference of schemaDifferences(own.spaces, spaces))
      if (Number(difference.there) > Number(difference.here) && !this.#outdated.has(difference.name))
        this.#outdated.set(difference.name, { difference, since: performance.now() })
    const state = JSON.stringify([setup, spaces])
    if (setup === undefined || this.#logged.get(member.node) === state) return
    this.#logged.set(member.node, state)
    if (!this.#differs(member)) return
    const mine = (await bus.members(lasting))
      .map(({ worker }) => worker)
      .filter(name => name.startsWith(`${this.#self.serverId}.`))
    if (mine.some(name => name < this.#self.worker)) return
    const found = await this.#differencesTo(member, lasting)
    // a worker answers only after it has joined
    const texts = (found.length > 0 ? found : await this.#differencesTo(member, lasting)).map(textOf)
    const shown = texts.slice(0, MOST_LOGGED)
    log.warn(
      { code: 'NODE_DIFFERS', node: member.node, host, differences: shown, total: texts.length },
      `a node of the cluster does not run the same as this one: ${shown.join('; ') || 'it has not answered'}; compare them with \`svc nodes\``
    )
  }

  async #node(
    id: string,
    members: readonly BusMember[],
    stateOf: ReadonlyMap<string, WorkerState | undefined>,
    ctx: CallContext
  ): Promise<ClusterNode> {
    const different = id === this.#self.nodeId ? undefined : members.find(member => this.#differs(member))
    const { host, roles = ROLES } = factsIn(members.at(-1)!.facts)
    const states = members.map(({ worker }) => stateOf.get(worker))
    const pluginSet = states.map(state => state?.pluginSet).find(set => set !== undefined)
    const address = states.map(state => addressIn(state?.address, host)).findLast(found => found !== undefined)
    const own = id === this.#self.nodeId ? undefined : await this.#options.pluginSet()
    const setDifferences = own && pluginSet ? pluginSetDifferences(own, pluginSet) : []
    const services = this.#records?.split.find(({ record }) => record.node === id)?.differences ?? []
    return {
      id,
      host,
      address,
      isSelf: id === this.#self.nodeId,
      roles,
      workers: members.map(({ worker, facts }): ClusterWorker => {
        const { state, requestsActive, busy, memoryBytes } = stateOf.get(worker) ?? {}
        return { name: worker, version: factsIn(facts).version, state, requestsActive, busy, memoryBytes }
      }),
      pluginSet,
      differs: different !== undefined || setDifferences.length + services.length > 0,
      differences: [...services, ...setDifferences, ...(different ? await this.#differencesTo(different, ctx) : [])],
    }
  }

  #differs({ facts }: BusMember): boolean {
    const { setup, spaces = {} } = factsIn(facts)
    const own = this.#facts
    if (!own || setup === undefined) return false
    return setup !== own.setup || schemaDifferences(own.spaces, spaces).length > 0
  }

  async #differencesTo({ worker, facts }: BusMember, ctx: CallContext): Promise<NodeDifference[]> {
    const { setup, spaces = {} } = factsIn(facts)
    const schema = schemaDifferences(this.#facts?.spaces ?? {}, spaces)
    if (setup === this.#facts?.setup) return schema
    const other = await this.#ask(worker, SETUP, ctx)
    return [...(other === undefined ? [] : differencesOf(this.#setup, setupIn(other))), ...schema]
  }

  /** The answer of a worker, or undefined if there is none in time. */
  async #ask(worker: string, topic: string, ctx: CallContext): Promise<Json | undefined> {
    const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(ANSWER_MS)])
    try {
      for await (const answer of this.#options.bus.call(worker, topic, null, { ...ctx, signal })) return answer
    } catch {
      ctx.signal.throwIfAborted()
    }
    return undefined
  }

  async #stateOf(worker: string, ctx: CallContext): Promise<WorkerState | undefined> {
    return worker === this.#self.worker ? stateIn(await this.#state(ctx)) : stateIn(await this.#ask(worker, STATE, ctx))
  }

  async #state(ctx: CallContext): Promise<Json> {
    const { host, metrics, pluginSet, address } = this.#options
    const [{ state }, { http }, { revision, failed }] = await Promise.all([host.report(ctx), metrics(ctx), pluginSet()])
    const requests = isTree(http) ? Number(http.requestsActive) : 0
    const busy = Math.round(this.#busy * 1_000) / 1_000
    const plugins = { revision, ...(failed ? { failed: { ...failed } } : {}) }
    const listens = address()
    const listening = listens ? { address: addressFact(listens) } : {}
    return { state, requests, busy, memory: process.memoryUsage.rss(), plugins, ...listening }
  }
}

interface WorkerState {
  readonly state: HostState
  readonly requestsActive: number
  readonly busy: number
  readonly memoryBytes: number
  readonly pluginSet: NodePluginSet | undefined
  /** As it was sent. */
  readonly address: unknown
}

function stateIn(sent: Json | undefined): WorkerState | undefined {
  if (sent === undefined) return undefined
  const { state, requests, busy, memory, plugins, address } = Object(sent) as Record<string, unknown>
  return {
    state: String(state) as HostState,
    requestsActive: Number(requests),
    busy: Number(busy),
    memoryBytes: Number(memory),
    pluginSet: pluginSetIn(plugins),
    address,
  }
}

/** `nodes` of a worker that has not joined the bus: undefined, as outside of a cluster. */
export async function nodesOrNone(cluster: ClusterNodes | undefined, ctx: CallContext) {
  try {
    return await cluster?.nodes(ctx)
  } catch (error) {
    if (codeOf(error) === 'BUS_NOT_JOINED') return undefined
    throw error
  }
}
