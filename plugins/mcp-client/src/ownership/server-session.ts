import { createHash } from 'node:crypto'
import { codeOf, type Log, messageOf, type Use } from '@svc/core'
import type { Fence, Json, McpCallOptions, McpErrorClass, McpFailure, McpState, McpTool, ToolStep } from '@svc/core/contracts'
import { callFailed, failureOf, type ListedTool, type StepsEnd, watchedSteps } from '@svc/mcp'
import type { McpChange, McpClient, McpStatus, StepOptions } from '../connection/client-types.ts'
import type { McpClientOptions } from '../connection/options.ts'
import type { Server } from '../registry/configured-servers.ts'
import type { Figures } from '../registry/metrics.ts'
import type { CatalogueNote, StateNote, Told } from '../registry/records.ts'
import type { Board } from '../registry/server-registry.ts'
import { Listing } from './tool-listing.ts'

/** Tells of connections as they come and go; seconds are what connecting took, or how long it lasted. */
export interface Heralds {
  connected(server: Server, protocolVersion: string, seconds: number): void
  disconnected(server: Server, reason: string, seconds: number): void
}

export interface HoldingParts {
  readonly server: Server
  readonly board: Board
  /** How it is connected. Throws MCP_CALL_FAILED. */
  readonly options: () => McpClientOptions
  /** The name of this worker, and the prefix of its leases. */
  readonly self: string
  readonly holder: string
  /** The proof of owning it; none where there are no other workers. */
  readonly fence: Fence | undefined
  readonly figures: Figures
  readonly heralds: Heralds
  readonly log: Log
  readonly lasting: Use
  /** The proof of owning it is worth nothing any more. */
  readonly lost: () => void
}

type Args = { readonly [name: string]: Json | undefined }

/** What nobody has told for a month is forgotten. */
const REMIND_MS = 24 * 3600 * 1000

/** The connection to a server, in the worker that owns it. */
export class Holding {
  readonly #parts: HoldingParts
  readonly #listing = new Listing(() => this.#list())
  readonly #telling = new Telling(() => this.#tell())
  #client: Promise<McpClient> | undefined
  #told: Told = { state: 'disconnected', since: Date.now(), attempts: 0 }
  #catalogue: CatalogueNote | undefined
  #known: StateNote['known']
  #since = performance.now()
  #calls = 0
  #idle = Promise.withResolvers<void>()
  #isLeaving = false

  constructor(parts: HoldingParts) {
    this.#parts = parts
  }

  get state(): McpState {
    return this.#told.state
  }
  get fence(): Fence | undefined {
    return this.#parts.fence
  }
  /** Whether other workers know that it is owned here. */
  get isTold(): boolean {
    return !this.#telling.isSilent
  }

  /** Connects and lists its tools, also what has failed just now. What fails stands in its state, and is tried again as its policy says. */
  async open({ signal }: Use = this.#parts.lasting): Promise<void> {
    const client = await this.#made()
    await client.connect({ signal })
    await this.#listing.known(signal)
  }

  /** Calls a tool, of those that this very connection has listed; one that was not approved may not be. */
  call(tool: string, args: Args, options: McpCallOptions, use: Use): AsyncIterable<ToolStep> {
    const { server, figures } = this.#parts
    let begun = 0
    const begin = () => {
      begun = performance.now()
      this.#calls += 1
      return this.#begin(tool, args, { ...options, owner: use.principal.id }, use)
    }
    return watchedSteps(begin, end => {
      figures.ended(server.entry.name, failureIn(end), (performance.now() - begun) / 1000)
      this.#calls -= 1
      if (this.#calls === 0) this.#rest()
    })
  }

  /** From here on all workers know who owns it, and how it stands. */
  announce(): Promise<void> {
    return this.#telling.begin()
  }

  /** Looks after it from time to time. */
  tend(): void {
    const isConnected = this.state === 'connected' || this.state === 'degraded'
    if (isConnected) this.#listing.fresh().catch(() => {}) // nothing, where its tools are known
    if (Date.now() - this.#telling.toldAt > REMIND_MS) void this.#telling.tell()
  }

  /** Whoever stays may take it over; until somebody does, it is served here. */
  leave(): Promise<void> {
    this.#isLeaving = true
    return this.#telling.begin()
  }

  /** Which tools are approved has changed, or which there are. */
  weigh(): void {
    const { server, board } = this.#parts
    const changed = board.tools(server)?.filter(one => one.standing === 'changed') ?? []
    const reason = reasonOf(server.entry.name, changed, this.#catalogue?.faults ?? [])
    void this.#client?.then(client => client.setDegraded(reason)).catch(() => {})
  }

  /** Somebody wants it connected: ends a quarantine, and a wait for the next attempt. */
  async enable(): Promise<void> {
    await (await this.#made()).setEnabled(true)
    await this.open()
  }

  /** Connects anew: what it knew of its credentials is old. */
  async renew(reason: string): Promise<void> {
    await (await this.#made()).disconnect(reason)
    await this.enable()
  }

  /** Answers when no call runs. */
  async idle(): Promise<void> {
    if (this.#calls > 0) await this.#idle.promise
  }

  /** Ends it at once: its process is gone when this answers. */
  async close(): Promise<void> {
    this.#listing.close()
    const client = await this.#client?.catch(() => undefined)
    await Promise.all([this.#telling.end(), client?.close()])
  }

  /** How it stands, as the board has it. */
  note(worker: string | null): StateNote {
    const { holder, board, server } = this.#parts
    const catalogue = this.#catalogue ?? board.catalogue(server)
    return {
      worker,
      holder,
      leaving: this.#isLeaving,
      told: this.#told,
      catalogue: catalogue?.hash ?? null,
      seen: Date.now(),
      ...(this.#known ? { known: this.#known } : {}),
    }
  }

  async #begin(tool: string, args: Args, options: StepOptions, use: Use): Promise<AsyncIterable<ToolStep>> {
    const { server, board } = this.#parts
    use.signal.throwIfAborted()
    if (!this.#listing.isKnown) await this.#listing.known(use.signal)
    checkStanding(server.entry.name, tool, board.tools(server))
    const client = await this.#made()
    return client.call(tool, args, options, use)
  }

  #rest() {
    this.#idle.resolve()
    this.#idle = Promise.withResolvers()
  }

  #made(): Promise<McpClient> {
    this.#client ??= this.#make().catch((error: unknown) => {
      this.#client = undefined
      this.#take({ state: 'failed', since: Date.now(), attempts: 0, lastError: failureOf(error) })
      throw error
    })
    return this.#client
  }

  /** A service without servers never imports the library. */
  async #make(): Promise<McpClient> {
    const options = this.#parts.options()
    const { createMcpClient } = await import('../connection/mcp-client.ts')
    const client = createMcpClient(options)
    client.onChange(change => this.#heard(change))
    return client
  }

  #heard(change: McpChange) {
    const { server, figures, heralds } = this.#parts
    const seconds = (performance.now() - this.#since) / 1000
    switch (change.type) {
      case 'state':
        if (change.status.state === 'connecting') this.#since = performance.now()
        this.#known = change.status.known ?? this.#known
        return this.#take(toldOf(change.status))
      case 'connected':
        this.#since = performance.now()
        figures.connected(server.entry.name)
        heralds.connected(server, change.protocolVersion, seconds)
        return void this.#listing.fresh().catch(() => {}) // its failure stands in the state
      case 'disconnected':
        heralds.disconnected(server, change.reason, seconds)
        return this.#listing.forget()
      case 'tools':
        return this.#listing.again()
    }
  }

  #take(told: Told) {
    this.#told = told
    void this.#telling.tell()
  }

  /** Lists the tools, pins those that are new, and tells all workers. */
  async #list(): Promise<void> {
    const { server, board, self, lasting } = this.#parts
    const client = await this.#made()
    const { tools, faults } = await client.listTools({ signal: lasting.signal }).catch((error: unknown) => {
      client.setDegraded(failureOf(error))
      throw error
    })
    await board.pinFirstSights(server, tools, lasting)
    const hash = hashOfAll(tools, faults)
    if (hash !== this.#catalogue?.hash) this.#catalogue = { hash, tools, faults }
    board.listed(server, this.#catalogue, self)
    await this.#telling.tell()
    this.weigh()
  }

  async #tell(): Promise<void> {
    const { server, board, self, fence, lasting, log, lost } = this.#parts
    try {
      await board.tell(server, this.note(self), this.#isLeaving ? undefined : fence, lasting)
    } catch (error) {
      if (codeOf(error) === 'STORE_FENCED') return lost()
      // a conflict: somebody has taken over what this worker leaves
      if (codeOf(error) === 'STORE_CONFLICT' || lasting.signal.aborted) return
      log.warn({ err: error, server: server.entry.name }, `how a tool server stands could not be told: ${messageOf(error)}`)
    }
  }
}

function toldOf({ state, since, attempts, lastError, nextRetryAt, protocolVersion, stderr }: McpStatus): Told {
  const all = { state, since, attempts, lastError, nextRetryAt, protocolVersion, stderr }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as unknown as Told
}

/** One telling at a time; what changes meanwhile is told in the next one, however often it did. */
class Telling {
  readonly #tell: () => Promise<void>
  #running: Promise<void> | undefined
  #isStale = false
  #isSilent = true
  #toldAt = Date.now()

  constructor(tell: () => Promise<void>) {
    this.#tell = tell
  }

  /** Before `begin` and after `end` nothing is told. */
  get isSilent(): boolean {
    return this.#isSilent
  }
  /** Unix milliseconds. */
  get toldAt(): number {
    return this.#toldAt
  }

  begin(): Promise<void> {
    this.#isSilent = false
    return this.tell()
  }

  /** Answers when what is true now has been told. */
  tell(): Promise<void> {
    if (this.#isSilent) return Promise.resolve()
    this.#isStale = this.#running !== undefined
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Answers when nothing is being told any more. */
  async end(): Promise<void> {
    this.#isSilent = true
    await this.#running
  }

  async #run(): Promise<void> {
    do {
      this.#isStale = false
      this.#toldAt = Date.now()
      await this.#tell()
    } while (this.#isStale && !this.#isSilent)
  }
}

/** Throws MCP_CALL_FAILED, class `tool_not_found`, for a tool that may not be used. */
function checkStanding(server: string, tool: string, tools: readonly McpTool[] | undefined) {
  const found = tools?.find(one => one.name === tool)
  if (found?.standing === 'good') return
  throw callFailed(server, 'tool_not_found', STANDINGS[found?.standing ?? 'unknown'](tool, server), { delivered: 'no' })
}

const STANDINGS = {
  unknown: (tool: string) => `it has no tool "${tool.slice(0, 100)}"`,
  hidden: (tool: string) => `the configuration leaves its tool "${tool}" out`,
  changed: (tool: string, server: string) =>
    `its tool "${tool}" is not what was approved: see what is new with svc mcp tools ${server}, and approve it with svc mcp approve ${server}`,
} as const

/** Of how a call ended, what went wrong. */
function failureIn(end: StepsEnd): McpErrorClass | undefined {
  if (end === 'mute' || end === 'left') return undefined
  if ('thrown' in end) return failureOf(end.thrown).class
  return end.last.type === 'result' && end.last.result.isError ? 'tool_error' : undefined
}

/** Why a connected server is degraded; undefined where it is not. */
function reasonOf(server: string, changed: readonly McpTool[], faults: readonly string[]): McpFailure | undefined {
  const names = changed.map(one => one.name)
  if (names.length > 0)
    return { class: 'protocol_error', message: `tools that changed: ${listed(names)}; svc mcp approve ${server}` }
  return faults.length > 0 ? { class: 'protocol_error', message: `left out: ${listed(faults)}` } : undefined
}

const SHOWN = 5
const listed = (all: readonly string[]) =>
  all.length <= SHOWN ? all.join(', ') : `${all.slice(0, SHOWN).join(', ')} and ${all.length - SHOWN} more`

/** Of a catalogue: with another one it is another. */
const hashOfAll = (tools: readonly ListedTool[], faults: readonly string[]) =>
  createHash('sha256')
    .update(JSON.stringify([tools.map(({ hash, stripped }) => [hash, stripped]), faults]))
    .digest('hex')
