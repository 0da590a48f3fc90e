import { type CallContext, codeOf, type Events, type HostReport, isTree, type Log } from '@svc/core'
import {
  type BusMember,
  type IsolatedName,
  type Json,
  type NodeBus,
  type PeerAnswer,
  type Peers,
  PluginQuarantined,
  type QuarantinedName,
  type WorkerMetrics,
} from '@svc/core/contracts'
import { nameIn, type QuarantineRecord, QuarantineRecords, recordsIn, toJson } from './quarantine-records.ts'

/** The plugins that no worker of the cluster starts again until a reload. */
export interface Quarantine {
  /** Quarantines a plugin. Resolves when all workers know. */
  put(who: QuarantinedName, ctx: CallContext): Promise<void>
  /** Yields `true` when the plugin is in quarantine, and `false` when it is released. */
  watch(who: IsolatedName, ctx: CallContext): AsyncIterable<boolean>
  /** Handles a message of the supervisor or of another worker. */
  onMessage(topic: string, message: unknown, ctx: CallContext): Promise<void>
  /** Another worker has joined, or has returned: each of the two learns what the other knows. A failure is logged. */
  met(member: BusMember, ctx: CallContext): Promise<void>
  /** Learns from the other workers when this worker starts. A failure is logged, and the worker serves. */
  joined(ctx: CallContext): Promise<undefined>
  /** Answers the question of another worker. */
  readonly answer: PeerAnswer
  /** The records of this worker, for its metrics. */
  records(): Json
}

/** The topic on which workers and the supervisor announce changes. */
export const TOPIC = 'isolation.quarantine'
/** The message to a worker that it starts because of an operator's reload, before it serves. */
const RELOADED = 'reloaded'
/** A worker that does not answer in time is asked again when it returns. */
const ANSWER_MS = 5_000
const PUT_FAILED = 'failed to announce the quarantine of a plugin to all workers'
const SYNC_FAILED = 'failed to read the quarantined plugins of the other workers'

interface QuarantineOptions {
  readonly peers: Pick<Peers, 'broadcast' | 'metrics' | 'ask'> | undefined
  readonly bus: Pick<NodeBus, 'members'> | undefined
  readonly events: Pick<Events, 'publish'>
  readonly report: (ctx: CallContext) => Promise<Pick<HostReport, 'plugins' | 'serverId' | 'nodeId' | 'state'>>
  readonly log: Log
}

/** What a worker broadcasts. Workers of another generation of the same server ignore it: a reload starts all plugins again. */
interface Announcement {
  readonly server: string
  readonly generation: number
  readonly records: unknown
}

export function createQuarantine(options: QuarantineOptions): Quarantine {
  return new ClusterQuarantine(options)
}

class ClusterQuarantine implements Quarantine {
  readonly #options: QuarantineOptions
  readonly #records = new QuarantineRecords()
  readonly #changed = new Set<() => void>()
  /** Put before all plugins are set up: the host does not know the version of a plugin yet. */
  readonly #early: QuarantinedName[] = []
  #isReloaded = false
  #hasJoined = false

  constructor(options: QuarantineOptions) {
    this.#options = options
  }

  async put(who: QuarantinedName, ctx: CallContext): Promise<void> {
    const { plugin, instance } = who
    const { state } = await this.#options.report(ctx)
    if (state === 'starting' && !this.#hasJoined) {
      this.#early.push(who)
      return
    }
    this.#hasJoined = true
    const name = { plugin, ...(instance === undefined ? {} : { instance }) }
    const version = await this.#versionOf(name, ctx)
    const known = this.#records.get(name, version)
    if (known?.quarantined) return
    const record = { ...name, version, quarantined: true, at: who.at ?? this.#records.next(name, version) }
    if (this.#add(recordsIn([record])).length === 0) return
    void this.#options.events.publish(PluginQuarantined, { plugin, instance: instance ?? null }, ctx)
    await this.#announce([record], ctx)
  }

  async *watch(who: IsolatedName, ctx: CallContext): AsyncGenerator<boolean, void> {
    const { signal } = ctx
    const isOut = async () =>
      this.#records.knows(who) && this.#records.get(who, await this.#versionOf(who, ctx))?.quarantined === true
    let wakeup = Promise.withResolvers<void>()
    const wake = () => wakeup.resolve()
    this.#changed.add(wake)
    signal.addEventListener('abort', wake, { once: true })
    try {
      for (let yielded = false; !signal.aborted; ) {
        const changed = wakeup.promise
        const now = await isOut()
        if (now === yielded) await changed
        else yield (yielded = now)
        wakeup = Promise.withResolvers()
      }
    } finally {
      this.#changed.delete(wake)
      signal.removeEventListener('abort', wake)
    }
  }

  async onMessage(topic: string, message: unknown, ctx: CallContext): Promise<void> {
    if (topic !== TOPIC) return
    if (message === RELOADED) this.#isReloaded = !this.#hasJoined
    // the supervisor sends the plugins that ended workers of this server
    else if (Array.isArray(message)) for (const item of message) await this.#putBlamed(item, ctx)
    else if (isTree(message)) await this.#onAnnouncement(message as unknown as Announcement, ctx)
  }

  async met({ worker, node }: BusMember, ctx: CallContext): Promise<void> {
    if (!this.#hasJoined || node === (await this.#options.report(ctx)).nodeId) return
    this.#add(await this.#askOne(worker, ctx))
  }

  async joined(ctx: CallContext): Promise<undefined> {
    const { log } = this.#options
    try {
      this.#add([await this.#recordsOfServer(ctx), await this.#recordsOfCluster(ctx)].flat())
      if (this.#isReloaded) await this.#release(ctx)
    } catch (err) {
      log.warn({ err }, SYNC_FAILED)
    }
    this.#hasJoined = true
    this.#wake()
    for (const who of this.#early.splice(0)) void this.put(who, ctx).catch((err: unknown) => log.warn({ err }, PUT_FAILED))
    return undefined
  }

  readonly answer: PeerAnswer = { answer: message => this.#answer(message) }

  records(): Json {
    return toJson(this.#records.list())
  }

  async *#answer(message: Json): AsyncGenerator<Json, void> {
    this.#add(recordsIn(message))
    for (const part of this.#records.parts()) yield part
  }

  /** A message of the supervisor comes again for each further plugin. */
  async #putBlamed(item: unknown, ctx: CallContext): Promise<void> {
    const name = nameIn(item)
    const { at } = Object(item) as { readonly at?: unknown }
    if (name) await this.put({ ...name, ...(typeof at === 'number' ? { at } : {}) }, ctx)
  }

  async #onAnnouncement({ server, generation, records }: Announcement, ctx: CallContext): Promise<void> {
    const { serverId } = await this.#options.report(ctx)
    if (server === serverId && generation !== (await this.#generation(ctx))) return
    this.#add(recordsIn(records))
  }

  /** Adds records, and returns those that are new. */
  #add(records: readonly QuarantineRecord[]): QuarantineRecord[] {
    const added = records.filter(record => this.#records.merge(record))
    if (added.length > 0) this.#wake()
    return added
  }

  /** Until this worker has joined, a record can be one that its reload releases. */
  #wake(): void {
    if (this.#hasJoined) for (const changed of this.#changed) changed()
  }

  /** An operator has reloaded this server: the quarantined versions get another try everywhere. */
  async #release(ctx: CallContext): Promise<void> {
    const known = this.#records.list().filter(({ quarantined }) => quarantined)
    const released = known.map(record => ({
      ...record,
      quarantined: false,
      at: this.#records.next(record, record.version),
    }))
    this.#add(released)
    if (released.length > 0) await this.#announce(released, ctx)
  }

  async #announce(records: readonly QuarantineRecord[], ctx: CallContext): Promise<void> {
    const { peers, report } = this.#options
    if (!peers) return
    const { serverId: server } = await report(ctx)
    const generation = await this.#generation(ctx)
    await peers.broadcast(TOPIC, { server, generation, records: toJson(records) }, ctx)
  }

  async #generation(ctx: CallContext): Promise<number> {
    const [mine] = (await this.#options.peers?.metrics(ctx)) ?? []
    return mine?.generation ?? 0
  }

  /** Workers of another generation can have other files under the same version: a reload starts all plugins again. */
  async #recordsOfServer(ctx: CallContext): Promise<QuarantineRecord[]> {
    const [mine, ...others] = (await this.#options.peers?.metrics(ctx)) ?? []
    return others.filter(other => !other.ended && other.generation === mine?.generation).flatMap(recordsOf)
  }

  async #recordsOfCluster(ctx: CallContext): Promise<QuarantineRecord[]> {
    const { nodeId } = await this.#options.report(ctx)
    const others = (await this.#members(ctx)).filter(({ node }) => node !== nodeId)
    return (await Promise.all(others.map(({ worker }) => this.#askOne(worker, ctx)))).flat()
  }

  async #members(ctx: CallContext): Promise<readonly BusMember[]> {
    try {
      return (await this.#options.bus?.members(ctx)) ?? []
    } catch (error) {
      // a server outside of a cluster
      if (codeOf(error) === 'BUS_NOT_JOINED') return []
      throw error
    }
  }

  /** The records of another worker, which gets the newest ones of this worker. */
  async #askOne(worker: string, ctx: CallContext): Promise<QuarantineRecord[]> {
    const { peers, log } = this.#options
    const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(ANSWER_MS)])
    const records: QuarantineRecord[] = []
    try {
      const answer = peers?.ask(worker, TOPIC, this.#records.parts()[0] ?? [], { ...ctx, signal }) ?? []
      for await (const part of answer) records.push(...recordsIn(part))
    } catch (err) {
      // a worker without isolated plugins has no answer
      if (!['PEER_SILENT', 'PEER_GONE'].includes(codeOf(err) ?? '')) log.debug({ err, worker }, SYNC_FAILED)
    }
    return records
  }

  async #versionOf({ plugin }: IsolatedName, ctx: CallContext): Promise<string> {
    const { plugins } = await this.#options.report(ctx)
    return plugins.find(({ name }) => name === plugin)?.version ?? ''
  }
}

/** The name to report: with the instance, where the configuration sets up one plugin for several entries. */
export const nameOf = ({ plugin, instance }: IsolatedName): string =>
  instance === undefined ? plugin : `${plugin} (${instance})`

const recordsOf = ({ isolation }: WorkerMetrics): QuarantineRecord[] => (isTree(isolation) ? recordsIn(isolation.quarantine) : [])
