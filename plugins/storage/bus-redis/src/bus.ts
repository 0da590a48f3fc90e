import { setTimeout as sleep } from 'node:timers/promises'
import type { CallContext, HookCallers, Log, SlotView } from '@svc/core'
import type { BusMember, Json, NodeBusHooks, PeerAnswer, Redis, Store } from '@svc/core/contracts'
import {
  BusCalls,
  byWorker,
  type CallPart,
  checkSize,
  enterBus,
  followMessages,
  KnownMembers,
  MemberReads,
  MOST_FACTS,
  notJoined,
  type OpenBus,
} from '@svc/storage-kit/bus'
import { WorkerPermits } from '@svc/storage-kit/permits'
import { channelOf, EVERYONE, PostReceiver, PostSender } from './posts.ts'
import { createBusRedis, isFailureOfRedis, permitsIn, type StoredMember, StoredMembers } from './scripts.ts'

/** A member that does not report is lost after this time. Others look every third of it, so it is gone within 15 seconds. */
const LOST_MS = 10_500
/** After Redis has lost everything, requests for permits wait so long for the permits of the others. */
const SETTLE_MS = 500
/** Fails with the reason when Redis cannot be reached. */
const PROBE = 'return 1'

export interface RedisBusOptions {
  /** The name of the plugin. */
  readonly plugin: string
  readonly redis: Redis
  readonly store: Pick<Store, 'releaseHolder'>
  readonly self: string
  readonly node: string
  readonly answers: SlotView<PeerAnswer>
  readonly hooks: HookCallers<NodeBusHooks>
  /** Default 10,500. */
  readonly lostMs?: number
  readonly log: Log
  readonly lasting: CallContext
}

/** A message to all, a part of a call, or a change of the members. */
type Body =
  | { readonly topic: string; readonly message: Json }
  | { readonly call: CallPart }
  | { readonly joined: true }
  | { readonly gone: string }

/** A member as this worker knows it. */
interface SeenMember extends Omit<BusMember, 'worker'> {
  /** When it last renewed its membership, by the monotonic clock of this process. */
  readonly seenAt: number
}

export const openBus = async (options: RedisBusOptions): Promise<OpenBus> => new RedisBus(options)

/**
 * A bus in Redis: a key for each member, which expires, and a channel for each. Redis can lose the keys at any time. So a member that
 * is missing stays a member until it has not renewed its membership for `lostMs`, and a member that misses itself joins again.
 */
class RedisBus implements OpenBus {
  readonly #options: RedisBusOptions
  readonly #lostMs: number
  readonly #stored: StoredMembers
  readonly #sender: PostSender
  readonly #receiver: PostReceiver
  readonly #permits: WorkerPermits
  readonly #calls: BusCalls
  readonly #known: KnownMembers
  readonly #ending = new AbortController()
  #facts: Json = null
  #isJoined = false
  #following: Promise<void> | undefined
  #members: ReadonlyMap<string, SeenMember> = new Map()
  /** Redis could not be read: members could not renew their membership either. */
  #isBlind = false
  readonly #reads = new MemberReads(() => this.#read())
  #rejoining: Promise<void> | undefined
  /** From then on, the permits of the others are complete. */
  #settledAt = 0
  readonly #removing = new Set<string>()

  constructor(options: RedisBusOptions) {
    const { redis, self, answers, hooks, lasting, log, lostMs = LOST_MS } = options
    this.#options = options
    this.#lostMs = lostMs
    const scripts = createBusRedis(redis, lasting)
    this.#stored = new StoredMembers(scripts, lostMs)
    this.#sender = new PostSender(scripts, self)
    this.#permits = new WorkerPermits(
      permitsIn(scripts, self, isRequest => this.#rejoin().then(() => (isRequest ? this.#settled() : undefined)))
    )
    this.#receiver = new PostReceiver({
      self,
      deliver: (from, isToAll, body) => this.#deliver(from, isToAll, body),
      missed: (from, count) => {
        log.warn({ from, count }, 'this worker has missed messages of another one')
        this.#calls.gone(from)
        this.#known.missed(from)
        this.#look()
      },
    })
    const send = (to: string, call: CallPart) => this.#sender.send(to, { call } satisfies Body)
    const isMember = async (worker: string) => {
      if (!this.#known.has(worker)) await this.#refresh()
      return this.#known.has(worker)
    }
    this.#calls = new BusCalls({ self, send, answers, isMember, lasting })
    const gone = (worker: string) => {
      this.#calls.gone(worker)
      this.#sender.forget(worker)
      this.#receiver.forget(worker)
    }
    this.#known = new KnownMembers({ self, hooks, lasting, log, gone })
  }

  async join(facts: Json): Promise<void> {
    checkSize('the facts of a worker', facts, MOST_FACTS)
    this.#facts = facts
    if (this.#isJoined) return this.#enter()
    const { redis, plugin, lasting } = this.#options
    await enterBus({
      plugin,
      server: 'Redis',
      code: 'REDIS_UNAVAILABLE',
      listening: (this.#following ??= this.#follow()),
      probe: () => redis.run(PROBE, [], [], lasting),
      enter: () => this.#enter(),
    })
    this.#isJoined = true
    void this.#keep()
  }

  async leave(): Promise<void> {
    if (this.#ending.signal.aborted) return
    this.#ending.abort()
    if (!this.#isJoined) return
    this.#isJoined = false
    const { self } = this.#options
    await this.#sender.idle()
    await this.#stored.remove(self, true)
    await this.#announce({ gone: self })
  }

  /** While Redis fails, all stay members: a server that can reach the store can serve. */
  async members(): Promise<readonly BusMember[]> {
    await this.#refresh().catch((error: unknown) => {
      if (!isFailureOfRedis(error)) throw error
    })
    return [...this.#members].map(([worker, { node, facts }]) => ({ worker, node, facts })).toSorted(byWorker)
  }

  async publish(topic: string, message: Json): Promise<void> {
    this.#mustBeMember()
    checkSize(`the message "${topic}"`, message)
    await this.#announce({ topic, message })
  }

  async *call(worker: string, topic: string, message: Json, ctx: CallContext): AsyncGenerator<Json, void> {
    this.#mustBeMember()
    yield* this.#calls.call(worker, topic, message, ctx)
  }

  async acquire(name: string, limit: number): Promise<boolean> {
    this.#mustBeMember()
    await this.#settled()
    return this.#permits.acquire(name, limit)
  }

  async release(name: string): Promise<void> {
    if (this.#isJoined) await this.#permits.release(name)
  }

  async exited(worker: string): Promise<void> {
    if (this.#isJoined && this.#known.has(worker)) await this.#remove(worker, true)
  }

  #mustBeMember(): void {
    if (!this.#isJoined) throw notJoined(this.#options.self)
  }

  #announce(body: Body): Promise<void> {
    return this.#sender.send(EVERYONE, body)
  }

  /** Other programs can send to the channels, too. */
  #deliver(from: string, isToAll: boolean, body: unknown): void {
    if (!this.#isJoined) return
    try {
      this.#take(from, isToAll, body as Body)
    } catch (err) {
      this.#options.log.warn({ err }, 'ignored a message on a channel of the bus that is none of svc')
    }
  }

  #take(from: string, isToAll: boolean, body: Body): void {
    if ('call' in body) return isToAll ? undefined : this.#calls.take(from, body.call)
    if (!isToAll) return
    if ('topic' in body) this.#known.message({ from, topic: body.topic, message: body.message })
    else if ('gone' in body) this.#onGone(body.gone)
    else this.#look()
  }

  #onGone(worker: string): void {
    if (worker === this.#options.self) this.#look()
    else this.#drop(worker)
  }

  #drop(worker: string): void {
    const members = new Map(this.#members)
    members.delete(worker)
    this.#setMembers(members)
  }

  #setMembers(members: ReadonlyMap<string, SeenMember>): void {
    this.#members = members
    this.#known.set(members)
  }

  /** Listens. Resolves when this worker gets all posts from now on. */
  async #follow(): Promise<void> {
    const { redis, self, lasting, log } = this.#options
    let hasBegun = false
    const watch = async (begun: () => void, ctx: CallContext) => {
      for await (const { channel, payload = '' } of redis.listen([EVERYONE, self].map(channelOf), ctx)) {
        if (channel !== undefined) this.#receiver.take(channel, payload)
        else if (hasBegun) this.#reset()
        else {
          hasBegun = true
          begun()
        }
      }
    }
    await followMessages(watch, lasting, log)
  }

  /** The connection was replaced, so messages can be lost: ends open calls. */
  #reset(): void {
    this.#receiver.reset()
    this.#calls.reset()
    this.#known.missed()
    this.#look()
  }

  /** Writes the entry of this member, and reads the others. */
  async #enter(): Promise<void> {
    const { self, node } = this.#options
    await this.#stored.join({ worker: self, node, facts: this.#facts })
    await this.#announce({ joined: true })
    await this.#refresh()
  }

  /** Reads the members soon, without an error. */
  #look(): void {
    this.#refresh().catch(() => {})
  }

  #refresh(): Promise<void> {
    return this.#reads.read()
  }

  async #read(): Promise<void> {
    const before = performance.now()
    let stored: Map<string, StoredMember>
    try {
      stored = await this.#stored.read()
    } catch (error) {
      this.#isBlind = true
      throw error
    }
    const isBlind = this.#isBlind
    this.#isBlind = false
    const members = new Map<string, SeenMember>()
    for (const [worker, { node, facts, ageMs }] of stored) {
      const known = isBlind ? undefined : this.#members.get(worker)
      members.set(worker, { node, facts, seenAt: ageMs === undefined ? (known?.seenAt ?? before) : before - ageMs })
    }
    // Redis has lost them, or this worker has missed that they have gone
    for (const [worker, known] of this.#members)
      if (!members.has(worker)) members.set(worker, isBlind ? { ...known, seenAt: before } : known)
    this.#setMembers(members)
    if (!this.#isJoined) return
    if (stored.get(this.#options.self)?.ageMs === undefined) this.#rejoin().catch(() => {})
  }

  /** Renews the membership, and removes members that do not. */
  async #keep(): Promise<void> {
    const { self, log, lasting } = this.#options
    const signal = AbortSignal.any([lasting.signal, this.#ending.signal])
    for (;;) {
      await sleep(this.#lostMs / 3.5, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) return
      try {
        if (!(await this.#stored.renew(self))) await this.#rejoin()
        if (signal.aborted) return
        await this.#refresh()
        await this.#permits.restore(false)
        this.#sender.repair()
        await this.#removeLate()
      } catch (err) {
        this.#isBlind = true
        if (!signal.aborted) log.debug({ err }, 'failed to renew the membership of this worker')
      }
    }
  }

  /** Joins again, after Redis has lost this member, or others took it for lost. */
  #rejoin(): Promise<void> {
    this.#rejoining ??= this.#joinAgain().finally(() => (this.#rejoining = undefined))
    return this.#rejoining
  }

  async #joinAgain(): Promise<void> {
    if (!this.#isJoined || this.#ending.signal.aborted) return
    const { self, node, log } = this.#options
    log.warn({}, 'Redis has lost the membership of this worker, or others considered it lost; it joins the bus again')
    this.#settledAt = performance.now() + SETTLE_MS
    await this.#stored.join({ worker: self, node, facts: this.#facts })
    await this.#announce({ joined: true })
    this.#known.missed()
    void this.#permits.restore(true).catch((err: unknown) => log.debug({ err }, 'failed to write the permits of this worker'))
  }

  /** Waits, after Redis has lost the permits, until others have written theirs again. */
  async #settled(): Promise<void> {
    const ms = this.#settledAt - performance.now()
    if (ms > 0) await sleep(ms, undefined, { signal: this.#options.lasting.signal, ref: false })
  }

  async #removeLate(): Promise<void> {
    const before = performance.now() - this.#lostMs
    const late = [...this.#members].filter(([worker, { seenAt }]) => seenAt <= before && worker !== this.#options.self)
    for (const [worker] of late) await this.#remove(worker, false)
  }

  /** Frees what a member has held before the others hear of it. Several members can do so at once. */
  async #remove(worker: string, isSure: boolean): Promise<void> {
    if (this.#removing.has(worker)) return
    this.#removing.add(worker)
    try {
      if (!isSure && (await this.#stored.isAlive(worker))) return
      await this.#options.store.releaseHolder(`${worker}/`, this.#options.lasting)
      if (!(await this.#stored.remove(worker, isSure))) return
      await this.#announce({ gone: worker })
      this.#drop(worker)
    } finally {
      this.#removing.delete(worker)
    }
  }
}
