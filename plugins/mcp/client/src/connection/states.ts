import type { McpState } from '@svc/core/contracts'

interface StateRow {
  /** The states that can follow. A state can always follow itself with other details. */
  readonly next: readonly McpState[]
  /** A connection is open. */
  readonly isConnected?: true
  /** Only `enable` ends this state: neither a call nor a retry connects. */
  readonly isOff?: true
  /** `/health` is degraded in this state. */
  readonly needsAttention?: true
}

const STOPPED = ['disconnected', 'disabled'] as const
const ATTEMPT_ENDS = ['connected', 'degraded', 'failed', 'quarantined', 'needs_auth', ...STOPPED] as const

/** All states of a connection: the states that can follow, and their meaning. */
export const STATES: Readonly<Record<McpState, StateRow>> = {
  disconnected: { next: ['connecting', 'disabled'] },
  connecting: { next: ['reconnecting', ...ATTEMPT_ENDS] },
  reconnecting: { next: ['connecting', ...ATTEMPT_ENDS] },
  connected: { next: ['degraded', 'reconnecting', 'quarantined', ...STOPPED], isConnected: true },
  degraded: { next: ['connected', 'reconnecting', 'quarantined', ...STOPPED], isConnected: true, needsAttention: true },
  failed: { next: ['connecting', ...STOPPED], needsAttention: true },
  needs_auth: { next: ['connecting', ...STOPPED], needsAttention: true },
  quarantined: { next: STOPPED, isOff: true, needsAttention: true },
  disabled: { next: ['disconnected'], isOff: true },
}

/** Whether `next` can follow `state`. */
export const mayFollow = (state: McpState, next: McpState): boolean => state === next || STATES[state].next.includes(next)
