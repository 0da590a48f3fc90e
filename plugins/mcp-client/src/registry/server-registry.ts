import type { Log, Use } from '@svc/core'
import type { Fence, McpTool, Store } from '@svc/core/contracts'
import type { ListedTool } from '@svc/mcp'
import { follow } from '@svc/space/follow'
import type { Server } from './configured-servers.ts'
import { type Pins, standings, withFirstSights } from './pinning.ts'
import {
  asJson,
  type CatalogueNote,
  CATALOGUES,
  changePins,
  loginKey,
  type Note,
  NOTES,
  openNotes,
  pinsKey,
  type PinsNote,
  readCatalogue,
  readNote,
  stateKey,
  type StateNote,
  switchKey,
  type SwitchNote,
} from './records.ts'

/** What changed on the board. */
export type Change = 'switch' | 'pins' | 'state' | 'login'

export interface BoardParts {
  readonly store: Store
  readonly serverId: string
  readonly servers: readonly Server[]
  readonly log: Log
  /** Whether other workers look at the same board; else how a server stands is told to nobody. */
  readonly shared: boolean
  readonly changed: (server: Server, what: Change) => void
}

interface Place {
  readonly server: Server
  readonly what: Change
}

/** What all workers know of the servers: what people decided, and what their owners tell. In memory for reading, in the store for all others. */
export class Board {
  readonly #parts: BoardParts
  readonly #places: ReadonlyMap<string, Place>
  readonly #stateKeys = new Map<Server, string>()
  readonly #notes = new Map<string, Note>()
  readonly #catalogues = new Map<string, CatalogueNote>()
  readonly #tools = new Map<string, readonly McpTool[]>()
  /** The catalogues that the store has, by their hashes. */
  readonly #toldHash = new Map<string, string>()
  /** Who has listed what is at hand and has not told it yet: this worker. What it told before has an older one. */
  readonly #untold = new Map<string, string>()

  constructor(parts: BoardParts) {
    this.#parts = parts
    this.#places = new Map(parts.servers.flatMap(server => this.#placesOf(server)))
  }

  /** Takes what there is, and follows it until `lasting.signal` aborts. */
  async open(lasting: Use): Promise<void> {
    const { store, log } = this.#parts
    await openNotes(store, lasting)
    await forgetOld(store, lasting)
    const watch = async (use: Use) => {
      for await (const { key, version, value } of store.watch(NOTES, use)) await this.#take(key, { version, value }, use)
    }
    const read = (use: Use) => this.#read(use)
    follow({ what: 'tool servers', watch, read }, lasting, log).catch((err: unknown) =>
      log.error({ err }, 'changes of tool servers are no longer seen')
    )
    await read(lasting)
  }

  /** Whether a server is to be connected: what a person switched wins over the configuration. */
  isEnabled(server: Server): boolean {
    return this.#value<SwitchNote>(switchKey(server))?.enabled ?? server.entry.enabled ?? true
  }

  state(server: Server): StateNote | undefined {
    return this.#value(this.#stateKey(server))
  }

  /** What logging in has brought, of this version: each new one is a new chance to connect. */
  login(server: Server): Note | undefined {
    return this.#notes.get(loginKey(server))
  }

  /** The tools that the owner has read last; before anybody has, those of another time, as they were approved. */
  tools(server: Server): readonly McpTool[] | undefined {
    const key = this.#stateKey(server)
    const known = this.#tools.get(key)
    if (known) return known
    const pins = this.#pins(server)
    const listed = this.#catalogues.get(key)?.tools ?? Object.values(pins)
    if (listed.length === 0 && !this.#catalogues.has(key)) return undefined
    const tools = standings(listed, pins, server.entry)
    this.#tools.set(key, tools)
    return tools
  }

  catalogue(server: Server): CatalogueNote | undefined {
    return this.#catalogues.get(this.#stateKey(server))
  }

  /** Pins those tools that nobody has seen before. */
  async pinFirstSights(server: Server, tools: readonly ListedTool[], use: Use): Promise<void> {
    const note = await changePins(this.#parts.store, server, pins => withFirstSights(pins, tools), use)
    await this.#take(pinsKey(server), note, use)
  }

  /** Takes what this worker has just put. */
  async noted(key: string, note: Note, use: Use): Promise<void> {
    await this.#take(key, note, use)
  }

  /** The owner, this worker, has read these tools: they count here at once, elsewhere when it has told of them. */
  listed(server: Server, catalogue: CatalogueNote, self: string): void {
    const key = this.#stateKey(server)
    this.#catalogues.set(key, catalogue)
    this.#untold.set(key, self)
    this.#tools.delete(key)
  }

  /** Tells how a server stands, with the proof that this worker owns it, and with its catalogue. Throws STORE_FENCED, STORE_CONFLICT. */
  async tell(server: Server, state: StateNote, fence: Fence | undefined, use: Use): Promise<void> {
    const { store, shared } = this.#parts
    const key = this.#stateKey(server)
    const before = this.#notes.get(key)?.version ?? 0
    const value = asJson(state)
    if (!shared) return this.#take(key, { version: before + 1, value }, use)
    const catalogue = this.#catalogues.get(key)
    const isNew = catalogue !== undefined && state.catalogue === catalogue.hash && this.#toldHash.get(key) !== catalogue.hash
    const put = { op: 'put' as const, collection: NOTES, key, value, ...(fence ? {} : { ifVersion: before }) }
    const ops = isNew ? [{ op: 'put' as const, collection: CATALOGUES, key, value: asJson(catalogue) }, put] : [put]
    const { results } = await store.batch(ops, fence ? { fence } : {}, use)
    if (isNew) this.#toldHash.set(key, catalogue.hash)
    if (state.catalogue === this.#catalogues.get(key)?.hash) this.#untold.delete(key)
    await this.#take(key, { version: results.at(-1) ?? before + 1, value }, use)
  }

  #placesOf(server: Server): [string, Place][] {
    return [
      [switchKey(server), { server, what: 'switch' }],
      [pinsKey(server), { server, what: 'pins' }],
      [loginKey(server), { server, what: 'login' }],
      [this.#stateKey(server), { server, what: 'state' }],
    ]
  }

  /** Made once: each call asks for it. */
  #stateKey(server: Server): string {
    const key = this.#stateKeys.get(server) ?? stateKey(this.#parts.serverId, server)
    this.#stateKeys.set(server, key)
    return key
  }

  #value<T>(key: string): T | undefined {
    return this.#notes.get(key)?.value as T | undefined
  }

  #pins(server: Server): Pins {
    return this.#value<PinsNote>(pinsKey(server))?.tools ?? {}
  }

  async #read(use: Use): Promise<void> {
    for (const key of this.#places.keys()) {
      const note = await readNote(this.#parts.store, key, use)
      if (note.version > 0 || this.#notes.has(key)) await this.#take(key, note, use)
    }
  }

  /** Version 0 is a deletion: what comes after it counts from 1 again. */
  async #take(key: string, note: Note, use: Use): Promise<void> {
    const place = this.#places.get(key)
    const before = this.#notes.get(key)?.version ?? 0
    if (!place || (note.version !== 0 && note.version <= before)) return
    if (place.what === 'state') await this.#catch(key, note.value as unknown as StateNote | undefined, use)
    if ((this.#notes.get(key)?.version ?? 0) > before) return
    this.#notes.set(key, note)
    if (place.what === 'pins' || place.what === 'state') this.#tools.delete(this.#stateKey(place.server))
    this.#parts.changed(place.server, place.what)
  }

  /** Reads the catalogue that a state speaks of, where it is another than the one at hand, and no newer one is still to be told. */
  async #catch(key: string, state: StateNote | undefined, use: Use): Promise<void> {
    const isOlder = () => this.#untold.has(key) && state?.worker === this.#untold.get(key)
    if (!state?.catalogue || this.#catalogues.get(key)?.hash === state.catalogue || isOlder()) return
    const catalogue = await readCatalogue(this.#parts.store, key, use)
    // it may have been listed meanwhile
    if (!catalogue || isOlder()) return
    this.#untold.delete(key)
    this.#catalogues.set(key, catalogue)
    this.#toldHash.set(key, catalogue.hash)
  }
}

const KEPT_MS = 30 * 24 * 3600 * 1000

/** How servers stood that ended long ago. */
async function forgetOld(store: Store, use: Use): Promise<void> {
  const { records } = await store.range(NOTES, { index: 'by_seen', from: 1, to: Date.now() - KEPT_MS, limit: 1000 }, use)
  const ops = records.flatMap(({ key }) => [NOTES, CATALOGUES].map(collection => ({ op: 'delete' as const, collection, key })))
  if (ops.length > 0) await store.batch(ops, {}, use)
}
