import type { Use } from '@svc/core'
import type { Allowance, Limits } from '@svc/core/contracts'
import { tooMany } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'

/** The documented limits, counted by whoever provides `Limits`. */
export interface AllowanceGate {
  /** Asks once, before the server opens, whether anything is limited. */
  prepare(use: Use): Promise<void>
  /** The gate. Throws RATE_LIMITED, UNAVAILABLE. */
  readonly gate: Gate
}

export function createAllowance(limits: Limits | undefined): AllowanceGate {
  let active: Limits | undefined
  return {
    async prepare(use) {
      active = (await limits?.isActive(use)) ? limits : undefined
    },
    gate(x) {
      if (!active || x.route?.route.uncounted) return
      return active.take(x.use).then(allowance => tell(x, allowance))
    },
  }
}

function tell({ headers }: Exchange, allowance: Allowance) {
  const { limit, remaining, reset } = allowance.shown ?? allowance
  headers.push('X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining), 'X-RateLimit-Reset', String(reset))
  if (!allowance.allowed) throw tooMany(allowance.limit, allowance.window, allowance.retryAfter)
}
