import { type CallContext, withTimeout } from '@svc/core'
import type { Peers } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import type { ServerConfig } from './config.ts'
import type { Context, Middleware, RequestState } from './context.ts'
import { crowded } from './errors.ts'

/** What one principal may have open at a time, in all workers: requests, and streams among them. Without a name it is the address that counts. */
export interface ConcurrencyLimit {
  /** Throws RATE_LIMITED. */
  readonly middleware: Middleware
  /** For a tap of `Peers.hooks.reclaim`. */
  readonly wanted: (place: { readonly name: string }) => Promise<void>
}

type ConcurrencyConfig = Pick<ServerConfig, 'max_requests_per_principal' | 'max_streams_per_principal'>

/** One limit, and its error. */
interface Kind {
  readonly places: WorkerSemaphore
  full(): Error
}

export function createConcurrencyLimit(
  config: ConcurrencyConfig,
  peers: SharedLimits | undefined,
  lasting: CallContext
): ConcurrencyLimit {
  const kindOf = (what: 'requests' | 'streams', limit: number): Kind => ({
    places: new WorkerSemaphore({ prefix: `http.${what}/`, limit, peers, lasting }),
    full: () => crowded(what, limit),
  })
  const requests = kindOf('requests', config.max_requests_per_principal)
  const streams = kindOf('streams', config.max_streams_per_principal)
  const [plain, streaming] = [[requests], [requests, streams]]
  return {
    async middleware(ctx, next) {
      const { state } = ctx
      if (state.gone || state.route?.route.uncounted) return next() // a client that has left already will not leave again
      const kinds = isStream(ctx) ? streaming : plain
      const key = keyOf(state)
      const taken = kinds.map(({ places }) => places.take(key))
      // some places may be another worker's to give
      admit(state, key, kinds, taken.every(isKnown) ? taken : await Promise.all(taken.map(async got => got)))
      return next()
    },
    async wanted({ name }) {
      // what is out has its end within this turn of the loop: its places come first
      await new Promise(resolve => setImmediate(resolve))
      await Promise.all(streaming.map(({ places }) => places.yield(name)))
    },
  }
}

/** A mount says which of its requests open one. */
function isStream({ state: { route, mount }, req }: Context): boolean {
  if (route) return route.route.stream !== undefined
  const { method, headers } = req
  return mount?.streams?.some(one => one.method === method && String(headers[one.header] ?? '').includes(one.holds)) ?? false
}

/** A stream that does not end by itself. */
export const isEndless = (ctx: Context): boolean => (ctx.state.route ? ctx.state.route.route.endless === true : isStream(ctx))

const isKnown = (got: boolean | Promise<boolean>): got is boolean => typeof got === 'boolean'

const keyOf = ({ principal, address }: RequestState) =>
  principal.id === 'anonymous' ? `address/${networkOf(address)}` : `id/${principal.id}`

/** Holds all its places until its end, or gives back those that it got: while it waited for them its client may have left. */
function admit(state: RequestState, key: string, kinds: readonly Kind[], got: readonly boolean[]) {
  const back = () => kinds.forEach((kind, at) => got[at] && kind.places.give(key))
  const full = kinds.find((_, at) => !got[at])
  if (full || state.gone) back()
  else state.left = back
  if (full) throw full.full()
}

/** So many that have nothing open are remembered: who comes again and again costs no new entry each time. */
const REMEMBERED = 1_000
/** A worker keeps this fraction of the permits for its next requests, so they need no round trip. With a smaller limit, each permit is requested. */
const KEPT_PART = 16
/** More than that is kept for so long: of streams that end together the next ones follow at once, and the others are left in one go. */
const LINGER_MS = 50
/** Who gets no answer in this time counts alone; the supervisor's own limits are shorter. */
const ENTER_MS = 5_000

type SharedLimits = Pick<Peers, 'acquire' | 'release'>

interface SemaphoreParts {
  /** What names of these places begin with, among the workers. */
  readonly prefix: string
  readonly limit: number
  /** Absent in a host that runs alone: it counts by itself. */
  readonly peers: SharedLimits | undefined
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

  async #ask(peers: SharedLimits, key: string, stock: Stock): Promise<boolean> {
    stock.asked++
    const got = await this.#enter(peers, key)
    stock.asked--
    if (got === undefined) return this.#takeAlone(stock)
    if (got) stock.open++
    else this.#tidy(key, stock)
    return got
  }

  /** Undefined where there is no answer; one that comes later is given back. */
  async #enter(peers: SharedLimits, key: string): Promise<boolean | undefined> {
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
    // if the supervisor cannot be reached, it has ended, and its counts with it
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
