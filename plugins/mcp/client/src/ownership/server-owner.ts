import { type CallContext, codeOf, createCoalescer, Wakeup, withTimeout } from '@svc/core'
import { type LeaseHold, tryHold } from '@svc/storage-kit'
import { noOwner, serverDisabled } from '../errors.ts'
import { callTimesOf } from '../registry/client-options.ts'
import type { McpServerSettings } from '../registry/configured-servers.ts'
import { KEYS, type RecordKind } from '../registry/records.ts'
import type { McpContext } from './context.ts'
import { ServerSession } from './server-session.ts'

/** The lease of a killed worker expires after this time, unless another worker releases it earlier. */
const LEASE_MS = 30_000
const RELEASE_MS = 5_000
/** A notification can be missed: waiting ends after this time too. */
const POLL_MS = 250
/** A worker that takes over from a living owner announces itself once it is connected, or after this time. */
const TAKEOVER_MS = 10_000
/** A host without peers can be a short command: it lists unknown tools only when it runs for longer. */
const STAYS_MS = 1_000
/** A successor that has not acquired the lease after this time does not use this server. */
const WANTED_MS = 1_000
/** Maximum wait for a successor that has the lease to announce itself. */
const ANNOUNCED_MS = 10_000
/** Time for the other workers to read the new state from the store: a poll every 250 ms, later on a busy machine. */
const SEEN_MS = 1_000

/** The ownership of one server as this worker knows it: the holder of its lease owns it. This worker has a session if it is the owner. */
export class ServerOwner {
  readonly server: McpServerSettings
  readonly #context: McpContext
  readonly #lease: string
  readonly #changes = new Wakeup()
  /** Tasks without a caller that waits. */
  readonly #tasks = new Set<Promise<unknown>>()
  readonly #retiring = new Set<ServerSession>()
  readonly #taking = createCoalescer(() => this.#take())
  #session: ServerSession | undefined
  #loggedIn = 0
  #timer: NodeJS.Timeout | undefined
  #stage: 'waiting' | 'open' | 'leaving' | 'drained' | 'closed' = 'waiting'

  constructor(context: McpContext, server: McpServerSettings) {
    this.server = server
    this.#context = context
    this.#lease = `mcp/${KEYS.state(server, context.serverId)}`
  }

  /** The session, if this worker owns the server. */
  get session(): ServerSession | undefined {
    return this.#session
  }
  /** The session for questions of other workers. */
  get offered(): ServerSession | undefined {
    return this.#stage === 'drained' || this.#stage === 'closed' ? undefined : this.#session
  }

  /** Returns the session, or the worker that owns the server. Takes a server without an owner. Throws MCP_CALL_FAILED if it is disabled, or has no owner in time. */
  async find(ctx: CallContext): Promise<ServerSession | string> {
    const { registry, workers, self } = this.#context
    const { server } = this
    const endsAt = performance.now() + callTimesOf(server.entry).usual
    for (;;) {
      ctx.signal.throwIfAborted()
      if (!registry.isEnabled(server)) throw serverDisabled(server.entry.name)
      if (this.#session) return this.#session
      const worker = registry.state(server)?.worker
      if (worker && worker !== self && workers?.exited.has(worker) === false) return worker
      const taken = await this.#taking.join()
      if (taken) return taken
      if (performance.now() > endsAt) throw noOwner(server.entry.name)
      await this.nextChange(ctx)
    }
  }

  /** Resolves with the next change, or after a short time. */
  nextChange({ signal }: CallContext): Promise<void> {
    return this.#changes.after(this.#changes.rings, POLL_MS, signal)
  }

  /** Takes the server if it has no owner. Changes have no effect before this call. */
  async begin(ctx: CallContext): Promise<void> {
    const { registry, workers, isEager } = this.#context
    const { server } = this
    this.#stage = 'open'
    this.#loggedIn = registry.loginAt(server)
    if (!registry.isEnabled(server)) return
    if (!isEager) return this.#listSoon()
    if (await this.#taking.join()) return
    const worker = registry.state(server)?.worker
    if (worker) await workers?.ping(worker, ctx).catch(() => {}) // marks it if it has ended
    if (worker && workers?.exited.has(worker)) await this.#taking.join()
  }

  changed(kind: RecordKind): void {
    this.#changes.ring()
    if (this.#stage === 'waiting') return
    if (kind === 'switch') this.#switched()
    if (kind === 'pins') this.#session?.assess()
    if (kind === 'state') this.#moved()
    if (kind === 'login') this.#login()
  }

  /** Renews the lease, or takes a server without an owner. */
  async maintain(): Promise<void> {
    const session = this.#session
    session?.maintain()
    if (session?.hold && !(await this.#renew(session.hold)) && this.#session === session) this.#lost()
    this.#takeIfFree()
  }

  /** A worker has ended; takes the server if that worker owned it. */
  workerExited(holder: string): void {
    const { registry, workers } = this.#context
    const state = registry.state(this.server)
    if (!state?.worker || state.holder !== holder) return
    workers?.exited.add(state.worker)
    this.#takeIfFree()
    this.#changes.ring()
  }

  /** Releases the lease for a successor of this worker; the session serves until one takes over. */
  async leave(): Promise<void> {
    this.#stage = 'leaving'
    const session = this.#session
    if (!session?.hold) return
    await this.#release(session.hold)
    await session.leave()
  }

  /** Takes no more calls once a successor does. Resolves when the running calls have ended. */
  async drain(): Promise<void> {
    if (this.#stage === 'leaving' && this.#session?.hold) await this.#handOver(this.#context.lasting)
    this.#stage = 'drained'
    await Promise.all([...this.#retiring, ...(this.#session ? [this.#session] : [])].map(one => one.idle()))
  }

  async close(ctx: CallContext): Promise<void> {
    this.#stage = 'closed'
    clearTimeout(this.#timer)
    await Promise.all([this.#drop(ctx), ...[...this.#retiring].map(one => one.close())])
    await Promise.all([this.#taking.idle(), ...this.#tasks])
  }

  async #take(): Promise<ServerSession | undefined> {
    const { registry, workers, isEager } = this.#context
    if (this.#session) return this.#session
    const hold = workers && (await this.#acquire())
    if (workers && !hold) return undefined
    if (this.#stage === 'closed' || !registry.isEnabled(this.server)) {
      if (hold) await this.#release(hold)
      return undefined
    }
    const before = registry.state(this.server)
    const session = new ServerSession(this.#context, this.server, hold, () => this.#session === session && this.#lost())
    this.#session = session
    const opened = isEager ? session.open().catch(() => {}) : undefined // its state has the error
    // the old owner answers until then, so that no caller waits for the handshake
    if (before?.leaving && before.worker && workers?.exited.has(before.worker) === false)
      await withTimeout(TAKEOVER_MS, () => opened).catch(() => {})
    if (this.#session === session) await session.announce()
    return session
  }

  /** Returns the lease, `undefined` if another worker holds it. Releases the lease of a worker that has ended. */
  async #acquire(): Promise<LeaseHold | undefined> {
    const { store, registry, workers, holder, lasting } = this.#context
    const acquire = () => tryHold(store, this.#lease, { holder, ttlMs: LEASE_MS }, lasting)
    const hold = await acquire()
    const state = registry.state(this.server)
    if (hold || !state?.worker || !workers?.exited.has(state.worker)) return hold
    await store.releaseHolder(state.holder, lasting)
    return acquire()
  }

  /** Returns false if another worker can hold the lease by now: it is lost, or was not renewed in time. */
  async #renew(hold: LeaseHold): Promise<boolean> {
    const { log, lasting } = this.#context
    try {
      await hold.renew(lasting)
    } catch (error) {
      if (codeOf(error) === 'STORE_FENCED') return false
      log.warn({ err: error, lease: this.#lease }, 'failed to renew the lease of an MCP server')
    }
    return true
  }

  async #release({ fence }: LeaseHold): Promise<void> {
    const { store, log, lasting } = this.#context
    // must also work while this worker ends and `lasting` is aborted
    const ctx = { ...lasting, signal: AbortSignal.timeout(RELEASE_MS) }
    const failed = 'failed to release the lease of an MCP server; it expires by itself'
    await store.release(fence, ctx).catch((err: unknown) => log.warn({ err, lease: this.#lease }, failed))
  }

  #start(task: Promise<unknown>): void {
    const { log, lasting } = this.#context
    const done = task
      .catch((err: unknown) => {
        const { name } = this.server.entry
        if (!lasting.signal.aborted) log.debug({ err, server: name }, 'a background task of an MCP server failed')
      })
      .finally(() => this.#tasks.delete(done))
    this.#tasks.add(done)
  }

  /** Takes the server if it has no owner, or its owner has ended or is about to. */
  #takeIfFree() {
    const { registry, workers } = this.#context
    const state = registry.state(this.server)
    if (!this.#session && (!state?.worker || state.leaving || workers?.exited.has(state.worker))) this.#takeIfDue()
  }

  #takeIfDue() {
    const { registry, isEager } = this.#context
    if (isEager && this.#stage === 'open' && registry.isEnabled(this.server)) this.#start(this.#taking.join())
  }

  #listSoon() {
    const list = () => this.#start(this.#taking.join().then(session => session?.open()))
    if (!this.#context.registry.tools(this.server)) this.#timer = setTimeout(list, STAYS_MS).unref()
  }

  #switched() {
    const { registry, lasting } = this.#context
    if (!registry.isEnabled(this.server)) this.#start(this.#drop(lasting))
    else if (this.#session) this.#start(this.#session.enable())
    else this.#takeIfDue()
  }

  #moved() {
    const { registry, self } = this.#context
    const state = registry.state(this.server)
    // before the first report of this session, a state of another worker is an old one
    if (state?.worker && state.worker !== self && this.#session?.isAnnounced) return this.#lost()
    this.#takeIfFree()
  }

  #login() {
    const at = this.#context.registry.loginAt(this.server)
    const isNew = at !== this.#loggedIn
    this.#loggedIn = at
    if (isNew && this.#session) this.#start(this.#session.reconnect('a user has logged in'))
  }

  /** Another worker owns the server now; calls that run here end here. */
  #lost() {
    const session = this.#session
    this.#session = undefined
    if (!session) return
    this.#retiring.add(session)
    this.#start(this.#retire(session))
  }

  async #retire(session: ServerSession): Promise<void> {
    await session.idle()
    await session.close()
    this.#retiring.delete(session)
  }

  /**
   * Resolves when all workers know the successor of this one. A question that meets a worker just as it ends has an unknown delivery, and so fails: the
   * owner of a server ends after that.
   */
  async #handOver(ctx: CallContext): Promise<void> {
    const { signal } = ctx
    const begun = performance.now()
    const isWaiting = () => this.#session !== undefined && !signal.aborted && performance.now() - begun < ANNOUNCED_MS
    for (let isWanted = false; isWaiting(); ) {
      await this.nextChange(ctx)
      if (isWanted || performance.now() - begun < WANTED_MS) continue
      const hold = await this.#acquire()
      if (hold) return this.#release(hold)
      isWanted = true
    }
    for (const until = performance.now() + SEEN_MS; performance.now() < until && !signal.aborted; ) await this.nextChange(ctx)
  }

  async #drop(ctx: CallContext): Promise<void> {
    const session = this.#session
    this.#session = undefined
    if (!session) return
    await session.close()
    if (!session.hold) return
    const { registry, self } = this.#context
    await this.#release(session.hold)
    if (registry.state(this.server)?.worker !== self) return
    // if this fails, the other workers find out when they ask this worker
    await registry.report(this.server, session.record(null), undefined, ctx).catch(() => {})
  }
}
