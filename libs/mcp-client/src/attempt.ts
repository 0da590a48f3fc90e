import type { McpFailure, McpState } from '@svc/core/contracts'
import { failureOf } from '@svc/mcp-protocol'
import { stripResult } from '@svc/plugin-kit'
import { backoffMs } from './backoff.ts'
import type { McpChange, McpStatus } from './client-types.ts'
import { type Connection, openConnection } from './connection.ts'
import { notConnected } from './failures.ts'
import type { KnownEra, ReconnectPolicy } from './options.ts'
import type { Settled } from './settled.ts'

/** Attempts to connect, one after the other. */
export interface Cycle {
  readonly done: Promise<Connection>
  readonly abort: AbortController
  /** Rejects with the reason once a second attempt in a row has failed. */
  readonly doubt: PromiseWithResolvers<never>
}

/** What is known of one server, and changes. */
export interface Keep {
  readonly settled: Settled
  readonly emit: (change: McpChange) => void
  status: McpStatus
  known: KnownEra | undefined
  live: Connection | undefined
  /** Since when it is there. */
  liveSince: number
  degraded: McpFailure | undefined
  /** Counts connections: what belongs to an older one touches nothing. */
  generation: number
  /** Failures since it last answered a call, or was there for long. */
  failures: number
  closed: boolean
  /** Connections that are ending: what they started must be gone when all ends. */
  readonly leaving: Set<Promise<void>>
  policy: ReconnectPolicy
  cycle: Cycle | undefined
  /** Connects again after so many milliseconds. */
  again(ms: number): void
}

/** What is known of a server's era is asked anew after a day: it may have learned the newer one. */
const DAY_MS = 86_400_000

export function set(keep: Keep, state: McpState, more: Partial<McpStatus> = {}): void {
  const { nextRetryAt: _, ...rest } = keep.status
  const since = state === keep.status.state ? keep.status.since : keep.settled.clock.now()
  keep.status = { ...rest, ...more, state, since }
  keep.emit({ type: 'state', status: shown(keep) })
}

export function shown({ status, live, known }: Keep): McpStatus {
  return { ...status, ...(known !== undefined && { known }), ...stderrOf(live) }
}

const stderrOf = (connection: Connection | undefined) => {
  const stderr = stripResult(connection?.stderr() ?? '').text
  return stderr === '' ? {} : { stderr }
}

const isLegacy = ({ known, settled }: Keep) => known?.era === 'legacy' && settled.clock.now() - known.since < DAY_MS

/** Connects once. Throws MCP_CALL_FAILED. */
export async function attempt(keep: Keep, signal: AbortSignal): Promise<Connection> {
  const { settled, emit } = keep
  const legacy = isLegacy(keep)
  const events = { toolsChanged: () => emit({ type: 'tools' }) }
  const connection = await openConnection(settled, ++keep.generation, legacy, events, signal)
  const { stateless, protocolVersion, server, instructions } = connection
  if (!legacy) keep.known = { era: stateless ? 'modern' : 'legacy', since: settled.clock.now() }
  keep.live = connection
  keep.liveSince = settled.clock.now()
  const { state, since } = keep.status
  keep.status = {
    state,
    since,
    attempts: 0,
    protocolVersion,
    ...(server && { server }),
    ...(instructions !== undefined && { instructions }),
  }
  if (keep.degraded === undefined) set(keep, 'connected')
  else set(keep, 'degraded', { lastError: keep.degraded })
  emit({ type: 'connected', protocolVersion })
  void connection.ended.then(reason => lost(keep, connection, reason))
  return connection
}

/** A connection that was there for so long was a good one, though nobody called. */
const STEADY_MS = 60_000

/** A connection is of no use any more; `end` is the state where no other is to be made. */
export function lost(keep: Keep, connection: Connection, reason: string, end?: McpState): void {
  if (keep.live !== connection) return
  const { settled, policy, emit } = keep
  const { name, clock, quarantineAfter } = settled
  const stderr = stderrOf(connection)
  keep.live = undefined
  connection.exchange.end(notConnected(name, `the connection was lost: ${reason}`, 'maybe'))
  leave(keep, connection)
  emit({ type: 'disconnected', reason })
  if (end !== undefined) return set(keep, end, stderr)
  const more = { lastError: failureOf(notConnected(name, reason)), ...stderr }
  if (clock.now() - keep.liveSince >= STEADY_MS) keep.failures = 0
  const ms = Math.max(1, backoffMs(policy.backoff, keep.failures, clock.random()))
  if (++keep.failures >= quarantineAfter) return set(keep, 'quarantined', more)
  set(keep, 'reconnecting', { ...more, nextRetryAt: clock.now() + ms })
  keep.again(ms)
}

function leave(keep: Keep, connection: Connection): void {
  const left = connection.close().catch((error: unknown) => set(keep, keep.status.state, { lastError: failureOf(error) }))
  keep.leaving.add(left)
  void left.finally(() => keep.leaving.delete(left))
}
