import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type CallContext, type HookCallers, type Log, type SlotView } from '@svc/core'
import type { BusMember, Fence, Json, NodeBus, NodeBusHooks, PeerAnswer, Store } from '@svc/core/contracts'
import { BusCalls, type CallPart, checkSize, KnownMembers, MOST_FACTS, notJoined } from '@svc/storage-kit/bus'
import { follow } from '@svc/storage-kit/follow'
import { createPosts, type Posts } from './posts.ts'
import { type MemberRecord, MEMBERS, type Post, POSTS, PERMITS } from './space.ts'

/** A member that renews its lease no more is lost after this time. */
const LOST_MS = 15_000
const PAGE = 1_000
const PRUNE_MS = 30_000

export interface BusOptions {
  readonly store: Store
  readonly self: string
  readonly node: string
  readonly answers: SlotView<PeerAnswer>
  readonly hooks: HookCallers<NodeBusHooks>
  /** Default 15,000. */
  readonly lostMs?: number
  readonly log: Log
  readonly lasting: CallContext
}

/**
 * A bus in the store: a record and a lease for each member, and a record for each message, which all members watch. A member checks the lease of the next member
 * by name, so that each loss is found by one of them, however many there are.
 */
export class StoreBus implements NodeBus {
  readonly #options: BusOptions
  readonly #posts: Posts
  readonly #permits: Permits
  readonly #calls: BusCalls
  readonly #known: KnownMembers
  readonly #lostMs: number
  #lease: Fence | undefined
  #facts: Json = null
  #following: Promise<void> | undefined
  readonly #ending = new AbortController()

  constructor(options: BusOptions) {
    const { store, self, answers, hooks, log, lasting, lostMs = LOST_MS } = options
    this.#options = options
    this.#lostMs = lostMs
    this.#posts = createPosts(store, self, lasting)
    this.#permits = createPermits(store, self)
    const isMember = async (worker: string) =>
      this.#known.has(worker) || (await store.get(MEMBERS, worker, lasting)) !== undefined
    const send = (to: string, call: CallPart) => this.#posts.send({ to, call }, lasting)
    this.#calls = new BusCalls({ self, send, answers, isMember, lasting })
    this.#known = new KnownMembers({ self, hooks, lasting, log, gone: worker => this.#calls.gone(worker) })
  }

  async join(facts: Json, ctx: CallContext): Promise<void> {
    checkSize('the facts of a worker', facts, MOST_FACTS)
    await (this.#following ??= this.#follow())
    this.#facts = facts
    if (!this.#lease) {
      this.#lease = await this.#hold(ctx)
      void this.#keep()
    }
    await this.#record(ctx)
  }

  async leave(ctx: CallContext): Promise<void> {
    if (this.#ending.signal.aborted) return
    this.#ending.abort()
    if (!this.#lease) return
    const { store, self } = this.#options
    await this.#permits.free(self, ctx)
    await store.batch([{ op: 'delete', collection: MEMBERS, key: self }], {}, ctx)
    await store.release(this.#lease, ctx)
    this.#lease = undefined
  }

  async members(ctx: CallContext): Promise<readonly BusMember[]> {
    const all = await this.#read(ctx)
    return [...all].map(([worker, { node, facts }]) => ({ worker, node, facts }))
  }

  async publish(topic: string, message: Json, ctx: CallContext): Promise<void> {
    this.#mustBeMember()
    checkSize(`the message "${topic}"`, message)
    await this.#posts.send({ topic, message }, ctx)
  }

  async *call(worker: string, topic: string, message: Json, ctx: CallContext): AsyncGenerator<Json, void> {
    this.#mustBeMember()
    yield* this.#calls.call(worker, topic, message, ctx)
  }

  async acquire(name: string, limit: number, ctx: CallContext): Promise<boolean> {
    this.#mustBeMember()
    return this.#permits.acquire(name, limit, ctx)
  }

  release(name: string, ctx: CallContext): Promise<void> {
    return this.#permits.release(name, ctx)
  }

  /** Removes a member of this server that has exited. */
  async exited(worker: string, ctx: CallContext): Promise<void> {
    if (this.#lease && this.#known.has(worker)) await this.#remove(worker, ctx)
  }

  #mustBeMember(): void {
    if (!this.#lease) throw notJoined(this.#options.self)
  }

  /** Takes the lease that shows that this worker lives. Its holder is not the name of the worker and `/`, so that the clean-up of other processes does not release it. */
  async #hold(ctx: CallContext): Promise<Fence> {
    const { store, self } = this.#options
    const { lease, fence } = await store.acquire(leaseOf(self), { holder: `bus:${self}`, ttlMs: this.#lostMs, waitMs: 0 }, ctx)
    return { lease, fence }
  }

  /** Writes the record of this member. */
  async #record(ctx: CallContext): Promise<void> {
    const { store, self, node } = this.#options
    const value = { node, facts: this.#facts } satisfies MemberRecord as unknown as Json
    await store.batch([{ op: 'put', collection: MEMBERS, key: self, value }], {}, ctx)
  }

  /** Renews the lease and checks the next member, three times in the life of a lease; deletes old messages. */
  async #keep(): Promise<void> {
    const { log, lasting } = this.#options
    const signal = AbortSignal.any([lasting.signal, this.#ending.signal])
    for (let prunedAt = performance.now(); ; ) {
      await sleep(this.#lostMs / 3, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) return
      try {
        await this.#renew()
        await this.#checkNext()
        if (performance.now() - prunedAt < PRUNE_MS) continue
        prunedAt = performance.now()
        await this.#posts.prune()
      } catch (err) {
        if (!signal.aborted) log.debug({ err }, 'failed to renew the membership of this worker')
      }
    }
  }

  /** Renews the lease. A worker that others took for lost, for example because it was suspended, joins again. */
  async #renew(): Promise<void> {
    const { store, log, lasting } = this.#options
    try {
      if (this.#lease) return void (await store.renew(this.#lease, this.#lostMs, lasting))
    } catch (error) {
      if (codeOf(error) !== 'STORE_FENCED') throw error
      log.warn({}, 'other workers considered this worker lost; it joins the bus again')
      this.#lease = undefined
    }
    const lease = await this.#hold(lasting)
    // it has left meanwhile
    if (this.#ending.signal.aborted) return store.release(lease, lasting)
    await this.#record(lasting)
    this.#lease = lease
    this.#known.missed()
  }

  async #checkNext(): Promise<void> {
    const { store, self, lasting } = this.#options
    const names = [...(await this.#read(lasting)).keys()]
    const next = names.find(name => name > self) ?? names[0]
    if (next === undefined || next === self) return
    try {
      const { lease, fence } = await store.acquire(
        leaseOf(next),
        { holder: `bus:${self}`, ttlMs: this.#lostMs, waitMs: 0 },
        lasting
      )
      await this.#remove(next, lasting)
      await store.release({ lease, fence }, lasting)
    } catch (error) {
      if (codeOf(error) !== 'LEASE_BUSY') throw error
    }
  }

  /** Frees what a lost member has held, then removes its record: so the others learn of it when its leases are free. */
  async #remove(worker: string, ctx: CallContext): Promise<void> {
    const { store } = this.#options
    await store.releaseHolder(`${worker}/`, ctx)
    await this.#permits.free(worker, ctx)
    await store.batch([{ op: 'delete', collection: MEMBERS, key: worker }], {}, ctx)
  }

  async #read(ctx: CallContext): Promise<Map<string, MemberRecord>> {
    const all = new Map<string, MemberRecord>()
    for (let cursor: string | undefined; ; ) {
      const page = await this.#options.store.range(MEMBERS, { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      for (const { key, value } of page.records) all.set(key, value as unknown as MemberRecord)
      cursor = page.next
      if (cursor === undefined) return all
    }
  }

  /** Follows members and posts. Resolves when both are followed. */
  async #follow(): Promise<void> {
    const { store, log, lasting } = this.#options
    const members = Promise.withResolvers<void>()
    const watchMembers = async (ctx: CallContext) => {
      for await (const { key, value } of store.watch(MEMBERS, ctx))
        this.#known.change(key, value as unknown as MemberRecord | undefined)
    }
    const readMembers = async (ctx: CallContext) => {
      const now = await this.#read(ctx)
      this.#known.set(now)
      members.resolve()
    }
    const posts = Promise.withResolvers<void>()
    const watchPosts = async (ctx: CallContext) => {
      for await (const { value } of store.watch(POSTS, ctx)) if (value !== undefined) this.#onPost(value as unknown as Post)
    }
    const failed = (err: unknown) => log.error({ err }, 'failed to read new messages of the bus')
    follow({ what: 'the members of the bus', watch: watchMembers, read: readMembers }, lasting, log).catch(failed)
    let hasBegun = false
    const readPosts = async () => {
      if (hasBegun) this.#known.missed()
      hasBegun = true
      posts.resolve()
    }
    follow({ what: 'the messages of the bus', watch: watchPosts, read: readPosts }, lasting, log).catch(failed)
    await Promise.all([members.promise, posts.promise])
  }

  #onPost(post: Post): void {
    const { self } = this.#options
    if (post.from === self || !this.#lease) return
    const { from, to, topic, message = null, call } = post
    if (to === self && call) this.#calls.take(from, call)
    else if (to === undefined && topic !== undefined) this.#known.message({ from, topic, message })
  }
}

const leaseOf = (worker: string) => `bus/${worker}`

type Holders = { readonly [worker: string]: number }

/** Permits of the cluster: one record for each name, with the number of permits of each worker. */
export interface Permits {
  acquire(name: string, limit: number, ctx: CallContext): Promise<boolean>
  release(name: string, ctx: CallContext): Promise<void>
  /** Frees all permits of a worker. */
  free(worker: string, ctx: CallContext): Promise<void>
}

function createPermits(store: Store, self: string): Permits {
  /** Changes the holders of one name, and retries after concurrent changes. `change` returns undefined to change nothing. */
  const change = async (name: string, next: (holders: Holders) => Holders | undefined, ctx: CallContext): Promise<boolean> => {
    for (;;) {
      const found = await store.get(PERMITS, name, ctx)
      const holders = next((found?.value ?? {}) as Holders)
      if (!holders) return false
      const ifVersion = found?.version ?? 0
      try {
        await store.batch([{ op: 'put', collection: PERMITS, key: name, value: holders as Json, ifVersion }], {}, ctx)
        return true
      } catch (error) {
        if (codeOf(error) !== 'STORE_CONFLICT') throw error
      }
    }
  }
  const without = (holders: Holders, worker: string, count: number): Holders | undefined => {
    const { [worker]: held = 0, ...rest } = holders
    if (held === 0) return undefined
    return held > count ? { ...rest, [worker]: held - count } : rest
  }
  return {
    acquire: (name, limit, ctx) =>
      change(
        name,
        holders => {
          const sum = Object.values(holders).reduce((total, held) => total + held, 0)
          return sum < limit ? { ...holders, [self]: (holders[self] ?? 0) + 1 } : undefined
        },
        ctx
      ),
    async release(name, ctx) {
      await change(name, holders => without(holders, self, 1), ctx)
    },
    async free(worker, ctx) {
      for (let cursor: string | undefined; ; ) {
        const page = await store.range(PERMITS, { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
        const held = page.records.filter(({ value }) => Object.hasOwn(value as Holders, worker))
        await Promise.all(held.map(({ key }) => change(key, holders => without(holders, worker, Number.POSITIVE_INFINITY), ctx)))
        cursor = page.next
        if (cursor === undefined) return
      }
    },
  }
}
