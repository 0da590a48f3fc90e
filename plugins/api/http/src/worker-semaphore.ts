import { type CallContext, withTimeout } from '@svc/core'
import type { Peers } from '@svc/core/contracts'

/** So many that have nothing open are remembered: who comes again and again costs no new entry each time. */
const REMEMBERED = 1_000
/** This part of all places a worker keeps for the next one: a request that follows another waits for nobody. Where there are fewer, each is asked for. */
const KEPT_PART = 16
/** More than that is kept for so long: of streams that end together the next ones follow at once, and the others are left in one go. */
const LINGER_MS = 50
/** Who gets no answer in this time counts alone; the supervisor's own limits are shorter. */
const ENTER_MS = 5_000

type Shared = Pick<Peers, 'acquire' | 'release'>

interface SemaphoreParts {
  /** What names of these places begin with, among the workers. */
  readonly prefix: string
  readonly limit: number
  /** Absent in a host that runs alone: it counts by itself. */
  readonly peers: Shared | undefined
  readonly lasting: CallContext
}

/** What one caller has here. Its places in all are those that are open, but for the `lone` ones, and those that are kept. */
interface Stock {
  open: number
  kept: number
  /** Open, and unknown to the other workers: there was no answer. */
  lone: number
  /** Asked for, and not answered yet. */
  asked: number
}

/** The places of one kind, of which each caller has `limit` in all workers together. */
export class WorkerSemaphore {
  readonly #parts: SemaphoreParts
  readonly #stocks = new Map<string, Stock>()
  /** How many are kept for good of what one caller has. */
  readonly #part: number
  /** Those of whom more is kept. */
  readonly #lingering = new Set<string>()

  constructor(parts: SemaphoreParts) {
    this.#parts = parts
    this.#part = Math.floor(parts.limit / KEPT_PART)
  }

  /** Takes one. An answer that must be waited for is a promise; it is never rejected. */
  take(key: string): boolean | Promise<boolean> {
    const { peers } = this.#parts
    const stock = this.#stockOf(key)
    if (!peers) return this.#takeAlone(stock)
    if (stock.kept === 0) return this.#ask(peers, key, stock)
    stock.kept--
    stock.open++
    return true
  }

  /** Gives one back that was taken. */
  give(key: string): void {
    const stock = this.#stockOf(key)
    stock.open--
    if (stock.lone > 0) stock.lone--
    else if (this.#part === 0) void this.#leave(key)
    else if (++stock.kept > this.#part) this.#linger(key)
    this.#tidy(key, stock)
  }

  /** Leaves what is kept of the places of this name, if it is one of ours. */
  async yield(name: string): Promise<void> {
    const { prefix } = this.#parts
    const key = name.startsWith(prefix) ? name.slice(prefix.length) : ''
    const stock = this.#stocks.get(key)
    if (stock) await this.#empty(key, stock)
  }

  #stockOf(key: string): Stock {
    const known = this.#stocks.get(key)
    if (known) return known
    const stock = { open: 0, kept: 0, lone: 0, asked: 0 }
    this.#stocks.set(key, stock)
    return stock
  }

  #takeAlone(stock: Stock): boolean {
    if (stock.open >= this.#parts.limit) return false
    stock.open++
    stock.lone++
    return true
  }

  async #ask(peers: Shared, key: string, stock: Stock): Promise<boolean> {
    stock.asked++
    const got = await this.#enter(peers, key)
    stock.asked--
    if (got === undefined) return this.#takeAlone(stock)
    if (got) stock.open++
    else this.#tidy(key, stock)
    return got
  }

  /** Undefined where there is no answer; one that comes later is given back. */
  async #enter(peers: Shared, key: string): Promise<boolean | undefined> {
    const { prefix, limit, lasting } = this.#parts
    const asked = (async () => peers.acquire(prefix + key, limit, lasting))()
    try {
      return await withTimeout(ENTER_MS, () => asked)
    } catch {
      asked.then(late => (late ? this.#leave(key) : undefined)).catch(() => {})
      return undefined
    }
  }

  #linger(key: string): void {
    if (this.#lingering.size === 0) setTimeout(() => this.#leaveLingering(), LINGER_MS).unref()
    this.#lingering.add(key)
  }

  #leaveLingering(): void {
    for (const key of this.#lingering) {
      const stock = this.#stocks.get(key)
      if (stock) void this.#empty(key, stock, this.#part)
    }
    this.#lingering.clear()
  }

  async #leave(key: string): Promise<void> {
    const { prefix, peers, lasting } = this.#parts
    // whoever cannot be told has ended, and with it all it counted
    await peers?.release(prefix + key, lasting).catch(() => {})
  }

  /** Leaves what is kept, but for so many. */
  #empty(key: string, stock: Stock, but = 0): Promise<unknown> {
    const left = Array.from({ length: Math.max(0, stock.kept - but) })
    stock.kept -= left.length
    return Promise.all(left.map(() => this.#leave(key)))
  }

  #tidy(key: string, stock: Stock): void {
    if (stock.open + stock.asked > 0 || this.#stocks.size <= REMEMBERED) return
    this.#stocks.delete(key)
    void this.#empty(key, stock)
  }
}
