import { abortable, type CallContext, codeOf, createCoalescer } from '@svc/core'
import {
  type McpApp,
  type McpCallOptions,
  type McpFailure,
  McpServerConnected,
  McpServerDisconnected,
  type McpServerEvent,
  type McpState,
  type McpTool,
  type ToolStep,
} from '@svc/core/contracts'
import { callFailed, errorClassOf, failureOf, listHash, watchedSteps, withNewPins } from '@svc/mcp-protocol'
import { definedOf, shortList } from '@svc/plugin-kit'
import type { LeaseHold } from '@svc/storage-kit'
import type { Arguments, McpChange, McpClient, McpStatus } from '../connection/client-types.ts'
import { STATES } from '../connection/states.ts'
import { clientOptions } from '../registry/client-options.ts'
import type { McpServerSettings } from '../registry/configured-servers.ts'
import { type CatalogueRecord, KEYS, loginStorage, type ReportedStatus, type StateRecord } from '../registry/records.ts'
import { noApp } from '../errors.ts'
import { publicUrl } from '../registry/server-status.ts'
import type { McpContext } from './context.ts'

/** States that no worker has reported for a month are deleted: a session reports at least once a day. */
const REPORT_MS = 24 * 3600 * 1000

/** The connection to a server, in the worker that owns it. */
export class ServerSession {
  /** The lease, `undefined` if there are no other workers. */
  readonly hold: LeaseHold | undefined
  readonly #context: McpContext
  readonly #server: McpServerSettings
  readonly #lost: () => void
  /** Lists the tools once per connection, and again when the server reports changes. The client limits these reports to one per second. */
  readonly #listing = createCoalescer(() => this.#list())
  readonly #reporting = createCoalescer(() => this.#report())
  #client: Promise<McpClient> | undefined
  #status: ReportedStatus = { state: 'disconnected', since: Date.now(), attempts: 0 }
  #catalogue: CatalogueRecord | undefined
  #known: StateRecord['known']
  /** Whether the tools of this connection are known. */
  #isListed = false
  /** The connection has ended while its tools were listed. */
  #isListStale = false
  #recheck: NodeJS.Timeout | undefined
  #calls = 0
  #idle = Promise.withResolvers<void>()
  /** Whether other workers know this owner. */
  isAnnounced = false
  #isLeaving = false
  #reportedAt = Date.now()

  /** Calls `lost` when another worker has the lease. */
  constructor(context: McpContext, server: McpServerSettings, hold: LeaseHold | undefined, lost: () => void) {
    this.#context = context
    this.#server = server
    this.hold = hold
    this.#lost = lost
  }

  get state(): McpState {
    return this.#status.state
  }

  /** Connects and lists the tools, without waiting for the next retry. The state has the error of a failure. */
  async open({ signal }: CallContext = this.#context.lasting): Promise<void> {
    const client = await this.#connectable()
    await client.connect({ signal })
    await this.#listed(signal)
  }

  /** Connects, lists the tools again, and returns the list. Throws MCP_CALL_FAILED. */
  async refresh({ signal }: CallContext): Promise<CatalogueRecord> {
    const wasConnected = STATES[this.state].isConnected
    const client = await this.#connectable()
    await client.connect({ signal })
    if (wasConnected) await abortable(this.#listing.request(), signal)
    else await this.#listed(signal)
    return this.#catalogue!
  }

  /** Calls a tool that this connection has listed and whose status is good. */
  call(tool: string, args: Arguments, options: McpCallOptions, ctx: CallContext): AsyncIterable<ToolStep> {
    const { name } = this.#server.entry
    let begun = 0
    const begin = () => {
      begun = performance.now()
      this.#calls += 1
      return this.#begin(tool, args, options, ctx)
    }
    return watchedSteps(begin, end => {
      this.#context.metrics.ended(name, errorClassOf(end), (performance.now() - begun) / 1000)
      this.#calls -= 1
      if (this.#calls > 0) return
      this.#idle.resolve()
      this.#idle = Promise.withResolvers()
    })
  }

  /** Reads the app of a tool whose status is good: the one that was approved with the tool. */
  async app(tool: string, { signal }: CallContext): Promise<McpApp> {
    await this.#listed(signal)
    this.#checkUsable(tool)
    const { name } = this.#server.entry
    const uri = this.#context.registry.tools(this.#server)?.find(one => one.name === tool)?.ui?.resourceUri
    if (uri === undefined) throw noApp(name, tool)
    const client = await this.#connectable()
    return client.readApp(uri, { signal })
  }

  /** Starts to report the owner and the state to all workers. */
  announce(): Promise<void> {
    this.isAnnounced = true
    return this.#publish()
  }

  maintain(): void {
    if (STATES[this.state].isConnected && !this.#isListed) this.#listing.join().catch(() => {})
    if (Date.now() - this.#reportedAt > REPORT_MS) void this.#publish()
  }

  /** Reports that another worker can take over; serves until one does. */
  leave(): Promise<void> {
    this.#isLeaving = true
    return this.announce()
  }

  /** The tools or the pins have changed: sets or clears `degraded`. */
  assess(): void {
    const changed = this.#context.registry.tools(this.#server)?.filter(one => one.status === 'changed') ?? []
    const reason = degradedReason(this.#server.entry.name, changed, this.#catalogue?.problems ?? [])
    void this.#client?.then(client => client.setDegraded(reason)).catch(() => {})
  }

  /** Connects at once; ends a quarantine, and the wait for the next attempt. */
  async enable(): Promise<void> {
    await (await this.#connectable()).setEnabled(true)
    await this.open()
  }

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
    this.#isListed = this.isAnnounced = false
    const client = await this.#client?.catch(() => undefined)
    await Promise.all([this.#reporting.idle(), client?.close()])
  }

  record(worker: string | null): StateRecord {
    const { holder, registry } = this.#context
    const catalogue = this.#catalogue ?? registry.catalogue(this.#server)
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

  async #begin(tool: string, args: Arguments, options: McpCallOptions, ctx: CallContext): Promise<AsyncIterable<ToolStep>> {
    const beforeResend = async (signal: AbortSignal) => {
      await this.#listed(signal)
      this.#checkUsable(tool)
    }
    ctx.signal.throwIfAborted()
    await beforeResend(ctx.signal)
    const client = await this.#connectable()
    return client.call(tool, args, { ...options, owner: ctx.principal.id, beforeResend }, ctx)
  }

  /** Resolves when the tools of this connection are known. After an error, the next call lists them again. */
  async #listed(signal: AbortSignal): Promise<void> {
    if (this.#isListed) return
    signal.throwIfAborted()
    await abortable(this.#listing.join(), signal)
  }

  /** Throws MCP_CALL_FAILED, class `tool_not_found`, for a tool that cannot be used. */
  #checkUsable(tool: string): void {
    const { name } = this.#server.entry
    const status = this.#context.registry.tools(this.#server)?.find(one => one.name === tool)?.status
    if (status === 'good') return
    throw callFailed(name, 'tool_not_found', REFUSALS[status ?? 'unknown'](tool, name), { delivered: 'no' })
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
    const { store, registry, lasting } = this.#context
    const server = this.#server
    const storage = loginStorage(store, server, lasting, record => void registry.take(KEYS.login(server), record, lasting))
    const options = clientOptions(server, { ...this.#context, storage, known: registry.state(server)?.known })
    const { createMcpClient } = await import('../connection/mcp-client.ts')
    const client = createMcpClient(options)
    client.onChange(change => this.#changed(change))
    return client
  }

  #changed(change: McpChange) {
    const { metrics, events, lasting } = this.#context
    switch (change.type) {
      case 'state':
        this.#known = change.status.known ?? this.#known
        return this.#setStatus(reportedStatusOf(change.status))
      case 'connected': {
        metrics.connected(this.#server.entry.name)
        const event = { ...this.#event(change.durationMs), protocol_version: change.protocolVersion }
        void events.publish(McpServerConnected, event, lasting)
        const listed = this.#isListStale ? this.#listing.request() : this.#listing.join()
        this.#isListed = this.#isListStale = false
        return void listed.catch(() => {}) // the state has the error
      }
      case 'disconnected':
        void events.publish(McpServerDisconnected, { ...this.#event(change.durationMs), reason: change.reason }, lasting)
        clearTimeout(this.#recheck)
        this.#isListed = false
        this.#isListStale = this.#listing.isRunning
        return
      case 'tools':
        return this.#listAgain()
    }
  }

  #event(durationMs: number): McpServerEvent {
    const { name, url } = this.#server.entry
    return {
      source: 'mcp',
      tool_name: null,
      server: name,
      duration: durationMs / 1000,
      timestamp: Date.now(),
      ...(url !== undefined && { url: publicUrl(url) }),
    }
  }

  #setStatus(status: ReportedStatus) {
    this.#status = status
    void this.#publish()
  }

  #listAgain(): void {
    this.#isListed = false
    this.#listing.request().catch(() => {}) // the next call gets the error
  }

  /** Lists the tools, pins new ones, and reports them to all workers. */
  async #list(): Promise<void> {
    const { registry, self, lasting } = this.#context
    const server = this.#server
    const recheckMs = server.entry.url === undefined ? 0 : this.#context.recheckMs
    this.#isListed = false
    const client = await this.#connectable()
    clearTimeout(this.#recheck)
    const { tools, problems } = await client.listTools({ signal: lasting.signal }).catch((error: unknown) => {
      client.setDegraded(failureOf(error))
      throw error
    })
    if (recheckMs > 0) this.#recheck = setTimeout(() => this.#listAgain(), recheckMs).unref()
    await registry.changePins(server, pins => withNewPins(pins, tools), lasting)
    const hash = listHash(tools, problems)
    if (hash !== this.#catalogue?.hash) this.#catalogue = { hash, tools, problems }
    registry.listed(server, this.#catalogue, self)
    await this.#publish()
    this.assess()
    this.#isListed = true
  }

  /** Reports the state to all workers; changes meanwhile are reported together afterwards. */
  #publish(): Promise<void> {
    return this.isAnnounced ? this.#reporting.request() : Promise.resolve()
  }

  async #report(): Promise<void> {
    const { registry, self, lasting, log } = this.#context
    if (!this.isAnnounced) return
    this.#reportedAt = Date.now()
    try {
      await registry.report(this.#server, this.record(self), this.#isLeaving ? undefined : this.hold?.fence, lasting)
    } catch (error) {
      if (codeOf(error) === 'STORE_FENCED') return this.#lost()
      // a conflict: a successor has taken over
      if (codeOf(error) === 'STORE_CONFLICT' || lasting.signal.aborted) return
      log.warn({ err: error, server: this.#server.entry.name }, 'failed to publish the status of the MCP server')
    }
  }
}

function reportedStatusOf({ state, since, attempts, ...status }: McpStatus): ReportedStatus {
  const { lastError, nextRetryAt, protocolVersion, stderr } = status
  return { state, since, attempts, ...definedOf({ lastError, nextRetryAt, protocolVersion, stderr }) }
}

const REFUSALS = {
  unknown: (tool: string) => `it has no tool "${tool.slice(0, 100)}"`,
  hidden: (tool: string) => `the configuration excludes its tool "${tool}"`,
  changed: (tool: string, server: string) =>
    `its tool "${tool}" has changed since it was approved: review it with svc mcp tools ${server}, then run svc mcp approve ${server}`,
} as const

/** The reason why a connected server is degraded, `undefined` if it is not. */
function degradedReason(server: string, changed: readonly McpTool[], problems: readonly string[]): McpFailure | undefined {
  const names = changed.map(one => one.name)
  if (names.length > 0)
    return { class: 'protocol_error', message: `tools that changed: ${shortList(names)}; svc mcp approve ${server}` }
  return problems.length > 0 ? { class: 'protocol_error', message: `left out: ${shortList(problems)}` } : undefined
}
