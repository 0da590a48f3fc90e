import { createHash } from 'node:crypto'
import { type CallContext, type Principal, svcError } from '@svc/core'
import type { Allowance, CountState, CountWindow, Limits, Store } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import type { RateLimitConfig } from './config.ts'

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
  const count = (key: string, ctx: CallContext) =>
    store.count(key, windows, ctx).catch((error: unknown) => {
      ctx.signal.throwIfAborted()
      throw cannotCount(error)
    })
  return {
    isActive: async () => config.enabled,
    async take(ctx) {
      const key = clientKey(ctx.principal, config.by)
      const known = refusals.find(key, now())
      if (known) return refused(minute, known, now())
      const { counted, windows: states } = await count(key, ctx)
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

/** Whom a request is counted for: the name of its count in the store. */
export function clientKey({ id, address }: Principal, by: 'address' | 'principal'): string {
  return by === 'principal' && id !== ANONYMOUS
    ? `rate_limit/principal/${nameOf(id)}`
    : `rate_limit/address/${networkOf(address)}`
}

/** The id of callers without a credential. */
const ANONYMOUS = 'anonymous'
const LONGEST = 512

/** An id as a key of the store can hold it: as it is, or as a digest after a mark that no other has. */
const nameOf = (id: string) => (isPlain(id) ? id : `~${digest(id)}`)
const isPlain = (id: string) => id.length <= LONGEST && id.isWellFormed() && !id.includes('\0') && !id.startsWith('~')
// utf16le keeps apart what is no well-formed text
const digest = (id: string) => createHash('sha256').update(id, 'utf16le').digest('base64url')

/** A window of a client that is full, and until when. */
interface Refusal {
  readonly window: CountWindow
  readonly endsAt: number
  /** How the first window, the one that is shown, stood then. */
  readonly first: CountState
}

/** The clients known to have nothing left: they need not be counted again before their window ends. */
interface Refusals {
  find(key: string, now: number): Refusal | undefined
  keep(key: string, refusal: Refusal): void
}

/** Remembers at most so many; who was refused first is forgotten first, which costs no more than asking the store again. */
function createRefusals(most: number): Refusals {
  const known = new Map<string, Refusal>()
  return {
    find(key, now) {
      const refusal = known.get(key)
      if (!refusal || isOpen(refusal, now)) return refusal
      known.delete(key)
      return undefined
    },
    keep(key, refusal) {
      known.delete(key)
      if (known.size >= most) known.delete(known.keys().next().value!)
      known.set(key, refusal)
    },
  }
}

/** A window further off than its own length is one whose clock was set back since. */
const isOpen = ({ window, endsAt }: Refusal, now: number) => now < endsAt && endsAt - now <= window.ms

/** The full window of several, if there is one: of two, that which ends last, for until then nothing is left. */
function refusalOf(windows: readonly CountWindow[], states: readonly CountState[]): Refusal | undefined {
  return windows
    .map((window, at) => ({ window, ...states[at]!, first: states[0]! }))
    .filter(({ window, count }) => count >= window.limit)
    .reduce<Refusal | undefined>((last, one) => (last && last.endsAt >= one.endsAt ? last : one), undefined)
}

/** A limit that cannot be counted is not waived: the request is refused until it can be. */
const cannotCount = (cause: unknown) =>
  svcError('UNAVAILABLE', 'requests cannot be counted just now', {
    cause,
    hint: 'see /health for the state of the store; without limits (server.rate_limit.enabled: false) nothing is counted',
  })
