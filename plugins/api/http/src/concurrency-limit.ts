import { networkOf } from '@svc/plugin-kit'
import type { CallContext } from '@svc/core'
import type { Peers } from '@svc/core/contracts'
import type { ServerConfig } from './config.ts'
import type { Context, Middleware, RequestState } from './context.ts'
import { crowded } from './errors.ts'
import { WorkerSemaphore } from './worker-semaphore.ts'

/** What one principal may have open at a time, in all workers: requests, and streams among them. Without a name it is the address that counts. */
export interface ConcurrencyLimit {
  /** Throws RATE_LIMITED. */
  readonly middleware: Middleware
  /** For a tap of `Peers.hooks.reclaim`. */
  readonly wanted: (place: { readonly name: string }) => Promise<void>
}

type ConcurrencyConfig = Pick<ServerConfig, 'max_requests_per_principal' | 'max_streams_per_principal'>
type Shared = Pick<Peers, 'acquire' | 'release'> | undefined

/** One kind of places, and how it is told that all are taken. */
interface Kind {
  readonly places: WorkerSemaphore
  full(): Error
}

export function createConcurrencyLimit(config: ConcurrencyConfig, peers: Shared, lasting: CallContext): ConcurrencyLimit {
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
