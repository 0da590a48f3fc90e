import type { Client } from '@modelcontextprotocol/client'
import { abortable, codeOf, pause, type SvcError, withTimeout } from '@svc/core'
import type { McpFailure, McpState } from '@svc/core/contracts'
import { callFailed, capabilitiesOf, failureOf, needsAuth, tooSlow, undelivered } from '@svc/mcp-protocol'
import { stripResult } from '@svc/plugin-kit'
import { notConnected } from '../errors.ts'
import type { KnownEra, McpChange, McpStatus } from './client-types.ts'
import { CLIENT, McpConnection, type ServerTransport } from './connection.ts'
import type { ReconnectPolicy, ResolvedOptions } from './resolved-options.ts'
import { mayFollow, STATES } from './states.ts'
import { openStdio } from './transport/stdio.ts'

/** Attempts to connect, one after the other; at most one such cycle runs. */
interface ConnectCycle {
  readonly done: Promise<McpConnection>
  readonly abort: AbortController
  /** Rejects when a second attempt in a row has failed. */
  readonly secondFailure: PromiseWithResolvers<never>
}

/** Pause before the next attempt after a failure. A user can connect earlier. */
const FAILED_MS = 30_000
/** A connection that lasted this long resets the count of failures, even without a call. */
const STEADY_MS = 60_000
/** The known era of a server expires after a day, because the server can be upgraded. */
const DAY_MS = 86_400_000

/** Keeps one connection to a server: connects on demand, reconnects after a loss, stops if another attempt makes no sense. */
export class ConnectionManager {
  readonly #options: ResolvedOptions
  readonly #emit: (change: McpChange) => void
  #status: McpStatus
  #known: KnownEra | undefined
  #live: McpConnection | undefined
  #liveSince = 0
  #degraded: McpFailure | undefined
  /** Counts connections: an event of an older one is ignored. */
  #generation = 0
  /** Failures since the last answered call, or since a connection lasted. */
  #failures = 0
  #isClosed = false
  /** The end of earlier connections: `close` waits for it. */
  #ending: Promise<unknown> = Promise.resolve()
  #policy: ReconnectPolicy
  #cycle: ConnectCycle | undefined

  constructor(options: ResolvedOptions, emit: (change: McpChange) => void) {
    this.#options = options
    this.#emit = emit
    this.#status = { state: 'disconnected', since: Date.now(), attempts: 0 }
    this.#known = options.input.known
    this.#policy = options.reconnect
  }

  get status(): McpStatus {
    return { ...this.#status, ...(this.#known !== undefined && { known: this.#known }), ...stderrOf(this.#live) }
  }
  get live(): McpConnection | undefined {
    return this.#live
  }

  /** Returns the connection, and opens it if there is none. Waits for attempts that run. Throws MCP_CALL_FAILED, and the reason of an abort. */
  ready(signal: AbortSignal): Promise<McpConnection> {
    return this.#waitFor(signal, ({ done }) => done)
  }

  /** As `ready`, but throws once a second attempt in a row has failed; further attempts go on in the background. */
  soon(signal: AbortSignal): Promise<McpConnection> {
    return this.#waitFor(signal, ({ done, secondFailure }) => Promise.race([done, secondFailure.promise]))
  }

  /** As `ready`, but does not wait for the next retry of a failed server. */
  connect(signal: AbortSignal): Promise<McpConnection> {
    const { state } = this.#status
    if (state === 'failed' || state === 'needs_auth') this.#status = { ...this.#status, nextRetryAt: 0 }
    return this.ready(signal)
  }

  /** Ends a connection that is lost. With `end`, the manager enters that state and does not reconnect. */
  lost(connection: McpConnection, reason: string, end?: McpState): void {
    if (this.#live !== connection) return
    const { name, quarantineAfter } = this.#options
    const stderr = stderrOf(connection)
    const durationMs = performance.now() - this.#liveSince
    this.#live = undefined
    connection.end(reason)
    const ending = connection.transport.end().catch((error: unknown) => {
      this.#setState(this.#status.state, { lastError: failureOf(error) })
    })
    this.#ending = Promise.all([this.#ending, ending])
    this.#emit({ type: 'disconnected', reason, durationMs })
    if (end !== undefined) return this.#setState(end, stderr)
    // a listener can have stopped the client
    if (!STATES[this.#status.state].isConnected) return
    const details = { lastError: failureOf(notConnected(name, reason)), ...stderr }
    if (durationMs >= STEADY_MS) this.#failures = 0
    const ms = Math.max(1, this.#policy.backoff(this.#failures))
    if (++this.#failures >= quarantineAfter) return this.#setState('quarantined', details)
    this.#setState('reconnecting', { ...details, nextRetryAt: Date.now() + ms })
    if (this.#status.state === 'reconnecting') this.#begin(ms)
  }

  /** The server has answered a call: earlier failures no longer count. */
  succeeded(): void {
    this.#failures = 0
  }

  setPolicy(policy: ReconnectPolicy): void {
    this.#policy = policy
  }

  async setEnabled(enabled: boolean): Promise<void> {
    if (!enabled) return this.#stop('disabled', 'it was disabled')
    this.#failures = 0
    if (STATES[this.#status.state].isOff || this.#status.state === 'needs_auth') this.#setState('disconnected')
  }

  setDegraded(reason: McpFailure | undefined): void {
    this.#degraded = reason
    if (this.#live !== undefined) this.#setLive()
  }

  disconnect(reason: string): Promise<void> {
    const { state } = this.#status
    return this.#stop(STATES[state].isOff ? state : 'disconnected', reason)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#stop('disconnected', 'it was closed')
  }

  async #waitFor(signal: AbortSignal, result: (cycle: ConnectCycle) => Promise<McpConnection>): Promise<McpConnection> {
    if (this.#live !== undefined) return this.#live
    signal.throwIfAborted()
    const refusal = this.#refusal()
    if (refusal !== undefined) throw refusal
    return abortable(result(this.#begin()), signal)
  }

  /** The error for a caller if no attempt is due. */
  #refusal(): SvcError | undefined {
    const { name } = this.#options
    const { state, lastError, nextRetryAt = 0 } = this.#status
    if (this.#isClosed) return notConnected(name, 'the client is closed')
    if (state === 'disabled') return notConnected(name, 'it is disabled')
    if (state === 'quarantined') return notConnected(name, `it is quarantined (${lastError?.message ?? 'it failed too often'})`)
    if (this.#cycle !== undefined || Date.now() >= nextRetryAt) return undefined
    if (state === 'needs_auth') return needsAuth(name)
    return state === 'failed' ? callFailed(name, lastError!.class, lastError!.message, { delivered: 'no' }) : undefined
  }

  #begin(pauseMs = 0): ConnectCycle {
    if (this.#cycle !== undefined) return this.#cycle
    const abort = new AbortController()
    const secondFailure = Promise.withResolvers<never>()
    const done = Promise.withResolvers<McpConnection>()
    const cycle = { done: done.promise, abort, secondFailure }
    // first: a listener of the first state can stop the cycle
    this.#cycle = cycle
    this.#tryUntilConnected(abort.signal, pauseMs, secondFailure.reject)
      .finally(() => {
        if (this.#cycle === cycle) this.#cycle = undefined
      })
      .then(done.resolve, done.reject)
    // callers that wait get the error; all others read it in the state
    done.promise.catch(() => {})
    secondFailure.promise.catch(() => {})
    return cycle
  }

  async #tryUntilConnected(signal: AbortSignal, pauseMs: number, failedTwice: (why: unknown) => void): Promise<McpConnection> {
    for (let [tries, ms] = [0, pauseMs]; ; tries++) {
      if (ms > 0) await pause(ms, signal)
      signal.throwIfAborted()
      this.#setState(tries === 0 && pauseMs === 0 ? 'connecting' : 'reconnecting', { attempts: this.#status.attempts + 1 })
      try {
        return await this.#attempt(signal)
      } catch (error) {
        signal.throwIfAborted()
        const next = this.#afterFailure(failureOf(error), tries)
        if (next === undefined) throw error
        if (tries > 0) failedTwice(error)
        ms = next
      }
    }
  }

  async #attempt(signal: AbortSignal): Promise<McpConnection> {
    const begun = performance.now()
    const isLegacy = this.#known?.era === 'legacy' && Date.now() - this.#known.since < DAY_MS
    const request = { generation: ++this.#generation, isLegacy, toolsChanged: () => this.#emit({ type: 'tools' }) }
    const connection = await openConnection(this.#options, request, signal)
    const { protocolVersion, server, instructions, timings, transport } = connection
    if (signal.aborted) await transport.end()
    signal.throwIfAborted()
    if (!isLegacy) this.#known = { era: connection.isStateless ? 'modern' : 'legacy', since: Date.now() }
    this.#live = connection
    this.#liveSince = performance.now()
    const { state, since } = this.#status
    const known = { protocolVersion, timings, ...(server && { server }), ...(instructions !== undefined && { instructions }) }
    this.#status = { state, since, attempts: 0, ...known }
    this.#setLive()
    if (this.#live === connection) this.#emit({ type: 'connected', protocolVersion, durationMs: this.#liveSince - begun })
    void transport.ended.then(reason => this.lost(connection, reason))
    return connection
  }

  #setLive(): void {
    this.#setState(this.#degraded === undefined ? 'connected' : 'degraded', { lastError: this.#degraded })
  }

  /** Milliseconds until the next attempt, `undefined` if there is none. */
  #afterFailure(lastError: McpFailure, tries: number): number | undefined {
    const { input, quarantineAfter } = this.#options
    const isQuarantined = ++this.#failures >= quarantineAfter
    const isRefused = lastError.class === 'authentication_failed'
    if (!isQuarantined && !isRefused && tries < this.#policy.retryAttempts) {
      const ms = Math.max(1, this.#policy.backoff(tries))
      this.#setState('reconnecting', { lastError, nextRetryAt: Date.now() + ms })
      return ms
    }
    const canLogIn = isRefused && input.url !== undefined && input.oauth !== undefined && input.oauth.tokenUrl === undefined
    const state = isQuarantined ? 'quarantined' : canLogIn ? 'needs_auth' : 'failed'
    this.#setState(state, { lastError, nextRetryAt: Date.now() + FAILED_MS })
    return undefined
  }

  #setState(state: McpState, details: Partial<McpStatus> = {}): void {
    const { nextRetryAt: _, ...status } = this.#status
    if (!mayFollow(status.state, state)) throw new Error(`a connection cannot go from ${status.state} to ${state}`)
    const since = state === status.state ? status.since : Date.now()
    this.#status = { ...status, ...details, state, since }
    this.#emit({ type: 'state', status: this.status })
  }

  async #stop(state: McpState, reason: string): Promise<void> {
    const cycle = this.#cycle
    cycle?.abort.abort(notConnected(this.#options.name, reason))
    if (this.#live !== undefined) this.lost(this.#live, reason, state)
    else this.#setState(state)
    await cycle?.done.catch(() => {})
    await this.#ending
  }
}

/** The last lines of its standard error, without hidden characters. */
function stderrOf(connection: McpConnection | undefined): { readonly stderr?: string } {
  const stderr = stripResult(connection?.transport.stderr() ?? '').text
  return stderr === '' ? {} : { stderr }
}

interface ConnectionRequest {
  /** Counts the connections of a client. */
  readonly generation: number
  /** The server is known to need the handshake of before 2026. */
  readonly isLegacy: boolean
  readonly toolsChanged: () => void
}

/** A program that stays silent for this long does not know the probe. */
const PROBE_MS = 10_000
/** A login can take several attempts: a server can ask for more scopes than it named first. */
const MAX_LOGINS = 3

/** Connects once. Throws MCP_CALL_FAILED, and the reason of an abort. */
async function openConnection(options: ResolvedOptions, request: ConnectionRequest, signal: AbortSignal): Promise<McpConnection> {
  const { name, connectMs } = options
  let opening: Promise<McpConnection> | undefined
  const begin = (ending: AbortSignal) => (opening = open(options, request, ending))
  try {
    return await withTimeout(connectMs, begin, { signal, late: () => tooSlow(name, connectMs, 'no') })
  } catch (error) {
    // closes the process or the session before the caller gets the error
    await opening?.then(({ transport }) => transport.end()).catch(() => {})
    throw signal.aborted ? (signal.reason as Error) : undelivered(name, error)
  }
}

async function open(options: ResolvedOptions, request: ConnectionRequest, signal: AbortSignal): Promise<McpConnection> {
  const { Client } = await import('@modelcontextprotocol/client')
  for (let [{ isLegacy }, logins] = [request, 0]; ; ) {
    const connection = new McpConnection(options, request.generation, request.toolsChanged)
    const begun = performance.now()
    const transport = await openTransport(options, connection, signal)
    connection.transport = transport
    const opened = performance.now()
    const client = new Client(CLIENT, {
      capabilities: capabilitiesOf(options.can),
      versionNegotiation: {
        mode: isLegacy ? 'legacy' : 'auto',
        probe: { timeoutMs: transport.hasPerRequestStream ? options.connectMs : Math.min(PROBE_MS, options.connectMs) },
      },
    })
    client.onerror = () => connection.countUnexpected()
    try {
      await handshake(client, transport, options.connectMs, signal)
      connection.connected(client)
      const authMs = transport.authMs()
      connection.timings = { startMs: opened - begun, authMs, handshakeMs: performance.now() - opened - authMs }
      if (connection.isStateless && client.getServerCapabilities()?.tools?.listChanged)
        void followTools(client, transport, request.toolsChanged)
      return connection
    } catch (error) {
      const isOld = !isLegacy && isEndedOnProbe(error, transport)
      isLegacy ||= isOld
      const canLogIn = logins++ < MAX_LOGINS && !signal.aborted
      const login = canLogIn ? abortable(transport.authorize(), signal) : Promise.resolve(false)
      const isLoggedIn = await login.finally(() => transport.end())
      if (!isOld && !isLoggedIn) throw error
    }
  }
}

async function openTransport({ input, limits, servers }: ResolvedOptions, connection: McpConnection, signal: AbortSignal) {
  if (input.url === undefined) return openStdio(input, limits.resultBytes, connection, signal)
  const { openHttp } = await import('./transport/http.ts')
  return openHttp(input, servers(), limits.resultBytes, connection)
}

async function handshake(client: Client, transport: ServerTransport, timeout: number, signal: AbortSignal): Promise<void> {
  const onAbort = () => transport.abort('the attempt was aborted')
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    await client.connect(transport, { timeout, signal })
    signal.throwIfAborted()
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** A program that knows only the old handshake ends when it gets another request first. */
const isEndedOnProbe = (error: unknown, transport: ServerTransport) =>
  !transport.hasPerRequestStream && codeOf(error) === 'ERA_NEGOTIATION_FAILED'

const FOLLOW_AGAIN_MS = 30_000

/** A stateless server reports changed tools on a stream that the client opens, and opens again when it ends. */
async function followTools(client: Client, { ended }: ServerTransport, toolsChanged: () => void): Promise<void> {
  const over = new AbortController()
  void ended.then(() => over.abort())
  while (!over.signal.aborted) {
    // a server that refuses the stream is asked again later; its tools are listed all the same
    await client.listen({ toolsListChanged: true }).then(
      stream => stream.closed,
      () => {}
    )
    await pause(FOLLOW_AGAIN_MS, over.signal).then(toolsChanged, () => {})
  }
}
