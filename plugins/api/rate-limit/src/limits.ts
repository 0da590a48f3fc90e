import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { type CallContext, type Principal, svcError } from '@svc/core'
import type { Allowance, CountState, Counts, CountWindow, Limits, Route } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import { LRUCache } from 'lru-cache'
import type { RateLimitConfig } from './config.ts'

export interface LimitsOptions {
  readonly config: Readonly<RateLimitConfig>
  readonly counts: Counts
  /** Unix milliseconds. */
  readonly now?: () => number
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** Maximum refused clients in memory. The store refuses further clients. */
const REMEMBERED = 10_000

/** What a client has left in a window. */
interface LimitState {
  readonly name: 'requests_per_minute' | 'requests_per_day'
  readonly window: number
  readonly limit: number
  readonly used: number
  readonly remaining: number
  /** Unix seconds; null while no window runs. */
  readonly reset: number | null
}

/** Reads the limits of a client, without counting. */
function createLimitStates({ config, counts }: Pick<LimitsOptions, 'config' | 'counts'>) {
  const limits = [config.requests_per_minute, config.requests_per_day]
  const windows = [MINUTE_MS, DAY_MS].map(ms => ({ ms, limit: 0 }))
  return async (client: Principal, ctx: CallContext): Promise<readonly LimitState[]> => {
    const states = config.enabled ? (await counts.count(clientKey(client, config.by), windows, ctx)).windows : []
    return (['requests_per_minute', 'requests_per_day'] as const).map((name, at) => {
      const [limit, { count, endsAt } = { count: 0, endsAt: 0 }] = [limits[at]!, states[at]]
      const reset = count > 0 ? seconds(endsAt) : null
      return { name, window: windows[at]!.ms / 1000, limit, used: count, remaining: Math.max(0, limit - count), reset }
    })
  }
}

/** Counts each request. After the counts have refused a client, requests are refused from memory until the window ends. */
export function createLimits({ config, counts, now = Date.now }: LimitsOptions): Limits {
  const minute: CountWindow = { ms: MINUTE_MS, limit: config.requests_per_minute }
  const windows = [minute, { ms: DAY_MS, limit: config.requests_per_day }]
  const refusals = createRefusals(REMEMBERED)
  const count = (key: string, ctx: CallContext) =>
    counts.count(key, windows, ctx).catch((error: unknown) => {
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

/** Returns the values for the rate limit headers. A minute window that has ended counts as a new, unused window. */
const shownOf = ({ ms, limit }: CountWindow, { count, endsAt }: CountState, now: number) =>
  endsAt > now
    ? { limit, remaining: Math.max(0, limit - count), reset: seconds(endsAt) }
    : { limit, remaining: limit, reset: seconds(now + ms) }

const seconds = (ms: number) => Math.ceil(ms / 1000)

/** Returns the name of the counter in the store for a principal. */
export function clientKey({ id, address }: Principal, by: 'address' | 'principal'): string {
  return by === 'principal' && id !== ANONYMOUS
    ? `rate_limit/principal/${nameOf(id)}`
    : `rate_limit/address/${networkOf(address)}`
}

/** The id of callers without a credential. */
const ANONYMOUS = 'anonymous'
const LONGEST = 512

/** Returns an id in a form that is valid in a store key: unchanged, or as a digest after `~`. */
const nameOf = (id: string) => (isPlain(id) ? id : `~${digest(id)}`)
const isPlain = (id: string) =>
  id.length <= LONGEST && Buffer.byteLength(id) <= LONGEST && id.isWellFormed() && !id.includes('\0') && !id.startsWith('~')
// utf16le keeps ids different that are not well-formed strings
const digest = (id: string) => createHash('sha256').update(id, 'utf16le').digest('base64url')

/** A full window of a client. */
interface Refusal {
  readonly window: CountWindow
  readonly endsAt: number
  /** The state of the first window, which the headers show, at that time. */
  readonly first: CountState
}

/** Clients without remaining requests. They are not counted again before their window ends. */
interface Refusals {
  find(key: string, now: number): Refusal | undefined
  keep(key: string, refusal: Refusal): void
}

/** Remembers at most `most` clients. A dropped client only costs another store call, because the store has the counts. */
function createRefusals(most: number): Refusals {
  // `max` would allocate all entries at startup; `maxSize` grows with the content
  const known = new LRUCache<string, Refusal>({ maxSize: most, sizeCalculation: () => 1 })
  return {
    find(key, now) {
      const refusal = known.get(key)
      if (!refusal || isOpen(refusal, now)) return refusal
      known.delete(key)
      return undefined
    },
    keep: (key, refusal) => void known.set(key, refusal),
  }
}

/** Whether a window is still open. If it ends later than its length from now, the clock was set back, so it counts as ended. */
const isOpen = ({ window, endsAt }: Refusal, now: number) => now < endsAt && endsAt - now <= window.ms

/** Returns the full window that ends last, if a window is full. */
function refusalOf(windows: readonly CountWindow[], states: readonly CountState[]): Refusal | undefined {
  return windows
    .map((window, at) => ({ window, ...states[at]!, first: states[0]! }))
    .filter(({ window, count }) => count >= window.limit)
    .reduce<Refusal | undefined>((last, item) => (last && last.endsAt >= item.endsAt ? last : item), undefined)
}

/** The server refuses requests while it cannot count them. */
const cannotCount = (cause: unknown) =>
  svcError('UNAVAILABLE', 'the server cannot count requests at the moment', {
    cause,
    hint: 'Check the state of the store at /health, or set server.rate_limit.enabled to false',
  })

const text = (description: string, maxLength: number) => ({ type: 'string', minLength: 1, maxLength, description })
const STATE = {
  type: 'object',
  required: ['name', 'window', 'limit', 'used', 'remaining', 'reset'],
  properties: {
    name: { type: 'string', enum: ['requests_per_minute', 'requests_per_day'] },
    window: { type: 'integer', description: 'Seconds.' },
    limit: { type: 'integer' },
    used: { type: 'integer' },
    remaining: { type: 'integer' },
    reset: { type: ['integer', 'null'], description: 'Unix seconds at which the window ends; null if no window is open.' },
  },
}

/** The route that tells what is left, for the caller or for an administrator. */
export function createLimitsRoute(options: Pick<LimitsOptions, 'config' | 'counts'>): Route {
  const { enabled, by } = options.config
  const read = createLimitStates(options)
  return {
    method: 'GET',
    path: '/api/v1/limits',
    summary: 'Read the rate limits and the remaining requests',
    scope: 'read',
    untraced: true,
    query: {
      type: 'object',
      additionalProperties: false,
      properties: {
        principal: text(
          'Reads the limits of this principal, if svc counts requests by principal. Requires the scope admin.',
          512
        ),
        address: text('Reads the limits of this address, if svc counts requests by address. Requires the scope admin.', 64),
      },
    },
    responses: {
      '200': {
        description: 'The limits. While enabled is false, they do not apply.',
        schema: {
          type: 'object',
          required: ['enabled', 'by', 'client', 'limits'],
          properties: {
            enabled: { type: 'boolean' },
            by: { type: 'string', enum: ['address', 'principal'] },
            client: { type: 'string', description: 'The principal or network whose requests are counted.' },
            limits: { type: 'array', items: STATE },
          },
        },
      },
    },
    async handle({ query }, ctx) {
      const client = clientIn(query, by, ctx)
      const isPrincipal = clientKey(client, by).startsWith(OF_PRINCIPAL)
      const limits = await read(client, ctx)
      return { body: { enabled, by, client: isPrincipal ? client.id : networkOf(client.address), limits } }
    },
  }
}

const OF_PRINCIPAL = 'rate_limit/principal/'

/** The client that is asked about. Throws FORBIDDEN, INVALID_VALUE. */
function clientIn(query: Readonly<Record<string, string>>, by: RateLimitConfig['by'], { principal }: CallContext): Principal {
  const other = by === 'principal' ? 'address' : 'principal'
  const unused = query[other]
  if (unused !== undefined)
    throw svcError('INVALID_VALUE', `${other} cannot be used: svc counts requests by ${by}`, {
      details: { field: other, reason: `requests are counted by ${by}`, value: unused.slice(0, 100) },
      hint: `Use ${by}`,
    })
  const asked = query[by]
  if (asked === undefined) return principal
  const isAdmin = principal.scopes.includes('admin') || principal.scopes.includes('*')
  if (!isAdmin)
    throw svcError('FORBIDDEN', 'only callers with the scope admin see the limits of others', {
      details: { required_scope: 'admin' },
      hint: `Leave out ${by} to see your own`,
    })
  return by === 'principal' ? { id: asked, scopes: [] } : { id: ANONYMOUS, scopes: [], address: addressIn(asked) }
}

function addressIn(address: string): string {
  if (isIP(address) !== 0) return address
  throw svcError('INVALID_VALUE', 'address is not an IP address', {
    details: { field: 'address', reason: 'must be an IP address', value: address },
  })
}
