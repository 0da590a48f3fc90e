import type { Use } from '@svc/core'
import type { Allowance, CountState, CountWindow, Limits, Store } from '@svc/core/contracts'
import { clientKey } from './client-key.ts'
import type { RateLimitConfig } from './config.ts'
import { cannotCount } from './errors.ts'
import { createRefusals, type Refusal, refusalOf } from './refusals.ts'

export interface LimitsOptions {
  readonly config: Readonly<RateLimitConfig>
  readonly store: Pick<Store, 'count'>
  /** Unix milliseconds. */
  readonly now?: () => number
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** Clients refused from memory; those beyond are refused by the store. */
const REMEMBERED = 10_000

/** Counts in the store, once a request; what the store has refused is refused from memory until its window ends. */
export function createLimits({ config, store, now = Date.now }: LimitsOptions): Limits {
  const minute: CountWindow = { ms: MINUTE_MS, limit: config.requests_per_minute }
  const windows = [minute, { ms: DAY_MS, limit: config.requests_per_day }]
  const refusals = createRefusals(REMEMBERED)
  const count = (key: string, use: Use) =>
    store.count(key, windows, use).catch((error: unknown) => {
      use.signal.throwIfAborted()
      throw cannotCount(error)
    })
  return {
    isActive: async () => config.enabled,
    async take(use) {
      const key = clientKey(use.principal, config.by)
      const known = refusals.find(key, now())
      if (known) return refused(minute, known, now())
      const { counted, windows: states } = await count(key, use)
      const full = refusalOf(windows, states)
      if (full) refusals.keep(key, full)
      const first = states[0]!
      return counted ? passed(minute, first) : refused(minute, full ?? { window: minute, ...first, first }, now())
    },
  }
}

const passed = ({ ms, limit }: CountWindow, { count, endsAt }: CountState): Allowance => ({
  allowed: true,
  limit,
  window: ms / 1000,
  remaining: limit - count,
  reset: seconds(endsAt),
  retryAfter: 0,
})

const refused = (minute: CountWindow, { window: { ms, limit }, endsAt, first }: Refusal, now: number): Allowance => ({
  allowed: false,
  limit,
  window: ms / 1000,
  remaining: 0,
  reset: seconds(endsAt),
  retryAfter: Math.max(1, Math.ceil((endsAt - now) / 1000)),
  shown: shownOf(minute, first, now),
})

/** A minute that has passed since has all of its requests, and would begin now. */
const shownOf = ({ ms, limit }: CountWindow, { count, endsAt }: CountState, now: number) =>
  endsAt > now
    ? { limit, remaining: Math.max(0, limit - count), reset: seconds(endsAt) }
    : { limit, remaining: limit, reset: seconds(now + ms) }

const seconds = (ms: number) => Math.ceil(ms / 1000)
