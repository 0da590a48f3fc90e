import type { SvcError } from '@svc/core'
import type { McpFailure, McpState } from '@svc/core/contracts'
import { callFailed, failureOf } from '@svc/mcp'
import { stripResult } from '@svc/tool-parts'
import type { McpChange, McpStatus } from './client-types.ts'
import { type Connection, openConnection } from './connection.ts'
import { needsAuth, notConnected } from './failures.ts'
import type { KnownEra, ReconnectPolicy, Settled } from './options.ts'
import { backoffMs, raced } from './timing.ts'

/** Keeps one connection to a server: one attempt at a time, again after a loss, given up where it makes no sense. */
export interface Supervisor {
  status(): McpStatus
  /** The connection, where there is one. */
  readonly live: Connection | undefined
  /** The connection, made where there is none. Waits for attempts that are under way. Throws MCP_CALL_FAILED, and what the signal aborted with. */
  ready(signal: AbortSignal): Promise<Connection>
  /** The same for somebody in a hurry: once a second attempt in a row has failed it throws why, and the attempts go on without it. */
  soon(signal: AbortSignal): Promise<Connection>
  /** The same, but tries at once what has failed. */
  connect(signal: AbortSignal): Promise<Connection>
  /** This connection is of no use any more. */
  lost(connection: Connection, reason: string): void
  /** It has answered a call: what failed before is forgotten. */
  kept(): void
  setPolicy(policy: ReconnectPolicy): void
  setEnabled(enabled: boolean): Promise<void>
  setDegraded(reason: McpFailure | undefined): void
  disconnect(reason: string): Promise<void>
  close(): Promise<void>
}

/** A server that has failed is left alone for so long, unless somebody asks for it by hand. */
const FAILED_MS = 30_000

export function createSupervisor(settled: Settled, emit: (change: McpChange) => void): Supervisor {
  const keep: Keep = {
    settled,
    emit,
    status: { state: 'disconnected', since: settled.clock.now(), attempts: 0 },
    known: settled.options.known,
    live: undefined,
    liveSince: 0,
    degraded: undefined,
    generation: 0,
    failures: 0,
    closed: false,
    leaving: new Set(),
    policy: settled.reconnect,
    cycle: undefined,
    again: ms => void begin(keep, ms),
  }
  return {
    status: () => shown(keep),
    get live() {
      return keep.live
    },
    ready: signal => waitFor(keep, signal, ({ done }) => done),
    soon: signal => waitFor(keep, signal, ({ done, doubt }) => Promise.race([done, doubt.promise])),
    connect(signal) {
      if (keep.status.state === 'failed' || keep.status.state === 'needs_auth') keep.status = { ...keep.status, nextRetryAt: 0 }
      return waitFor(keep, signal, ({ done }) => done)
    },
    lost: (connection, reason) => lost(keep, connection, reason),
    kept() {
      keep.failures = 0
    },
    setPolicy(policy) {
      keep.policy = policy
    },
    setEnabled: enabled => setEnabled(keep, enabled),
    setDegraded(reason) {
      keep.degraded = reason
      if (keep.live !== undefined) set(keep, reason === undefined ? 'connected' : 'degraded', { lastError: reason })
    },
    disconnect: reason => stop(keep, isOff(keep.status.state) ? keep.status.state : 'disconnected', reason),
    async close() {
      keep.closed = true
      await stop(keep, 'disconnected', 'it was closed')
    },
  }
}

const isOff = (state: McpState) => state === 'disabled' || state === 'quarantined'

async function waitFor(keep: Keep, signal: AbortSignal, what: (cycle: Cycle) => Promise<Connection>): Promise<Connection> {
  if (keep.live !== undefined) return keep.live
  signal.throwIfAborted()
  const no = refusal(keep)
  if (no !== undefined) throw no
  return raced(what(begin(keep)), signal)
}

/** Why nobody gets a connection, where that is so. */
function refusal({ settled: { name, clock }, status, closed, cycle }: Keep): SvcError | undefined {
  const { state, lastError, nextRetryAt = 0 } = status
  if (closed) return notConnected(name, 'the client is closed')
  if (state === 'disabled') return notConnected(name, 'it is switched off')
  if (state === 'quarantined') return notConnected(name, `it is in quarantine (${lastError?.message ?? 'it failed too often'})`)
  if (cycle !== undefined || clock.now() >= nextRetryAt) return undefined
  if (state === 'needs_auth') return needsAuth(name)
  return state === 'failed' ? callFailed(name, lastError!.class, lastError!.message, { delivered: 'no' }) : undefined
}

/** Attempts until one is good, or there is no point in another; one such cycle at a time. */
function begin(keep: Keep, pauseMs = 0): Cycle {
  if (keep.cycle !== undefined) return keep.cycle
  const abort = new AbortController()
  const doubt = Promise.withResolvers<never>()
  const done = tryUntil(keep, abort.signal, pauseMs, doubt.reject).finally(() => {
    if (keep.cycle?.abort === abort) keep.cycle = undefined
  })
  keep.cycle = { done, abort, doubt }
  // who waits for it hears of it; the state tells everybody else
  done.catch(() => {})
  doubt.promise.catch(() => {})
  return keep.cycle
}

async function tryUntil(keep: Keep, signal: AbortSignal, pauseMs: number, doubted: (why: unknown) => void): Promise<Connection> {
  for (let [tries, ms] = [0, pauseMs]; ; tries++) {
    if (ms > 0) await pause(keep, ms, signal)
    set(keep, tries === 0 && pauseMs === 0 ? 'connecting' : 'reconnecting', { attempts: keep.status.attempts + 1 })
    try {
      return await attempt(keep, signal)
    } catch (error) {
      signal.throwIfAborted()
      const next = afterFailure(keep, error as SvcError, tries)
      if (next === undefined) throw error
      if (tries > 0) doubted(error)
      ms = Math.max(1, next)
    }
  }
}

const pause = ({ settled }: Keep, ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const onAbort = () => {
      stopIt()
      reject(signal.reason as Error)
    }
    const stopIt = settled.clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
    signal.addEventListener('abort', onAbort, { once: true })
  })

/** Milliseconds until the next attempt; `undefined` where there is none. */
function afterFailure(keep: Keep, error: SvcError, tries: number): number | undefined {
  const { settled, policy } = keep
  const { clock, quarantineAfter } = settled
  const lastError = failureOf(error)
  keep.failures++
  const end = endState(keep, lastError, tries)
  if (end === undefined) {
    const ms = backoffMs(policy.backoff, tries, clock.random())
    set(keep, 'reconnecting', { lastError, nextRetryAt: clock.now() + ms })
    return ms
  }
  set(keep, keep.failures >= quarantineAfter ? 'quarantined' : end, { lastError, nextRetryAt: clock.now() + FAILED_MS })
  return undefined
}

function endState({ settled, policy, failures }: Keep, error: McpFailure, tries: number): McpState | undefined {
  if (error.class === 'authentication_failed') return canLogIn(settled) ? 'needs_auth' : 'failed'
  return tries >= policy.maxAttempts || failures >= settled.quarantineAfter ? 'failed' : undefined
}

/** Whether a person could help who logs in. */
const canLogIn = ({ options }: Settled) =>
  options.url !== undefined && options.oauth !== undefined && options.oauth.tokenUrl === undefined

async function setEnabled(keep: Keep, enabled: boolean): Promise<void> {
  if (!enabled) return stop(keep, 'disabled', 'it was switched off')
  keep.failures = 0
  if (isOff(keep.status.state) || keep.status.state === 'needs_auth') set(keep, 'disconnected')
}

async function stop(keep: Keep, state: McpState, reason: string): Promise<void> {
  const { live, cycle, leaving, settled } = keep
  cycle?.abort.abort(notConnected(settled.name, reason))
  if (live !== undefined) lost(keep, live, reason, state)
  else set(keep, state)
  await cycle?.done.catch(() => {})
  await Promise.all(leaving)
}

/** Attempts to connect, one after the other. */
interface Cycle {
  readonly done: Promise<Connection>
  readonly abort: AbortController
  /** Rejects with the reason once a second attempt in a row has failed. */
  readonly doubt: PromiseWithResolvers<never>
}

/** What is known of one server, and changes. */
interface Keep {
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

function set(keep: Keep, state: McpState, more: Partial<McpStatus> = {}): void {
  const { nextRetryAt: _, ...rest } = keep.status
  const since = state === keep.status.state ? keep.status.since : keep.settled.clock.now()
  keep.status = { ...rest, ...more, state, since }
  keep.emit({ type: 'state', status: shown(keep) })
}

function shown({ status, live, known }: Keep): McpStatus {
  return { ...status, ...(known !== undefined && { known }), ...stderrOf(live) }
}

const stderrOf = (connection: Connection | undefined) => {
  const stderr = stripResult(connection?.stderr() ?? '').text
  return stderr === '' ? {} : { stderr }
}

const isLegacy = ({ known, settled }: Keep) => known?.era === 'legacy' && settled.clock.now() - known.since < DAY_MS

/** Connects once. Throws MCP_CALL_FAILED. */
async function attempt(keep: Keep, signal: AbortSignal): Promise<Connection> {
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
function lost(keep: Keep, connection: Connection, reason: string, end?: McpState): void {
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
