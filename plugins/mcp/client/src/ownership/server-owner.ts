import { setTimeout as pause } from 'node:timers/promises'
import { type CallContext, type Log, withTimeout } from '@svc/core'
import type { Fence } from '@svc/core/contracts'
import { noOwner, serverDisabled } from '../connection/failures.ts'
import { callTimesOf } from '../registry/client-options.ts'
import type { Server } from '../registry/configured-servers.ts'
import type { RecordKind, ServerRegistry } from '../registry/server-registry.ts'
import type { PeerWorkers, ServerLease } from './peer-workers.ts'
import type { ServerSession } from './server-session.ts'

export interface ServerOwnerOptions {
  readonly server: Server
  readonly registry: ServerRegistry
  /** The other workers, `undefined` if this process is alone: then it owns all servers. */
  readonly workers: PeerWorkers | undefined
  readonly lease: ServerLease
  readonly self: string
  /** Whether to connect before the first call. */
  readonly isEager: boolean
  readonly createSession: (fence: Fence | undefined, lost: () => void) => ServerSession
  readonly log: Log
  readonly lasting: CallContext
}

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

/** The ownership of one server as this worker knows it. The owner can be this worker, which then has a session. */
export class ServerOwner {
  readonly #options: ServerOwnerOptions
  readonly #tasks: BackgroundTasks
  readonly #changes = new ChangeNotifier()
  readonly #retiring = new Set<ServerSession>()
  #session: ServerSession | undefined
  #taking: Promise<ServerSession | undefined> | undefined
  #loggedIn = 0
  #timer: NodeJS.Timeout | undefined
  #stage: 'waiting' | 'open' | 'leaving' | 'drained' | 'closed' = 'waiting'

  constructor(options: ServerOwnerOptions) {
    this.#options = options
    const { log, lasting, server } = options
    this.#tasks = new BackgroundTasks(err => {
      if (!lasting.signal.aborted) log.debug({ err, server: server.entry.name }, 'a background task of an MCP server failed')
    })
  }

  get server(): Server {
    return this.#options.server
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
    const { registry, server, workers, self } = this.#options
    const endsAt = performance.now() + callTimesOf(server.entry).usual
    for (;;) {
      ctx.signal.throwIfAborted()
      if (!registry.isEnabled(server)) throw serverDisabled(server.entry.name)
      if (this.#session) return this.#session
      const worker = registry.state(server)?.worker
      if (worker && worker !== self && workers?.hasExited(worker) === false) return worker
      const taken = await this.#takeOnce()
      if (taken) return taken
      if (performance.now() > endsAt) throw noOwner(server.entry.name)
      await this.nextChange(ctx)
    }
  }

  /** Resolves with the next change, or after a short time. */
  nextChange({ signal }: CallContext): Promise<void> {
    return this.#changes.next(signal)
  }

  /** Takes the server if it has no owner. Changes have no effect before this call. */
  async begin(ctx: CallContext): Promise<void> {
    const { registry, server, workers, isEager } = this.#options
    this.#stage = 'open'
    this.#loggedIn = this.#loginAt()
    if (!registry.isEnabled(server)) return
    if (!isEager) return this.#listSoon()
    if (await this.#takeOnce()) return
    const worker = registry.state(server)?.worker
    if (worker) await workers?.ping(worker, ctx).catch(() => {}) // marks it if it has ended
    if (worker && workers?.hasExited(worker)) await this.#takeOnce()
  }

  changed(kind: RecordKind): void {
    this.#changes.notify()
    if (this.#stage === 'waiting') return
    if (kind === 'switch') this.#switched()
    if (kind === 'pins') this.#session?.assess()
    if (kind === 'state') this.#moved()
    if (kind === 'login') this.#login()
  }

  /** Called regularly: renews the lease, and takes a server without an owner. */
  async maintain(): Promise<void> {
    const { registry, server, workers, lease } = this.#options
    const session = this.#session
    session?.maintain()
    if (session?.fence && !(await lease.renew(session.fence)) && this.#session === session) this.#lost()
    const worker = registry.state(server)?.worker
    if (!this.#session && (!worker || workers?.hasExited(worker))) this.#takeIfDue()
  }

  /** A worker has ended; takes the server if that worker owned it. */
  workerExited(holder: string): void {
    const { registry, server, workers } = this.#options
    const state = registry.state(server)
    if (!state?.worker || state.holder !== holder) return
    workers?.markExited(state.worker)
    this.#takeIfDue()
    this.#changes.notify()
  }

  /** Releases the lease for a successor of this worker; the session serves until one takes over. */
  async leave(): Promise<void> {
    this.#stage = 'leaving'
    const session = this.#session
    if (!session?.fence) return
    await this.#options.lease.release(session.fence)
    await session.leave()
  }

  /** Takes no more calls once a successor does. Resolves when the running calls have ended. */
  async drain(): Promise<void> {
    if (this.#stage === 'leaving' && this.#session?.fence) await this.#handOver(this.#options.lasting.signal)
    this.#stage = 'drained'
    await Promise.all([...this.#retiring, ...(this.#session ? [this.#session] : [])].map(one => one.idle()))
  }

  /** Closes the session and all retiring ones. */
  async close(ctx: CallContext): Promise<void> {
    this.#stage = 'closed'
    clearTimeout(this.#timer)
    await Promise.all([this.#drop(ctx), ...[...this.#retiring].map(one => one.close())])
    await Promise.all([this.#taking?.catch(() => {}), this.#tasks.end()])
  }

  #takeOnce(): Promise<ServerSession | undefined> {
    this.#taking ??= this.#take().finally(() => {
      this.#taking = undefined
    })
    return this.#taking
  }

  async #take(): Promise<ServerSession | undefined> {
    const { registry, server, createSession, workers, lease, isEager } = this.#options
    if (this.#session) return this.#session
    const fence = workers && (await lease.acquire())
    if (workers && !fence) return undefined
    if (this.#isClosed()) {
      if (fence) await lease.release(fence)
      return undefined
    }
    const before = registry.state(server)
    const session = createSession(fence, () => this.#session === session && this.#lost())
    this.#session = session
    const opened = isEager ? session.open().catch(() => {}) : undefined // its state has the error
    // the old owner answers until then, so that no caller waits for the handshake
    if (before?.leaving && before.worker && workers?.hasExited(before.worker) === false)
      await withTimeout(TAKEOVER_MS, () => opened).catch(() => {})
    if (this.#session === session) await session.announce()
    return session
  }

  #isClosed(): boolean {
    return this.#stage === 'closed'
  }

  #takeIfDue() {
    const { registry, server, isEager } = this.#options
    if (isEager && this.#stage === 'open' && registry.isEnabled(server)) this.#tasks.add(this.#takeOnce())
  }

  #listSoon() {
    const { registry, server } = this.#options
    const list = () => this.#tasks.add(this.#takeOnce().then(session => session?.open()))
    if (!registry.tools(server)) this.#timer = setTimeout(list, STAYS_MS).unref()
  }

  #switched() {
    const { registry, server, lasting } = this.#options
    if (!registry.isEnabled(server)) this.#tasks.add(this.#drop(lasting))
    else if (this.#session) this.#tasks.add(this.#session.enable())
    else this.#takeIfDue()
  }

  #moved() {
    const { registry, server, self } = this.#options
    const state = registry.state(server)
    // before the first report of this session, a state of another worker is an old one
    if (state?.worker && state.worker !== self && this.#session?.isAnnounced) return this.#lost()
    if (!this.#session && (!state?.worker || state.leaving)) this.#takeIfDue()
  }

  #login() {
    const at = this.#loginAt()
    const isNew = at !== this.#loggedIn
    this.#loggedIn = at
    if (isNew && this.#session) this.#tasks.add(this.#session.reconnect('a user has logged in'))
  }

  #loginAt(): number {
    const login = this.#options.registry.login(this.#options.server)?.value as { readonly at?: number } | undefined
    return login?.at ?? 0
  }

  /** Another worker owns the server now; calls that run here end here. */
  #lost() {
    const session = this.#session
    this.#session = undefined
    if (!session) return
    this.#retiring.add(session)
    this.#tasks.add(this.#retire(session))
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
  async #handOver(signal: AbortSignal): Promise<void> {
    const { lease } = this.#options
    const begun = performance.now()
    const isWaiting = () => this.#session !== undefined && !signal.aborted && performance.now() - begun < ANNOUNCED_MS
    for (let isWanted = false; isWaiting(); ) {
      await this.#changes.next(signal)
      if (isWanted || performance.now() - begun < WANTED_MS) continue
      const fence = await lease.acquire()
      if (fence) return lease.release(fence)
      isWanted = true
    }
    for (const until = performance.now() + SEEN_MS; performance.now() < until && !signal.aborted; )
      await this.#changes.next(signal)
  }

  async #drop(ctx: CallContext): Promise<void> {
    const session = this.#session
    this.#session = undefined
    if (!session) return
    await session.close()
    if (!session.fence) return
    const { registry, server, lease, self } = this.#options
    await lease.release(session.fence)
    if (registry.state(server)?.worker !== self) return
    // if this fails, the other workers find out when they ask this worker
    await registry.report(server, session.record(null), undefined, ctx).catch(() => {})
  }
}

/** Tasks without a caller that waits; `end` waits for all of them. */
class BackgroundTasks {
  readonly #running = new Set<Promise<void>>()
  readonly #failed: (error: unknown) => void

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  add(work: Promise<unknown>): void {
    const done: Promise<void> = work.then(() => {}, this.#failed).finally(() => this.#running.delete(done))
    this.#running.add(done)
  }

  async end(): Promise<void> {
    await Promise.all(this.#running)
  }
}

/** A notification can be missed: waiting ends after this time too. */
const POLL_MS = 250

class ChangeNotifier {
  #next = Promise.withResolvers<void>()

  notify(): void {
    const { resolve } = this.#next
    this.#next = Promise.withResolvers()
    resolve()
  }

  /** Resolves with the next change, or after a short time. */
  async next(signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const soon = pause(POLL_MS, undefined, { signal: AbortSignal.any([signal, ending.signal]) }).catch(() => {})
    await Promise.race([this.#next.promise, soon])
    ending.abort()
  }
}
