import { defineService, type CallContext } from '@svc/core'

/** How a counted request stands. */
export interface Allowance {
  /** False: it is one too many, and has not been counted. */
  readonly allowed: boolean
  /** The window that is counted down; of a refused request the one that refused it. Seconds. */
  readonly limit: number
  readonly window: number
  readonly remaining: number
  /** Unix seconds at which the window ends. */
  readonly reset: number
  /** Whole seconds until it may be tried again; 0 where allowed. */
  readonly retryAfter: number
  /** How the shortest window stands: that is what headers show. Absent: it is the one above. */
  readonly shown?: Pick<Allowance, 'limit' | 'remaining' | 'reset'>
}

/** Counts requests by `ctx.principal` (its address or its id, as configured), exactly, for all workers. Without a provider nothing is limited. */
export interface Limits {
  /** Counts one request, unless it is too many. Throws UNAVAILABLE when it cannot count. */
  take(ctx: CallContext): Promise<Allowance>
  /** Whether anything is limited at all; fixed once the host is ready. False: `take` need not be asked, and no header tells of limits. */
  isActive(ctx: CallContext): Promise<boolean>
}
export const Limits = defineService<Limits>('limits', { api: 1, methods: { take: 'call', isActive: 'call' } })
