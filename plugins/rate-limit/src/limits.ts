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
      if (known) return refused(known, now())
      const { counted, windows: states } = await count(key, use)
      const full = refusalOf(windows, states)
      if (full) refusals.keep(key, full)
      return counted ? passed(minute, states[0]!) : refused(full ?? { window: minute, ...states[0]! }, now())
    },
  }
}

const passed = ({ ms, limit }: CountWindow, { count, endsAt }: CountState): Allowance => ({
  allowed: true,
  limit,
  window: ms / 1000,
  remaining: limit - count,
  reset: Math.ceil(endsAt / 1000),
  retryAfter: 0,
})

const refused = ({ window: { ms, limit }, endsAt }: Refusal, now: number): Allowance => ({
  allowed: false,
  limit,
  window: ms / 1000,
  remaining: 0,
  reset: Math.ceil(endsAt / 1000),
  retryAfter: Math.max(1, Math.ceil((endsAt - now) / 1000)),
})
