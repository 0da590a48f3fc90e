import type { PolicyConfig } from './settings.ts'

type WaitConfig = Pick<PolicyConfig, 'backoff_ms' | 'backoff_limit_ms' | 'wait_limit_ms'>

/**
 * Milliseconds to wait after try number `attempt`: exponential with full jitter, `random` from 0 to 1. Where the model says when to come again (`afterMs`) that is
 * added, so that those who were sent away together do not come back together; `undefined` where it is too long to wait.
 */
export function waitAfter(config: Readonly<WaitConfig>, attempt: number, afterMs: number, random: number): number | undefined {
  if (afterMs > config.wait_limit_ms) return undefined
  const most = Math.min(config.backoff_limit_ms, config.backoff_ms * 2 ** (attempt - 1))
  return Math.round(afterMs + most * random)
}
