import { createHash } from 'node:crypto'
import { abortable, type CallContext, codeOf, type Log } from '@svc/core'
import type { Fence, Json, McpCallOptions, McpErrorClass, McpFailure, McpState, McpTool, ToolStep } from '@svc/core/contracts'
import { callFailed, failureOf, type ListedTool, type StepsEnd, watchedSteps } from '@svc/mcp-protocol'
import type { McpChange, McpClient, McpStatus, StepOptions } from '../connection/client-types.ts'
import type { McpClientOptions } from '../connection/options.ts'
import { STATES } from '../connection/states.ts'
import type { Server } from '../registry/configured-servers.ts'
import type { CatalogueRecord, ReportedStatus, StateRecord } from '../registry/records.ts'
import type { ServerRegistry } from '../registry/server-registry.ts'
import type { ServerMetrics } from '../registry/server-status.ts'

/** Receives the events of connections; seconds are the time to connect, or the age of the connection. */
export interface ConnectionListener {
  connected(server: Server, protocolVersion: string, seconds: number): void
  disconnected(server: Server, reason: string, seconds: number): void
}

export interface ServerSessionOptions {
  readonly server: Server
  readonly registry: ServerRegistry
  /** Throws MCP_CALL_FAILED. */
  readonly clientOptions: () => McpClientOptions
  /** The name of this worker, and the prefix of its leases. */
  readonly self: string
  readonly holder: string
  /** The fence of the lease, `undefined` if there are no other workers. */
  readonly fence: Fence | undefined
  /** Milliseconds after which the tools are listed again; 0 for never. */
  readonly recheckMs: number
  readonly metrics: ServerMetrics
  readonly listener: ConnectionListener
  readonly log: Log
  readonly lasting: CallContext
  /** Another worker has the lease now. */
  readonly lost: () => void
}

type Args = { readonly [name: string]: Json | undefined }

/** States that no worker has reported for a month are deleted: a session reports at least once a day. */
const REPORT_MS = 24 * 3600 * 1000

/** The connection to a server, in the worker that owns it. */
export class ServerSession {
  readonly #options: ServerSessionOptions
  readonly #listing = new ToolListing(() => this.#list())
  readonly #publisher = new StatePublisher(() => this.#report())
  #client: Promise<McpClient> | undefined
  #status: ReportedStatus = { state: 'disconnected', since: Date.now(), attempts: 0 }
  #catalogue: CatalogueRecord | undefined
  #known: StateRecord['known']
  #recheck: NodeJS.Timeout | undefined
  #calls = 0
  #idle = Promise.withResolvers<void>()
  #isLeaving = false

  constructor(options: ServerSessionOptions) {
    this.#options = options
  }

  get state(): McpState {
    return this.#status.state
  }
  get fence(): Fence | undefined {
    return this.#options.fence
  }
  /** Whether other workers know this owner. */
  get isAnnounced(): boolean {
    return this.#publisher.isOn
  }

  /** Connects and lists the tools, without waiting for the next retry. The state has the error of a failure. */
  async open({ signal }: CallContext = this.#options.lasting): Promise<void> {
    const client = await this.#connectable()
    await client.connect({ signal })
    await this.#listing.known(signal)
  }

  /** Connects, lists the tools again, and returns the list. Throws MCP_CALL_FAILED. */
  async refresh({ signal }: CallContext): Promise<CatalogueRecord> {
    const wasConnected = STATES[this.state].isConnected
    const client = await this.#connectable()
    await client.connect({ signal })
    if (wasConnected) this.#listing.again()
    await this.#listing.known(signal)
    return this.#catalogue!
  }

  /** Calls a tool that this connection has listed and whose standing is good. */
  call(tool: string, args: Args, options: McpCallOptions, ctx: CallContext): AsyncIterable<ToolStep> {
    const { server, metrics } = this.#options
    let begun = 0
    const begin = () => {
      begun = performance.now()
      this.#calls += 1
      return this.#begin(tool, args, { ...options, owner: ctx.principal.id }, ctx)
    }
    return watchedSteps(begin, end => {
      metrics.ended(server.entry.name, errorClassOf(end), (performance.now() - begun) / 1000)
      this.#calls -= 1
      if (this.#calls > 0) return
      this.#idle.resolve()
      this.#idle = Promise.withResolvers()
    })
  }

  /** Starts to report the owner and the state to all workers. */
  announce(): Promise<void> {
    return this.#publisher.begin()
  }

  /** Called regularly. */
  maintain(): void {
    if (STATES[this.state].isConnected) this.#listing.current().catch(() => {}) // does nothing if the tools are known
    if (Date.now() - this.#publisher.publishedAt > REPORT_MS) void this.#publisher.publish()
  }

  /** Reports that another worker can take over; serves until one does. */
  leave(): Promise<void> {
    this.#isLeaving = true
    return this.#publisher.begin()
  }

  /** The tools or the pins have changed: sets or clears `degraded`. */
  assess(): void {
    const { server, registry } = this.#options
    const changed = registry.tools(server)?.filter(one => one.standing === 'changed') ?? []
    const reason = degradedReason(server.entry.name, changed, this.#catalogue?.problems ?? [])
    void this.#client?.then(client => client.setDegraded(reason)).catch(() => {})
  }

  /** Connects at once; ends a quarantine, and the wait for the next attempt. */
  async enable(): Promise<void> {
    await (await this.#connectable()).setEnabled(true)
    await this.open()
  }

  /** Connects again, with new credentials. */
  async reconnect(reason: string): Promise<void> {
    await (await this.#connectable()).disconnect(reason)
    await this.enable()
  }

  /** Resolves when no call runs. */
  async idle(): Promise<void> {
    if (this.#calls > 0) await this.#idle.promise
  }

  /** Ends the connection; its process has ended when this resolves. */
  async close(): Promise<void> {
    clearTimeout(this.#recheck)
    this.#listing.forget()
    const client = await this.#client?.catch(() => undefined)
    await Promise.all([this.#publisher.end(), client?.close()])
  }

  /** The state of the server for the registry. */
  record(worker: string | null): StateRecord {
    const { holder, registry, server } = this.#options
    const catalogue = this.#catalogue ?? registry.catalogue(server)
    return {
      worker,
      holder,
      leaving: this.#isLeaving,
      status: this.#status,
      catalogue: catalogue?.hash ?? null,
      seen: Date.now(),
      ...(this.#known ? { known: this.#known } : {}),
    }
  }

  async #begin(tool: string, args: Args, options: StepOptions, ctx: CallContext): Promise<AsyncIterable<ToolStep>> {
    ctx.signal.throwIfAborted()
    if (!this.#listing.isKnown) await this.#listing.known(ctx.signal)
    this.#checkStanding(tool)
    const client = await this.#connectable()
    const beforeResend = async (signal: AbortSignal) => {
      await this.#listing.known(signal)
      this.#checkStanding(tool)
    }
    return client.call(tool, args, { ...options, beforeResend }, ctx)
  }

  /** Throws MCP_CALL_FAILED, class `tool_not_found`, for a tool that cannot be used. */
  #checkStanding(tool: string): void {
    const { server, registry } = this.#options
    const { name } = server.entry
    const standing = registry.tools(server)?.find(one => one.name === tool)?.standing
    if (standing === 'good') return
    throw callFailed(name, 'tool_not_found', REFUSALS[standing ?? 'unknown'](tool, name), { delivered: 'no' })
  }

  #connectable(): Promise<McpClient> {
    this.#client ??= this.#createClient().catch((error: unknown) => {
      this.#client = undefined
      this.#setStatus({ state: 'failed', since: Date.now(), attempts: 0, lastError: failureOf(error) })
      throw error
    })
    return this.#client
  }

  /** Imports the connection code with the first server: many services have none. */
  async #createClient(): Promise<McpClient> {
    const options = this.#options.clientOptions()
    const { createMcpClient } = await import('../connection/mcp-client.ts')
    const client = createMcpClient(options)
    client.onChange(change => this.#changed(change))
    return client
  }

  #changed(change: McpChange) {
    const { server, metrics, listener } = this.#options
    switch (change.type) {
      case 'state':
        this.#known = change.status.known ?? this.#known
        return this.#setStatus(reportedStatusOf(change.status))
      case 'connected':
        metrics.connected(server.entry.name)
        listener.connected(server, change.protocolVersion, change.durationMs / 1000)
        return void this.#listing.current().catch(() => {}) // the state has the error
      case 'disconnected':
        listener.disconnected(server, change.reason, change.durationMs / 1000)
        clearTimeout(this.#recheck)
        return this.#listing.forget()
      case 'tools':
        return this.#listing.again()
    }
  }

  #setStatus(status: ReportedStatus) {
    this.#status = status
    void this.#publisher.publish()
  }

  /** Lists the tools, pins new ones, and reports them to all workers. */
  async #list(): Promise<void> {
    const { server, registry, self, lasting, recheckMs } = this.#options
    const client = await this.#connectable()
    clearTimeout(this.#recheck)
    const { tools, problems } = await client.listTools({ signal: lasting.signal }).catch((error: unknown) => {
      client.setDegraded(failureOf(error))
      throw error
    })
    if (recheckMs > 0) this.#recheck = setTimeout(() => this.#listing.again(), recheckMs).unref()
    await registry.pinNewTools(server, tools, lasting)
    const hash = catalogueHash(tools, problems)
    if (hash !== this.#catalogue?.hash) this.#catalogue = { hash, tools, problems }
    registry.listed(server, this.#catalogue, self)
    await this.#publisher.publish()
    this.assess()
  }

  async #report(): Promise<void> {
    const { server, registry, self, fence, lasting, log, lost } = this.#options
    try {
      await registry.report(server, this.record(self), this.#isLeaving ? undefined : fence, lasting)
    } catch (error) {
      if (codeOf(error) === 'STORE_FENCED') return lost()
      // a conflict: a successor has taken over
      if (codeOf(error) === 'STORE_CONFLICT' || lasting.signal.aborted) return
      log.warn({ err: error, server: server.entry.name }, 'failed to publish the status of the MCP server')
    }
  }
}

function reportedStatusOf({
  state,
  since,
  attempts,
  lastError,
  nextRetryAt,
  protocolVersion,
  stderr,
}: McpStatus): ReportedStatus {
  const all = { state, since, attempts, lastError, nextRetryAt, protocolVersion, stderr }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as unknown as ReportedStatus
}

/** Publishes one state at a time; changes meanwhile are published together in the next one. */
class StatePublisher {
  readonly #send: () => Promise<void>
  #running: Promise<void> | undefined
  #isStale = false
  #isOn = false
  #publishedAt = Date.now()

  constructor(send: () => Promise<void>) {
    this.#send = send
  }

  /** Publishes only between `begin` and `end`. */
  get isOn(): boolean {
    return this.#isOn
  }
  /** Unix milliseconds. */
  get publishedAt(): number {
    return this.#publishedAt
  }

  begin(): Promise<void> {
    this.#isOn = true
    return this.publish()
  }

  /** Resolves when the current state has been published. */
  publish(): Promise<void> {
    if (!this.#isOn) return Promise.resolve()
    this.#isStale = this.#running !== undefined
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async end(): Promise<void> {
    this.#isOn = false
    await this.#running
  }

  async #run(): Promise<void> {
    do {
      this.#isStale = false
      this.#publishedAt = Date.now()
      await this.#send()
    } while (this.#isStale && this.#isOn)
  }
}

const REFUSALS = {
  unknown: (tool: string) => `it has no tool "${tool.slice(0, 100)}"`,
  hidden: (tool: string) => `the configuration excludes its tool "${tool}"`,
  changed: (tool: string, server: string) =>
    `its tool "${tool}" has changed since it was approved: review it with svc mcp tools ${server}, then run svc mcp approve ${server}`,
} as const

/** The error class of a call that has ended. */
function errorClassOf(end: StepsEnd): McpErrorClass | undefined {
  if (end === 'incomplete' || end === 'abandoned') return undefined
  if ('thrown' in end) return failureOf(end.thrown).class
  return end.last.type === 'result' && end.last.result.isError ? 'tool_error' : undefined
}

/** The reason why a connected server is degraded, `undefined` if it is not. */
function degradedReason(server: string, changed: readonly McpTool[], problems: readonly string[]): McpFailure | undefined {
  const names = changed.map(one => one.name)
  if (names.length > 0)
    return { class: 'protocol_error', message: `tools that changed: ${shortList(names)}; svc mcp approve ${server}` }
  return problems.length > 0 ? { class: 'protocol_error', message: `left out: ${shortList(problems)}` } : undefined
}

const SHOWN = 5
const shortList = (all: readonly string[]) =>
  all.length <= SHOWN ? all.join(', ') : `${all.slice(0, SHOWN).join(', ')} and ${all.length - SHOWN} more`

const catalogueHash = (tools: readonly ListedTool[], problems: readonly string[]) =>
  createHash('sha256')
    .update(JSON.stringify([tools.map(({ hash, stripped }) => [hash, stripped]), problems]))
    .digest('hex')

/** Lists the tools of a server once per connection, and again when the server reports changed tools. The client limits these reports to one per second. */
class ToolListing {
  readonly #list: () => Promise<void>
  #current: Promise<void> | undefined
  #isRunning = false
  #isKnown = false
  #isStale = false

  constructor(list: () => Promise<void>) {
    this.#list = list
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Resolves when the tools of this connection are known. After an error, the next call lists them again. */
  current(): Promise<void> {
    this.#current ??= this.#run()
    return this.#current
  }

  /** As `current`, until the signal aborts. */
  async known(signal: AbortSignal): Promise<void> {
    if (this.#isKnown) return
    signal.throwIfAborted()
    await abortable(this.current(), signal)
  }

  /** Lists the tools again. Calls wait for the new list. */
  again(): void {
    if (this.#isRunning) this.#isStale = true
    else this.#restart()
  }

  /** The connection has ended. */
  forget(): void {
    this.#isStale = false
    this.#current = undefined
    this.#isKnown = false
  }

  #restart() {
    this.#current = this.#run()
    this.#current.catch(() => {}) // the next call gets the error
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    this.#isKnown = false
    try {
      await this.#list()
      this.#isKnown = true
    } catch (error) {
      this.#current = undefined
      throw error
    } finally {
      this.#isRunning = false
      const isStale = this.#isStale
      this.#isStale = false
      if (isStale) this.#restart()
    }
  }
}
