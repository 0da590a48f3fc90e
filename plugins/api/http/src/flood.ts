import { networkOf } from '@svc/plugin-kit'
import ratelimit from 'koa-ratelimit'
import { isLoopback } from './address.ts'
import type { Middleware, RequestState } from './context.ts'
import { tooMany } from './errors.ts'

const ADDRESSES = 10_000
const SECOND = 1_000

/**
 * The cheap gate before authentication: koa-ratelimit counts requests a second and network, in this process alone. It stops a flood before the flood costs
 * anything; the documented limits are counted behind authentication, exactly and for all workers. This machine's own addresses pass, and `limit` 0 means no limit.
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

/** koa-ratelimit never deletes an entry: where room is short, the oldest window gives way. */
class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number

  constructor(most: number) {
    super()
    this.#most = most
  }

  override set(key: K, value: V): this {
    this.delete(key) // a window that begins anew is the youngest
    if (this.size >= this.#most) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }
}
