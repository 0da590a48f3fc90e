import { type CallContext, withTimeout } from '@svc/core'
import type { Allowance, Limits, Peers } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import type { Next } from 'koa'
import ratelimit from 'koa-ratelimit'
import type { ServerConfig } from './config.ts'
import type { Context, Middleware, RequestState } from './context.ts'
import { countUnknown, tooMany, tooManyOpen } from './errors.ts'
import { isLoopback } from './listener.ts'

/** Limits the open requests and open streams of one principal, across all workers. Anonymous requests count by address. */
export interface ConcurrencyLimit {
  /** Throws RATE_LIMITED, and UNAVAILABLE in a cluster that cannot count. */
  readonly middleware: Middleware
  /** For a tap of `Peers.hooks.reclaim`. */
  readonly wanted: (place: { readonly name: string }) => Promise<void>
}

type ConcurrencyConfig = Pick<ServerConfig, 'max_requests_per_principal' | 'max_streams_per_principal'>

/** A limit and the errors of a request that gets no permit. */
interface Kind {
  readonly semaphore: WorkerSemaphore
  full(): Error
  unknown(): Error
}

/** `isCluster`: the servers of a cluster share the limits. */
export function createConcurrencyLimit(
  config: ConcurrencyConfig,
  peers: SharedLimits | undefined,
  isCluster: boolean,
  lasting: CallContext
): ConcurrencyLimit {
  const kindOf = (what: 'requests' | 'streams', limit: number): Kind => ({
    semaphore: new WorkerSemaphore({ prefix: `http.${what}/`, limit, peers, isCluster, lasting }),
    full: () => tooManyOpen(what, limit),
    unknown: () => countUnknown(what),
  })
  const requests = kindOf('requests', config.max_requests_per_principal)
  const streams = kindOf('streams', config.max_streams_per_principal)
  const [plain, streaming] = [[requests], [requests, streams]]
  return {
    async middleware(ctx, next) {
      const { state } = ctx
      if (state.gone || state.route?.route.uncounted) return next() // `left` does not run for a client that has already disconnected
      const kinds = isStream(ctx) ? streaming : plain
      const key = keyOf(state)
      const taken = kinds.map(({ semaphore }) => semaphore.take(key))
      // `take` returns a promise when it must ask the supervisor
      admit(state, key, kinds, taken.every(isKnown) ? taken : await Promise.all(taken.map(async got => got)))
      return next()
    },
    async wanted({ name }) {
      // answers that finish in this tick release their permits first
      await new Promise(resolve => setImmediate(resolve))
      await Promise.all(streaming.map(({ semaphore }) => semaphore.yield(name)))
    },
  }
}

/** Whether the request opens a stream. A mount declares which of its requests do. */
function isStream({ state: { route, mount }, req }: Context): boolean {
  if (route) return route.route.stream !== undefined
  const { method, headers } = req
  return (
    mount?.streams?.some(stream => stream.method === method && String(headers[stream.header] ?? '').includes(stream.holds)) ??
    false
  )
}

/** A stream that does not end by itself. */
export const isEndless = (ctx: Context): boolean => (ctx.state.route ? ctx.state.route.route.endless === true : isStream(ctx))

const isKnown = (got: Taken | Promise<Taken>): got is Taken => !(got instanceof Promise)

const keyOf = ({ principal, address }: RequestState) =>
  principal.id === 'anonymous' ? `address/${networkOf(address)}` : `id/${principal.id}`

/**
 * Keeps the permits until the request ends. Returns them at once if one is missing or the client disconnected while waiting. The
 * operator of the server can ask it although nothing counts.
 */
function admit(state: RequestState, key: string, kinds: readonly Kind[], got: readonly Taken[]) {
  const back = () => kinds.forEach((kind, at) => got[at] === true && kind.semaphore.give(key))
  const full = kinds.find((_, at) => got[at] === false)
  const unknown = state.isOperator ? undefined : kinds.find((_, at) => got[at] === 'unknown')
  if (full || unknown || state.gone) back()
  else state.left = back
  if (full) throw full.full()
  if (unknown) throw unknown.unknown()
}

/** Maximum idle callers in memory, so that a frequent caller does not need a new entry each time. */
const REMEMBERED = 1_000
/** A worker keeps 1/16 of a caller's permits for its next requests, which saves round trips. Below a limit of 16 it keeps none. */
const KEPT_PART = 16
/** A worker keeps further permits until it has had no use for them for this time: the requests of a caller often follow each other. */
const LINGER_MS = 50
/**
 * Without an answer in this time, the worker counts on its own, because its supervisor has ended. In a cluster it refuses the
 * request: other servers go on counting, so its own count would not be the limit. The supervisor's own timeouts are shorter.
 */
const ENTER_MS = 5_000
/** In a cluster, kept permits are good for this time after an answer. A worker that is cut off loses them after more than 10 s. */
const KEPT_MS = 5_000

type SharedLimits = Pick<Peers, 'acquire' | 'release'>

/** Whether there was a permit; `unknown`: the cluster did not answer. */
type Taken = boolean | 'unknown'

interface WorkerSemaphoreOptions {
  /** The prefix of the permit names that workers share. */
  readonly prefix: string
  readonly limit: number
  /** Absent without a supervisor: the process counts on its own. */
  readonly peers: SharedLimits | undefined
  /** Several servers share the permits. Default: the workers of one. */
  readonly isCluster?: boolean
  readonly lasting: CallContext
}

/** The permits of one caller in this worker. The supervisor knows of `open - lone + kept`. */
interface Stock {
  open: number
  kept: number
  /** Of the kept permits, those without a use since the last look at them. */
  unused: number
  /** Open, but unknown to the supervisor because it did not answer. */
  lone: number
  /** Requested from the supervisor, without an answer yet. */
  requested: number
  /** When the last request began that has an answer: kept permits were counted then. */
  confirmedAt: number
}

/** A semaphore across all workers: each caller has `limit` permits. */
export class WorkerSemaphore {
  readonly #parts: WorkerSemaphoreOptions
  readonly #stocks = new Map<string, Stock>()
  /** Number of permits that this worker keeps for a caller after they become free. */
  readonly #part: number
  /** Callers for whom this worker keeps more permits until `LINGER_MS` is over. */
  readonly #lingering = new Set<string>()

  constructor(parts: WorkerSemaphoreOptions) {
    this.#parts = parts
    this.#part = Math.floor(parts.limit / KEPT_PART)
  }

  /** Takes a permit. Returns a promise, which never rejects, only if the supervisor or the cluster must be asked. */
  take(key: string): Taken | Promise<Taken> {
    const { peers, isCluster } = this.#parts
    const stock = this.#stockOf(key)
    if (!peers) return this.#takeAlone(stock)
    const isGood = stock.kept > 0 && !(isCluster && performance.now() - stock.confirmedAt > KEPT_MS)
    return isGood ? this.#takeKept(stock) : this.#ask(peers, key, stock)
  }

  #takeKept(stock: Stock): true {
    stock.kept--
    stock.open++
    stock.unused = Math.min(stock.unused, stock.kept)
    return true
  }

  /** Returns a permit. */
  give(key: string): void {
    const stock = this.#stockOf(key)
    stock.open--
    if (stock.lone > 0) stock.lone--
    else if (this.#part === 0) void this.#leave(key)
    else if (++stock.kept > this.#part) this.#linger(key, stock)
    this.#tidy(key, stock)
  }

  /** Releases the kept permits of this name, because another worker needs them. */
  async yield(name: string): Promise<void> {
    const { prefix } = this.#parts
    const key = name.startsWith(prefix) ? name.slice(prefix.length) : ''
    const stock = this.#stocks.get(key)
    if (stock) await this.#empty(key, stock)
  }

  #stockOf(key: string): Stock {
    const known = this.#stocks.get(key)
    if (known) return known
    const stock = { open: 0, kept: 0, unused: 0, lone: 0, requested: 0, confirmedAt: 0 }
    this.#stocks.set(key, stock)
    return stock
  }

  #takeAlone(stock: Stock): boolean {
    if (stock.open >= this.#parts.limit) return false
    stock.open++
    stock.lone++
    return true
  }

  async #ask(peers: SharedLimits, key: string, stock: Stock): Promise<Taken> {
    const began = performance.now()
    stock.requested++
    const got = await this.#enter(peers, key)
    stock.requested--
    if (got === undefined) return this.#unanswered(key, stock)
    stock.confirmedAt = began
    if (got) stock.open++
    // the answer has confirmed the kept permits, which are part of the limit
    else if (stock.kept > 0) return this.#takeKept(stock)
    else this.#tidy(key, stock)
    return got
  }

  #unanswered(key: string, stock: Stock): Taken {
    if (!this.#parts.isCluster) return this.#takeAlone(stock)
    this.#tidy(key, stock)
    return 'unknown'
  }

  /** Returns undefined if the supervisor does not answer in time; a permit that arrives later is released. */
  async #enter(peers: SharedLimits, key: string): Promise<boolean | undefined> {
    const { prefix, limit, lasting } = this.#parts
    const permit = (async () => peers.acquire(prefix + key, limit, lasting))()
    try {
      return await withTimeout(ENTER_MS, () => permit)
    } catch {
      permit.then(late => (late ? this.#leave(key) : undefined)).catch(() => {})
      return undefined
    }
  }

  #linger(key: string, stock: Stock): void {
    if (this.#lingering.has(key)) return
    if (this.#lingering.size === 0) setTimeout(() => this.#leaveUnused(), LINGER_MS).unref()
    this.#lingering.add(key)
    stock.unused = stock.kept
  }

  #leaveUnused(): void {
    const keys = [...this.#lingering]
    this.#lingering.clear()
    for (const key of keys) {
      const stock = this.#stocks.get(key)
      if (!stock) continue
      void this.#empty(key, stock, Math.max(this.#part, stock.kept - stock.unused))
      if (stock.kept > this.#part) this.#linger(key, stock)
    }
  }

  async #leave(key: string): Promise<void> {
    const { prefix, peers, lasting } = this.#parts
    // an unreachable supervisor has ended, and its counts with it
    await peers?.release(prefix + key, lasting).catch(() => {})
  }

  /** Releases the kept permits except for `remaining`. */
  #empty(key: string, stock: Stock, remaining = 0): Promise<unknown> {
    const left = Array.from({ length: Math.max(0, stock.kept - remaining) })
    stock.kept -= left.length
    return Promise.all(left.map(() => this.#leave(key)))
  }

  #tidy(key: string, stock: Stock): void {
    if (stock.open + stock.requested > 0 || this.#stocks.size <= REMEMBERED) return
    this.#stocks.delete(key)
    void this.#empty(key, stock)
  }
}

// --- the documented limits, and protection from floods ---

/** The documented limits, counted by the provider of `Limits`. */
interface AllowanceCheck {
  /** Asks once, before the server opens, whether limits are enabled. Returns the answer. */
  prepare(callContext: CallContext): Promise<boolean>
  /** Throws RATE_LIMITED, UNAVAILABLE. */
  readonly middleware: Middleware
}

export function createAllowance(limits: Limits | undefined): AllowanceCheck {
  let active: Limits | undefined
  return {
    async prepare(callContext) {
      active = (await limits?.isActive(callContext)) ? limits : undefined
      return active !== undefined
    },
    middleware(ctx, next) {
      if (!active || ctx.state.isOperator || ctx.state.route?.route.uncounted) return next()
      return take(active, ctx, next)
    },
  }
}

async function take(limits: Limits, ctx: Context, next: Next) {
  applyAllowance(ctx, await limits.take(ctx.state.callContext))
  return next()
}

function applyAllowance(ctx: Context, allowance: Allowance) {
  const { limit, remaining, reset } = allowance.shown ?? allowance
  ctx.set({ 'X-RateLimit-Limit': String(limit), 'X-RateLimit-Remaining': String(remaining), 'X-RateLimit-Reset': String(reset) })
  if (!allowance.allowed) throw tooMany(allowance.limit, allowance.window, allowance.retryAfter)
}

const ADDRESSES = 10_000
const SECOND = 1_000

/**
 * Cheap flood protection before authentication: koa-ratelimit counts requests per second and network, in this process only. The documented limits come after
 * authentication and are exact across workers. Loopback addresses are not limited, and `limit` 0 means no limit.
 */
export function createFlood(limit: number): Middleware {
  const isFree = limit === 0 ? () => true : isLoopback
  const options: ratelimit.MiddlewareOptions & { onLimited(): never } = {
    driver: 'memory',
    db: new BoundedMap(ADDRESSES),
    max: limit,
    duration: SECOND,
    disableHeader: true,
    id(ctx) {
      const { address } = ctx.state as RequestState
      return isFree(address) ? false : networkOf(address)
    },
    onLimited() {
      throw tooMany(limit, SECOND / 1_000, SECOND / 1_000) // the rest of a window of one second, rounded up
    },
  }
  return ratelimit(options) as Middleware
}

/** A Map that drops its oldest entry when full: koa-ratelimit never deletes an entry, and accepts only a Map, not an LRU cache. */
class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number

  constructor(most: number) {
    super()
    this.#most = most
  }

  override set(key: K, value: V): this {
    this.delete(key) // moves a restarted window to the end of the map
    if (this.size >= this.#most) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }
}
