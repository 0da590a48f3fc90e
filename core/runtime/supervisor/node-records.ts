import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallContext, Host, HostReport, Log } from '@svc/core'
import type { NodeDifference, Redis, Store } from '@svc/core/contracts'
import { textOf } from './node-setup.ts'
import {
  isOutvoted,
  NODE_RECORDS,
  NODE_SPACE,
  type NodeRecord,
  nodesOf,
  readRecords,
  recordKey,
  serviceDifferences,
  servicesIn,
  splitFrom,
  type SplitNode,
} from './node-services.ts'

const BEAT_MS = 10_000
/** A node that serves goes on for this time: the nodes that now are the majority must be ready first. */
const GRACE_MS = 15_000
/** The name of a Redis server lasts as long as its memory. Other nodes read it within this time. */
const SAME_REDIS = `redis.call('SET', KEYS[1], ARGV[1], 'NX') return redis.call('GET', KEYS[1])`

interface NodeRecordsOptions {
  readonly store: Store
  readonly redis: Redis | undefined
  readonly host: Host
  readonly self: Pick<HostReport, 'worker' | 'nodeId' | 'serverId' | 'clusterId'>
  readonly log: Log
  readonly lasting: CallContext
}

/** The records of the nodes in the store, which tell whether this node shares its messages and counts with the others. */
export class NodeRecords {
  readonly #options: NodeRecordsOptions
  readonly #ending = new AbortController()
  #own: NodeRecord | undefined
  /** The clock of the store minus the clock of this process. */
  #offsetMs = 0
  #split: readonly SplitNode[] = []
  /** This node has had the services of the others, so it serves. */
  #hasServed = false
  #outvotedAt: number | undefined
  #logged = ''

  constructor(options: NodeRecordsOptions) {
    this.#options = options
  }

  /** Records this worker, and compares it with the others. A store that fails is asked again later. */
  async start(ctx: CallContext): Promise<void> {
    await this.#beat(ctx).catch((err: unknown) => this.#options.log.warn({ err }, 'failed to record this worker in the store'))
    void this.#keep()
  }

  async leave(ctx: CallContext): Promise<void> {
    this.#ending.abort()
    const { store, self } = this.#options
    const key = recordKey(self.clusterId, self.worker)
    // otherwise it expires
    await store.batch([{ op: 'delete', collection: NODE_RECORDS, key }], {}, ctx).catch(() => {})
  }

  /** The other nodes with other services. */
  get split(): readonly SplitNode[] {
    return this.#split
  }

  /** What this node must change, or wait for, before it serves. */
  async waitsFor(ctx: CallContext): Promise<readonly NodeDifference[]> {
    // the other nodes can have changed since the last beat
    if (this.#outvotedAt !== undefined) await this.#compare(ctx).catch(() => {})
    const isWaiting = this.#outvotedAt !== undefined && (!this.#hasServed || performance.now() - this.#outvotedAt > GRACE_MS)
    return isWaiting ? this.#split.flatMap(({ differences }) => differences) : []
  }

  async #keep(): Promise<void> {
    const { lasting, log } = this.#options
    const signal = AbortSignal.any([lasting.signal, this.#ending.signal])
    const ctx = { ...lasting, signal }
    for (;;) {
      await sleep(BEAT_MS, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) return
      await this.#beat(ctx).catch(
        (err: unknown) => signal.aborted || log.debug({ err }, 'failed to renew the record of this worker')
      )
    }
  }

  async #beat(ctx: CallContext): Promise<void> {
    const { store, host, self } = this.#options
    if (!this.#own) await store.open(NODE_SPACE, ctx)
    this.#offsetMs = (await store.probe(ctx)).clockOffsetMs
    const { usesRedis, ...services } = servicesIn(await host.report(ctx))
    const now = Date.now() + this.#offsetMs
    const current = { ...services, redis: usesRedis ? await this.#redisName(ctx) : '' }
    const own = { ...(this.#own ?? (await this.#begin(current, now, ctx))), ...current, seenAt: now }
    this.#own = own
    const key = recordKey(self.clusterId, self.worker)
    await store.batch([{ op: 'put', collection: NODE_RECORDS, key, value: { ...own } }], {}, ctx)
    await this.#compare(ctx)
  }

  /** A worker that replaces another one of this node, with the same services, is as old as that one. */
  async #begin(services: Pick<NodeRecord, 'bus' | 'counts' | 'redis'>, now: number, ctx: CallContext) {
    const { store, self } = this.#options
    const { live } = await readRecords(store, self.clusterId, now, ctx)
    const former = live.filter(record => record.node === self.nodeId && serviceDifferences(services, record).length === 0)
    return {
      worker: self.worker,
      node: self.nodeId,
      host: hostname(),
      startedAt: now,
      since: Math.min(now, ...former.map(({ since }) => since)),
      seenAt: now,
    }
  }

  /** While Redis cannot be reached, its last name counts. */
  async #redisName(ctx: CallContext): Promise<string> {
    const former = this.#own?.redis ?? ''
    try {
      return String(await this.#options.redis?.run(SAME_REDIS, ['cluster:redis'], [randomUUID()], ctx))
    } catch {
      return former
    }
  }

  async #compare(ctx: CallContext): Promise<void> {
    const { store, self } = this.#options
    const own = this.#own
    if (!own) return
    const { live, lost } = await readRecords(store, self.clusterId, Date.now() + this.#offsetMs, ctx)
    const others = nodesOf(live.filter(({ node }) => node !== self.nodeId))
    this.#split = splitFrom(own, others)
    if (!isOutvoted(own, others)) {
      this.#hasServed = true
      this.#outvotedAt = undefined
    } else this.#outvotedAt ??= performance.now()
    const isFirst = live.every(({ worker }) => worker >= self.worker || !worker.startsWith(`${self.serverId}.`))
    if (isFirst) this.#report()
    const deletions = lost.map(
      ({ worker }) => ({ op: 'delete', collection: NODE_RECORDS, key: recordKey(self.clusterId, worker) }) as const
    )
    if (deletions.length > 0) await store.batch(deletions, {}, ctx)
  }

  /** Logs each change of what differs. */
  #report(): void {
    const { log } = this.#options
    const isOut = this.#outvotedAt !== undefined
    const state = JSON.stringify([isOut, this.#split.map(({ record, differences }) => [record.node, differences])])
    if (state === this.#logged) return
    const had = this.#logged
    this.#logged = state
    if (this.#split.length === 0) {
      if (had !== '') log.info({}, 'all nodes of the cluster share messages and limits')
      return
    }
    const nodes = this.#split.map(({ record }) => record.node)
    const differences = [...new Set(this.#split.flatMap(found => found.differences.map(textOf)))]
    const consequence = isOut ? 'this node is not ready until they do' : 'the others are not ready until they do'
    log.warn(
      { code: 'NODE_DIFFERS', nodes, differences },
      `nodes of the cluster do not share messages or limits with this one; ${consequence}: ${differences.join('; ')}; set the same redis section on all of them`
    )
  }
}
