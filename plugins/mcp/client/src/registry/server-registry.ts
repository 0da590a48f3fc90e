import type { Log, CallContext } from '@svc/core'
import type { Fence, Json, McpTool, Store } from '@svc/core/contracts'
import { assessTools, type Pins } from '@svc/mcp-protocol'
import { follow } from '@svc/storage-kit/follow'
import { changeRecord, readRecord, type StoredRecord } from '@svc/storage-kit/records'
import type { McpServerSettings } from './configured-servers.ts'
import {
  asJson,
  type CatalogueRecord,
  CATALOGUES,
  KEYS,
  type LoginRecord,
  openRecords,
  type PinsRecord,
  readCatalogue,
  type RecordKind,
  RECORDS,
  type StateRecord,
  type SwitchRecord,
} from './records.ts'

export interface ServerRegistryOptions {
  readonly store: Store
  readonly serverId: string
  readonly servers: readonly McpServerSettings[]
  readonly log: Log
  /** Whether other workers use the same registry; else states stay in memory. */
  readonly shared: boolean
  readonly changed: (server: McpServerSettings, kind: RecordKind) => void
}

/** All records of the servers: decisions of users, and reports of the owners. Reads from memory; writes go to the store, which all workers watch. */
export class ServerRegistry {
  readonly #options: ServerRegistryOptions
  readonly #watched: ReadonlyMap<string, { readonly server: McpServerSettings; readonly kind: RecordKind }>
  readonly #records = new Map<string, StoredRecord>()
  readonly #catalogues = new Map<string, CatalogueRecord>()
  readonly #tools = new Map<string, readonly McpTool[]>()
  /** The hashes of the catalogues in the store. */
  readonly #storedHash = new Map<string, string>()
  /** Catalogues that this worker has listed and not yet reported, with its name: its earlier reports name an older one. */
  readonly #unreported = new Map<string, string>()

  constructor(options: ServerRegistryOptions) {
    this.#options = options
    const kinds = Object.keys(KEYS) as RecordKind[]
    this.#watched = new Map(
      options.servers.flatMap(server => kinds.map(kind => [this.#key(kind, server), { server, kind }] as const))
    )
  }

  /** Reads all records, and follows their changes until `lasting.signal` aborts. */
  async open(lasting: CallContext): Promise<void> {
    const { store, log } = this.#options
    await openRecords(store, lasting)
    await deleteOld(store, lasting)
    const watch = async (ctx: CallContext) => {
      for await (const { key, version, value } of store.watch(RECORDS, ctx)) await this.take(key, { version, value }, ctx)
    }
    const read = (ctx: CallContext) => this.#read(ctx)
    follow({ what: 'MCP servers', watch, read }, lasting, log).catch((err: unknown) =>
      log.error({ err }, 'stopped watching the records of MCP servers')
    )
    await read(lasting)
  }

  /** The switch of a user overrides the configuration. */
  isEnabled(server: McpServerSettings): boolean {
    return this.#value<SwitchRecord>(KEYS.switch(server))?.enabled ?? server.entry.enabled ?? true
  }

  state(server: McpServerSettings): StateRecord | undefined {
    return this.#value(this.#key('state', server))
  }

  /** Unix milliseconds of the last login by a user, 0 without one. A new login is a reason to connect again. */
  loginAt(server: McpServerSettings): number {
    return this.#value<LoginRecord>(KEYS.login(server))?.at ?? 0
  }

  /** The tools of the owner's last list; before there is one, the pinned tools. */
  tools(server: McpServerSettings): readonly McpTool[] | undefined {
    const key = this.#key('state', server)
    const known = this.#tools.get(key)
    if (known) return known
    const pins = this.pins(server)
    const listed = this.#catalogues.get(key)?.tools ?? Object.values(pins)
    if (listed.length === 0 && !this.#catalogues.has(key)) return undefined
    const tools = assessTools(listed, pins, server.entry)
    this.#tools.set(key, tools)
    return tools
  }

  /** The tools as they were approved or first seen. */
  pins(server: McpServerSettings): Pins {
    return this.#value<PinsRecord>(KEYS.pins(server))?.tools ?? {}
  }

  catalogue(server: McpServerSettings): CatalogueRecord | undefined {
    return this.#catalogues.get(this.#key('state', server))
  }

  /** The same as the store has it now, for a decision about what another worker may have listed a moment ago. */
  async latestCatalogue(server: McpServerSettings, ctx: CallContext): Promise<CatalogueRecord | undefined> {
    const key = this.#key('state', server)
    const record = await readRecord(this.#options.store, RECORDS, key, ctx)
    if (record.version > 0) await this.take(key, record, ctx)
    return this.#catalogues.get(key)
  }

  /** Changes the pinned tools, which count here at once; writes nothing if `pinsOf` returns its argument. */
  changePins(server: McpServerSettings, pinsOf: (pins: Pins) => Pins, ctx: CallContext): Promise<void> {
    const put = (value: Json | undefined) => {
      const before = (value as unknown as PinsRecord | undefined)?.tools ?? {}
      const tools = pinsOf(before)
      return tools === before ? undefined : asJson({ tools } satisfies PinsRecord)
    }
    return this.#change(KEYS.pins(server), put, ctx)
  }

  /** Enables or disables a server until the next such change. */
  setEnabled(server: McpServerSettings, enabled: boolean, ctx: CallContext): Promise<void> {
    return this.#change(KEYS.switch(server), () => asJson({ enabled, at: Date.now() } satisfies SwitchRecord), ctx)
  }

  /** The owner, this worker, has listed these tools: they count here at once, in other workers after `report`. */
  listed(server: McpServerSettings, catalogue: CatalogueRecord, self: string): void {
    const key = this.#key('state', server)
    this.#catalogues.set(key, catalogue)
    this.#unreported.set(key, self)
    this.#tools.delete(key)
  }

  /** Writes the state of a server with its catalogue; the fence proves that this worker owns it. Throws STORE_FENCED, STORE_CONFLICT. */
  async report(server: McpServerSettings, state: StateRecord, fence: Fence | undefined, ctx: CallContext): Promise<void> {
    const { store, shared } = this.#options
    const key = this.#key('state', server)
    const before = this.#records.get(key)?.version ?? 0
    const value = asJson(state)
    if (!shared) return this.take(key, { version: before + 1, value }, ctx)
    const catalogue = this.#catalogues.get(key)
    const isNew = catalogue !== undefined && state.catalogue === catalogue.hash && this.#storedHash.get(key) !== catalogue.hash
    const put = { op: 'put' as const, collection: RECORDS, key, value, ...(fence ? {} : { ifVersion: before }) }
    const ops = isNew ? [{ op: 'put' as const, collection: CATALOGUES, key, value: asJson(catalogue) }, put] : [put]
    const { results } = await store.batch(ops, fence ? { fence } : {}, ctx)
    if (isNew) this.#storedHash.set(key, catalogue.hash)
    if (state.catalogue === this.#catalogues.get(key)?.hash) this.#unreported.delete(key)
    await this.take(key, { version: results.at(-1) ?? before + 1, value }, ctx)
  }

  /** Takes over a record that this worker has written or the store has reported. Version 0 is a deletion: later versions count from 1 again. */
  async take(key: string, record: StoredRecord, ctx: CallContext): Promise<void> {
    const watched = this.#watched.get(key)
    const before = this.#records.get(key)?.version ?? 0
    if (!watched || (record.version !== 0 && record.version <= before)) return
    const { server, kind } = watched
    if (kind === 'state') await this.#loadCatalogue(key, record.value as unknown as StateRecord | undefined, ctx)
    if ((this.#records.get(key)?.version ?? 0) > before) return
    this.#records.set(key, record)
    if (kind === 'pins' || kind === 'state') this.#tools.delete(this.#key('state', server))
    this.#options.changed(server, kind)
  }

  #key(kind: RecordKind, server: McpServerSettings): string {
    return KEYS[kind](server, this.#options.serverId)
  }

  async #change(key: string, next: (value: Json | undefined) => Json | undefined, ctx: CallContext): Promise<void> {
    const place = { collection: RECORDS, key }
    await this.take(key, await changeRecord(this.#options.store, place, ({ value }) => next(value), ctx), ctx)
  }

  #value<T>(key: string): T | undefined {
    return this.#records.get(key)?.value as T | undefined
  }

  async #read(ctx: CallContext): Promise<void> {
    for (const key of this.#watched.keys()) {
      const record = await readRecord(this.#options.store, RECORDS, key, ctx)
      if (record.version > 0 || this.#records.has(key)) await this.take(key, record, ctx)
    }
  }

  /** Reads the catalogue of a state, unless it is in memory already, or this worker has a newer one. */
  async #loadCatalogue(key: string, state: StateRecord | undefined, ctx: CallContext): Promise<void> {
    const isOlder = () => this.#unreported.has(key) && state?.worker === this.#unreported.get(key)
    if (!state?.catalogue || this.#catalogues.get(key)?.hash === state.catalogue || isOlder()) return
    const catalogue = await readCatalogue(this.#options.store, key, ctx)
    // this worker can have listed the tools meanwhile
    if (!catalogue || isOlder()) return
    this.#unreported.delete(key)
    this.#catalogues.set(key, catalogue)
    this.#storedHash.set(key, catalogue.hash)
  }
}

const MAX_AGE_MS = 30 * 24 * 3600 * 1000

/** Deletes the states of servers that ended long ago. */
async function deleteOld(store: Store, ctx: CallContext): Promise<void> {
  const to = Date.now() - MAX_AGE_MS
  const { records } = await store.range(RECORDS, { index: 'by_seen', from: 1, to, limit: 1000 }, ctx)
  const ops = records.flatMap(({ key }) => [RECORDS, CATALOGUES].map(collection => ({ op: 'delete' as const, collection, key })))
  if (ops.length > 0) await store.batch(ops, {}, ctx)
}
