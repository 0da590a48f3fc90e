import type { Use } from '@svc/core'
import type { Allowance, Limits } from '@svc/core/contracts'
import type { Next } from 'koa'
import type { Context, Middleware } from './context.ts'
import { tooMany } from './errors.ts'

/** The documented limits, counted by whoever provides `Limits`. */
export interface AllowanceCheck {
  /** Asks once, before the server opens, whether anything is limited. */
  prepare(use: Use): Promise<void>
  /** Throws RATE_LIMITED, UNAVAILABLE. */
  readonly middleware: Middleware
}

export function createAllowance(limits: Limits | undefined): AllowanceCheck {
  let active: Limits | undefined
  return {
    async prepare(use) {
      active = (await limits?.isActive(use)) ? limits : undefined
    },
    middleware(ctx, next) {
      if (!active || ctx.state.route?.route.uncounted) return next()
      return take(active, ctx, next)
    },
  }
}

async function take(limits: Limits, ctx: Context, next: Next) {
  show(ctx, await limits.take(ctx.state.use))
  return next()
}

function show(ctx: Context, allowance: Allowance) {
  const { limit, remaining, reset } = allowance.shown ?? allowance
  ctx.set({ 'X-RateLimit-Limit': String(limit), 'X-RateLimit-Remaining': String(remaining), 'X-RateLimit-Reset': String(reset) })
  if (!allowance.allowed) throw tooMany(allowance.limit, allowance.window, allowance.retryAfter)
}
