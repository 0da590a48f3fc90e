import { setTimeout as pause } from 'node:timers/promises'
import { type Log, type Use, within } from '@svc/core'
import type { Fence } from '@svc/core/contracts'
import { ownerless, switchedOff } from '../connection/failures.ts'
import { timesOf } from '../registry/client-options.ts'
import type { Server } from '../registry/configured-servers.ts'
import type { Board, Change } from '../registry/server-registry.ts'
import type { Crew } from './peer-workers.ts'
import type { Claim } from './server-lease.ts'
import type { Holding } from './server-session.ts'

export interface SeatParts {
  readonly server: Server
  readonly board: Board
  /** The other workers, and the right to own the server; none where this process is alone: then it owns all. */
  readonly crew: Crew | undefined
  readonly claim: Claim
  readonly self: string
  /** Whether the server is connected before anybody asks for it. */
  readonly isEager: boolean
  readonly hold: (fence: Fence | undefined, lost: () => void) => Holding
  readonly log: Log
  readonly lasting: Use
}

/** An owner that takes over from a living one tells so once it is connected, or after so many milliseconds. */
const TAKEOVER_MS = 10_000
/** Without others a host may be gone in a moment: a command. What nobody has seen yet is looked at when it stays. */
const STAYS_MS = 1_000

/** Who owns one server, as this worker sees it; perhaps itself. */
export class Seat {
  readonly #parts: SeatParts
  readonly #chores: Chores
  readonly #news = new News()
  readonly #retiring = new Set<Holding>()
  #holding: Holding | undefined
  #taking: Promise<Holding | undefined> | undefined
  #loggedIn = 0
  #timer: NodeJS.Timeout | undefined
  #stage: 'waiting' | 'open' | 'leaving' | 'drained' | 'closed' = 'waiting'

  constructor(parts: SeatParts) {
    this.#parts = parts
    const { log, lasting, server } = parts
    this.#chores = new Chores(err => {
      if (!lasting.signal.aborted) log.debug({ err, server: server.entry.name }, 'a tool server is not as it is to be')
    })
  }

  get server(): Server {
    return this.#parts.server
  }
  /** The connection, where this worker owns it; `offered`: to those who ask from elsewhere. */
  get holding(): Holding | undefined {
    return this.#holding
  }
  get offered(): Holding | undefined {
    return this.#stage === 'drained' || this.#stage === 'closed' ? undefined : this.#holding
  }

  /** The connection, or the worker that owns it; takes it where nobody does. Throws MCP_CALL_FAILED where it is switched off, or nobody can. */
  async owner(use: Use): Promise<Holding | string> {
    const { board, server, crew, self } = this.#parts
    const endsAt = performance.now() + timesOf(server.entry).usual
    for (;;) {
      use.signal.throwIfAborted()
      if (!board.isEnabled(server)) throw switchedOff(server.entry.name)
      if (this.#holding) return this.#holding
      const worker = board.state(server)?.worker
      if (worker && worker !== self && crew?.isGone(worker) === false) return worker
      const taken = await this.#takeOnce()
      if (taken) return taken
      if (performance.now() > endsAt) throw ownerless(server.entry.name)
      await this.news(use)
    }
  }

  /** Answers with the next change, at the latest soon. */
  news({ signal }: Use): Promise<void> {
    return this.#news.next(signal)
  }

  /** Takes the server where that is due; from here on changes count. */
  async begin(use: Use): Promise<void> {
    const { board, server, crew, isEager } = this.#parts
    this.#stage = 'open'
    this.#loggedIn = this.#loginAt()
    if (!board.isEnabled(server)) return
    if (!isEager) return this.#seeSoon()
    if (await this.#takeOnce()) return
    const worker = board.state(server)?.worker
    if (worker) await crew?.look(worker, use).catch(() => {}) // whether it lives is noted
    if (worker && crew?.isGone(worker)) await this.#takeOnce()
  }

  changed(what: Change): void {
    this.#news.tell()
    if (this.#stage === 'waiting') return
    if (what === 'switch') this.#switched()
    if (what === 'pins') this.#holding?.weigh()
    if (what === 'state') this.#moved()
    if (what === 'login') this.#login()
  }

  /** Keeps what is owned, and takes what nobody has. */
  async tend(): Promise<void> {
    const { board, server, crew, claim } = this.#parts
    const holding = this.#holding
    holding?.tend()
    if (holding?.fence && !(await claim.keep(holding.fence)) && this.#holding === holding) this.#lost()
    const worker = board.state(server)?.worker
    if (!this.#holding && (!worker || crew?.isGone(worker))) this.#takeWhereDue()
  }

  /** A worker has ended: what it owned is free. */
  gone(holder: string): void {
    const { board, server, crew } = this.#parts
    const state = board.state(server)
    if (!state?.worker || state.holder !== holder) return
    crew?.noteGone(state.worker)
    this.#takeWhereDue()
    this.#news.tell()
  }

  /** A successor of this worker may take over: until one does, it is served here. */
  async leave(): Promise<void> {
    this.#stage = 'leaving'
    const holding = this.#holding
    if (!holding?.fence) return
    await this.#parts.claim.leave(holding.fence)
    await holding.leave()
  }

  /** Takes no more calls once a successor does; answers when those that run have ended. */
  async drain(): Promise<void> {
    const { claim, lasting } = this.#parts
    const isOwned = () => this.#holding !== undefined
    if (this.#stage === 'leaving' && this.#holding?.fence) await handOver({ news: this.#news, claim, isOwned }, lasting.signal)
    this.#stage = 'drained'
    await Promise.all([...this.#retiring, ...(this.#holding ? [this.#holding] : [])].map(one => one.idle()))
  }

  /** Ends the connection, and what is left of others before. */
  async close(use: Use): Promise<void> {
    this.#stage = 'closed'
    clearTimeout(this.#timer)
    await Promise.all([this.#drop(use), ...[...this.#retiring].map(one => one.close())])
    await Promise.all([this.#taking?.catch(() => {}), this.#chores.end()])
  }

  #takeOnce(): Promise<Holding | undefined> {
    this.#taking ??= this.#take().finally(() => {
      this.#taking = undefined
    })
    return this.#taking
  }

  async #take(): Promise<Holding | undefined> {
    const { board, server, hold, crew, claim, isEager } = this.#parts
    if (this.#holding) return this.#holding
    const fence = crew && (await claim.take())
    if (crew && !fence) return undefined
    if (this.#isClosed()) {
      if (fence) await claim.leave(fence)
      return undefined
    }
    const before = board.state(server)
    const holding = hold(fence, () => this.#holding === holding && this.#lost())
    this.#holding = holding
    const opened = isEager ? holding.open().catch(() => {}) : undefined // why it failed stands in its state
    // the old owner answers until then, so nobody waits for the handshake
    if (before?.leaving && before.worker && crew?.isGone(before.worker) === false)
      await within(TAKEOVER_MS, () => opened).catch(() => {})
    if (this.#holding === holding) await holding.announce()
    return holding
  }

  #isClosed(): boolean {
    return this.#stage === 'closed'
  }

  #takeWhereDue() {
    const { board, server, isEager } = this.#parts
    if (isEager && this.#stage === 'open' && board.isEnabled(server)) this.#chores.add(this.#takeOnce())
  }

  #seeSoon() {
    const { board, server } = this.#parts
    const see = () => this.#chores.add(this.#takeOnce().then(holding => holding?.open()))
    if (!board.tools(server)) this.#timer = setTimeout(see, STAYS_MS).unref()
  }

  #switched() {
    const { board, server, lasting } = this.#parts
    if (!board.isEnabled(server)) this.#chores.add(this.#drop(lasting))
    else if (this.#holding) this.#chores.add(this.#holding.enable())
    else this.#takeWhereDue()
  }

  #moved() {
    const { board, server, self } = this.#parts
    const state = board.state(server)
    // until it has told of itself, what others told before is no news
    if (state?.worker && state.worker !== self && this.#holding?.isTold) return this.#lost()
    if (!this.#holding && (!state?.worker || state.leaving)) this.#takeWhereDue()
  }

  #login() {
    const at = this.#loginAt()
    const isNew = at !== this.#loggedIn
    this.#loggedIn = at
    if (isNew && this.#holding) this.#chores.add(this.#holding.renew('somebody has logged in'))
  }

  #loginAt(): number {
    const login = this.#parts.board.login(this.#parts.server)?.value as { readonly at?: number } | undefined
    return login?.at ?? 0
  }

  /** Another worker owns it now: calls that run here end here. */
  #lost() {
    const holding = this.#holding
    this.#holding = undefined
    if (!holding) return
    this.#retiring.add(holding)
    this.#chores.add(this.#retire(holding))
  }

  /** Lets the calls that run on it end. */
  async #retire(holding: Holding): Promise<void> {
    await holding.idle()
    await holding.close()
    this.#retiring.delete(holding)
  }

  async #drop(use: Use): Promise<void> {
    const holding = this.#holding
    this.#holding = undefined
    if (!holding) return
    await holding.close()
    if (!holding.fence) return
    const { board, server, claim, self } = this.#parts
    await claim.leave(holding.fence)
    // where it cannot be told any more, whoever asks for it finds out
    if (board.state(server)?.worker === self) await board.tell(server, holding.note(null), undefined, use).catch(() => {})
  }
}

interface HandOverParts {
  readonly news: News
  readonly claim: Claim
  /** Whether nobody else owns the server yet. */
  readonly isOwned: () => boolean
}

/** A successor that has not taken the lease by then has no such server. */
const WANTED_MS = 1_000
/** One that has taken it and does not tell so is no longer waited for. */
const TOLD_MS = 10_000
/** So long the others have to look at the store once more: a look every quarter of a second, on a busy machine later. */
const SEEN_MS = 1_000

/**
 * Answers when all workers know the successor of this one. Who asks just when a worker ends cannot know whether it was heard, and so fails: a worker that owns
 * a server ends after that.
 */
async function handOver({ news, claim, isOwned }: HandOverParts, signal: AbortSignal): Promise<void> {
  const begun = performance.now()
  for (let isWanted = false; isOwned() && !signal.aborted && performance.now() - begun < TOLD_MS; ) {
    await news.next(signal)
    if (isWanted || performance.now() - begun < WANTED_MS) continue
    const fence = await claim.take()
    if (fence) return claim.leave(fence)
    isWanted = true
  }
  for (const until = performance.now() + SEEN_MS; performance.now() < until && !signal.aborted; ) await news.next(signal)
}

/** A change that is not told is looked for. */
const LOOK_MS = 250

/** Something that changes, for those who wait for it. */
class News {
  #next = Promise.withResolvers<void>()

  tell(): void {
    const { resolve } = this.#next
    this.#next = Promise.withResolvers()
    resolve()
  }

  /** Answers with the next change, at the latest soon. */
  async next(signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const soon = pause(LOOK_MS, undefined, { signal: AbortSignal.any([signal, ending.signal]) }).catch(() => {})
    await Promise.race([this.#next.promise, soon])
    ending.abort()
  }
}

/** Work that nobody waits for, but the end of the one who began it. */
export class Chores {
  readonly #running = new Set<Promise<void>>()
  readonly #failed: (error: unknown) => void

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  add(work: Promise<unknown>): void {
    const done: Promise<void> = work.then(() => {}, this.#failed).finally(() => this.#running.delete(done))
    this.#running.add(done)
  }

  /** Answers when all that was begun has ended. */
  async end(): Promise<void> {
    await Promise.all(this.#running)
  }
}
