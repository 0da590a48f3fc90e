import { setTimeout as sleep } from 'node:timers/promises'
import type { CallContext, HookCallers, Log, SlotView } from '@svc/core'
import type { BusMember, Json, NodeBusHooks, PeerAnswer, Postgres, SqlResult, SqlStatement, Store } from '@svc/core/contracts'
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
import { PostReceiver, PostSender, pruneIn } from './posts.ts'
import { type BusSql, channelOf, createSql, notify, NOW, permitsIn } from './sql.ts'

/** A member that does not report is lost after this time. Others look every third of it, so it is gone within 15 seconds. */
const LOST_MS = 10_500
const PRUNE_MS = 30_000
/** A member whose removal was begun but not finished is removed by another one after this time. */
const CLAIM_MS = 5_000
const RETRY_MS = 5_000
/** The payload of a notification that the members have changed. */
const CHANGED = ''
/** Fails with the reason when PostgreSQL cannot be reached. */
const PROBE = { text: 'SELECT 1' }

export interface PostgresBusOptions {
  /** The name of the plugin. */
  readonly plugin: string
  readonly postgres: Postgres
  readonly store: Pick<Store, 'releaseHolder'>
  readonly self: string
  readonly node: string
  /** Servers of other clusters in the same database do not take part. */
  readonly cluster: string
  readonly answers: SlotView<PeerAnswer>
  readonly hooks: HookCallers<NodeBusHooks>
  /** Default 10,500. */
  readonly lostMs?: number
  readonly log: Log
  readonly lasting: CallContext
}

type Members = Map<string, Omit<BusMember, 'worker'>>

/** A post is a message to all, or a part of a call. */
type Body = { readonly topic: string; readonly message: Json } | { readonly call: CallPart }

export const openBus = async (options: PostgresBusOptions): Promise<OpenBus> =>
  new PostgresBus(options, await createSql(options.postgres, options.lasting))

/**
 * A bus in PostgreSQL: a row for each member, which it renews by the clock of the database, and notifications for posts. The tables are
 * not logged. When a crash has emptied them, members join again; until then, former members stay.
 */
class PostgresBus implements OpenBus {
  readonly #options: PostgresBusOptions
  readonly #sql: BusSql
  readonly #everyone: string
  readonly #lostMs: number
  readonly #sender: PostSender
  readonly #receiver: PostReceiver
  readonly #permits: WorkerPermits
  readonly #calls: BusCalls
  readonly #known: KnownMembers
  readonly #ending = new AbortController()
  #facts: Json = null
  #isJoined = false
  #rejoining: Promise<void> | undefined
  #following: Promise<void> | undefined
  readonly #reads = new MemberReads(async () => {
    const [found] = await this.#sql.run([this.#read()], RETRY_MS)
    return this.#apply(found!)
  })
  /** Differs when the tables were emptied. */
  #epoch: string | undefined
  /** Members from before that, until they join again or are lost. */
  #former: { readonly members: Members; readonly until: number } | undefined
  #members: Members = new Map()

  constructor(options: PostgresBusOptions, sql: BusSql) {
    const { self, cluster, answers, hooks, lasting, log, lostMs = LOST_MS } = options
    this.#options = options
    this.#sql = sql
    this.#lostMs = lostMs
    this.#everyone = `@${cluster}`
    this.#sender = new PostSender(sql, self)
    this.#permits = new WorkerPermits(permitsIn(sql, self, cluster))
    this.#receiver = new PostReceiver({
      sql,
      self,
      receivers: [this.#everyone, self],
      deliver: (from, to, body) => this.#deliver(from, to, JSON.parse(body) as Body | null),
      missed: (from, count) => {
        log.warn({ from, count }, 'this worker has missed messages of another one')
        this.#calls.gone(from)
        this.#known.missed(from)
      },
      failed: (err: unknown) => lasting.signal.aborted || log.warn({ err }, 'failed to read messages of the bus'),
    })
    const send = (to: string, call: CallPart) => this.#sender.send(to, JSON.stringify({ call } satisfies Body))
    const isMember = async (worker: string) => this.#known.has(worker) || (await this.#refresh()).has(worker)
    this.#calls = new BusCalls({ self, send, answers, isMember, lasting })
    this.#known = new KnownMembers({ self, hooks, lasting, log, gone: worker => this.#calls.gone(worker) })
  }

  async join(facts: Json): Promise<void> {
    checkSize('the facts of a worker', facts, MOST_FACTS)
    this.#facts = facts
    if (this.#isJoined) return this.#enter()
    const { postgres, plugin, lasting } = this.#options
    await enterBus({
      plugin,
      server: 'PostgreSQL',
      code: 'POSTGRES_UNAVAILABLE',
      listening: (this.#following ??= this.#follow()),
      probe: () => postgres.run([PROBE], lasting),
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
    await this.#sender.idle()
    await this.#sql.run([this.#removal(this.#options.self, false), this.#notice()])
  }

  async members(): Promise<readonly BusMember[]> {
    return [...(await this.#refresh())].map(([worker, member]) => ({ worker, ...member })).toSorted(byWorker)
  }

  async publish(topic: string, message: Json): Promise<void> {
    this.#mustBeMember()
    checkSize(`the message "${topic}"`, message)
    await this.#sender.send(this.#everyone, JSON.stringify({ topic, message } satisfies Body))
  }

  async *call(worker: string, topic: string, message: Json, ctx: CallContext): AsyncGenerator<Json, void> {
    this.#mustBeMember()
    yield* this.#calls.call(worker, topic, message, ctx)
  }

  async acquire(name: string, limit: number): Promise<boolean> {
    this.#mustBeMember()
    return this.#permits.acquire(name, limit)
  }

  async release(name: string): Promise<void> {
    if (this.#isJoined) await this.#permits.release(name)
  }

  async exited(worker: string): Promise<void> {
    if (this.#isJoined && this.#known.has(worker)) await this.#remove(worker, false)
  }

  #mustBeMember(): void {
    if (!this.#isJoined) throw notJoined(this.#options.self)
  }

  #deliver(from: string, to: string, body: Body | null): void {
    if (!this.#isJoined || body === null) return
    if ('call' in body) this.#calls.take(from, body.call)
    else if (to === this.#everyone) this.#known.message({ from, topic: body.topic, message: body.message })
  }

  /** Listens. Resolves when this worker gets all posts from now on. */
  async #follow(): Promise<void> {
    const { postgres, self, lasting, log } = this.#options
    const receivers = new Map([this.#everyone, self].map(receiver => [channelOf(this.#sql, receiver), receiver]))
    let hasBegun = false
    const caughtUp = async (begun: () => void) => {
      if (hasBegun) {
        this.#receiver.catchUp()
        return void (await this.#refresh())
      }
      await this.#receiver.begin()
      hasBegun = true
      begun()
    }
    const watch = async (begun: () => void, ctx: CallContext) => {
      for await (const { channel, payload = CHANGED } of postgres.listen([...receivers.keys()], ctx)) {
        if (channel === undefined) await caughtUp(begun)
        else if (payload !== CHANGED) this.#receiver.notified(receivers.get(channel)!, payload)
        else this.#refresh().catch(() => {})
      }
    }
    await followMessages(watch, lasting, log)
  }

  /** Writes the row of this member, and reads the others. */
  async #enter(): Promise<void> {
    const { self, node, cluster } = this.#options
    const { s } = this.#sql
    await this.#sql.run(
      [
        { text: `INSERT INTO ${s}.bus_epoch(id) VALUES (gen_random_uuid()::text) ON CONFLICT DO NOTHING` },
        {
          text: `INSERT INTO ${s}.bus_members(worker, cluster, node, facts, seen, claimed) VALUES ($1, $2, $3, $4, ${NOW}, 0)
            ON CONFLICT (worker) DO UPDATE SET facts = excluded.facts, seen = excluded.seen, claimed = 0`,
          values: [self, cluster, node, JSON.stringify(this.#facts)],
        },
        this.#notice(),
      ],
      RETRY_MS
    )
    await this.#refresh()
  }

  #notice(): SqlStatement {
    return notify([channelOf(this.#sql, this.#everyone)], [CHANGED])
  }

  #refresh(): Promise<Members> {
    return this.#reads.read()
  }

  /** All members, and a row with the epoch if there are none. */
  #read(): SqlStatement {
    const { s } = this.#sql
    return {
      text: `SELECT e.id AS epoch, m.worker, m.node, m.facts, m.seen < ${NOW} - $2::bigint AS late
        FROM (SELECT) AS x LEFT JOIN ${s}.bus_epoch e ON true LEFT JOIN ${s}.bus_members m ON m.cluster = $1`,
      values: [this.#options.cluster, this.#lostMs],
    }
  }

  /** Takes the state of the tables, and reports what differs. */
  async #apply({ rows }: SqlResult): Promise<Members> {
    const epoch = epochIn(rows)
    if (this.#epoch !== undefined && this.#epoch !== epoch) {
      this.#former = { members: new Map(this.#members), until: performance.now() + this.#lostMs }
      this.#reset()
    }
    this.#epoch = epoch
    const members: Members = new Map(
      rows
        .filter(({ worker }) => worker !== null)
        .map(({ worker, node, facts }) => [String(worker), { node: String(node), facts: JSON.parse(String(facts)) as Json }])
    )
    // the others do not see this worker, so it is no member until it has joined again
    if (this.#isJoined && !members.has(this.#options.self)) void this.#rejoin(REJOINS)
    await this.#keepFormer(members)
    this.#members = members
    this.#known.set(members)
    return members
  }

  /** Messages are lost: ends open calls, so that gaps from before concern none that begins now. */
  #reset(): void {
    this.#calls.reset()
    this.#receiver.reset()
  }

  async #keepFormer(members: Members): Promise<void> {
    if (!this.#former) return
    const { self, store, lasting } = this.#options
    const missing = [...this.#former.members].filter(([worker]) => worker !== self && !members.has(worker))
    if (missing.length > 0 && performance.now() < this.#former.until) {
      for (const [worker, member] of missing) members.set(worker, member)
      return
    }
    this.#former = undefined
    for (const [worker] of missing) await store.releaseHolder(`${worker}/`, lasting)
  }

  /** Joins again when the row of this member is gone. */
  #rejoin(reason: string): Promise<void> {
    const { log, lasting } = this.#options
    const join = async () => {
      log.warn({}, reason)
      this.#reset()
      await this.#enter()
      this.#known.missed()
      await this.#permits.restore(true)
    }
    return (this.#rejoining ??= join()
      // the next renewal tries again
      .catch((err: unknown) => lasting.signal.aborted || log.debug({ err }, 'failed to join the bus again'))
      .then(() => (this.#rejoining = undefined)))
  }

  /** Renews the row of this member, and removes members that do not; deletes old posts. */
  async #keep(): Promise<void> {
    const { log, lasting } = this.#options
    const signal = AbortSignal.any([lasting.signal, this.#ending.signal])
    for (let prunedAt = performance.now(); ; ) {
      await sleep(this.#lostMs / 3.5, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) return
      try {
        await this.#renew()
        await this.#permits.restore(false)
        this.#sender.repair()
        if (performance.now() - prunedAt < PRUNE_MS) continue
        prunedAt = performance.now()
        await this.#prune()
      } catch (err) {
        if (!signal.aborted) log.debug({ err }, 'failed to renew the membership of this worker')
      }
    }
  }

  async #renew(): Promise<void> {
    const { self } = this.#options
    const { s } = this.#sql
    const renewal = {
      text: `UPDATE ${s}.bus_members SET seen = ${NOW} WHERE worker = $1 AND claimed = 0`,
      values: [self],
    }
    const { isRenewed, late } = await this.#reads.inTurn(async () => {
      const [renewed, found] = await this.#sql.run([renewal, this.#read()])
      await this.#apply(found!)
      const others = found!.rows.filter(row => row.late === true && row.worker !== self)
      return {
        isRenewed: renewed!.count > 0,
        late: others.map(({ worker }) => String(worker)),
      }
    })
    if (this.#ending.signal.aborted) return
    if (!isRenewed) await this.#rejoin(this.#former ? REJOINS : LOST)
    else if (late.length > 0) await this.#removeLate(late)
  }

  /** Removes lost members. One of those that notice it does so. */
  async #removeLate(late: readonly string[]): Promise<void> {
    const { s } = this.#sql
    const [claimed] = await this.#sql.run([
      {
        text: `UPDATE ${s}.bus_members SET claimed = ${NOW} WHERE worker = ANY($1::text[]) AND seen < ${NOW} - $2::bigint AND claimed < ${NOW} - $3::bigint RETURNING worker`,
        values: [late, this.#lostMs, CLAIM_MS],
      },
    ])
    for (const { worker } of claimed!.rows) await this.#remove(String(worker), true)
  }

  /** Frees what a member has held before the others hear of it. */
  async #remove(worker: string, ifClaimed: boolean): Promise<void> {
    await this.#options.store.releaseHolder(`${worker}/`, this.#options.lasting)
    await this.#sql.run([this.#removal(worker, ifClaimed), this.#notice()], RETRY_MS)
    await this.#refresh()
  }

  /** Deletes a member and its permits. */
  #removal(worker: string, ifClaimed: boolean): SqlStatement {
    const { s } = this.#sql
    return {
      text: `WITH gone AS (DELETE FROM ${s}.bus_members WHERE worker = $1 ${ifClaimed ? 'AND claimed > 0' : ''} RETURNING worker)
        UPDATE ${s}.bus_permits p SET held = p.held - gone.worker FROM gone WHERE p.held ? gone.worker`,
      values: [worker],
    }
  }

  /** One member deletes old posts, and names without permits. */
  async #prune(): Promise<void> {
    this.#receiver.tidy(worker => this.#known.has(worker))
    const isFirst = [...this.#members.keys()].every(worker => worker >= this.#options.self)
    const { s } = this.#sql
    if (isFirst) await this.#sql.run([pruneIn(s), { text: `DELETE FROM ${s}.bus_permits WHERE held = '{}'` }])
  }
}

const epochIn = ([row]: SqlResult['rows']) => (typeof row?.epoch === 'string' ? row.epoch : undefined)

const LOST = 'other workers considered this worker lost; it joins the bus again'
const REJOINS = 'a restart of PostgreSQL has ended the membership of this worker; it joins the bus again'
