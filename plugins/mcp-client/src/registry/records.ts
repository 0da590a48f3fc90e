import { codeOf, type Use } from '@svc/core'
import type { Json, McpServerInfo, Space, Store } from '@svc/core/contracts'
import type { ListedTool } from '@svc/mcp'
import type { KnownEra } from '../connection/options.ts'
import { serverUnknown, toolUnknown } from '../errors.ts'
import type { Server } from './configured-servers.ts'
import { approved, type Pins } from './pinning.ts'

/** What is told of a server to all workers, under the keys below. */
export const NOTES = 'mcp_notes'
/** The tools of a server as its owner has read them last, under the key of its state. */
export const CATALOGUES = 'mcp_catalogues'

const SPACE: Space = {
  name: 'mcp_client',
  version: 1,
  collections: { [NOTES]: { indexes: { by_seen: ['seen'] }, watched: true }, [CATALOGUES]: {} },
}

/** Switched off or on by a person, whatever the configuration says of it. */
export interface SwitchNote {
  readonly enabled: boolean
  /** Unix milliseconds: switching on what is on ends a quarantine, so it is a change. */
  readonly at: number
}

/** The tools that are approved, or were seen first, by name. */
export interface PinsNote {
  readonly tools: Pins
}

/** What of its connection its owner tells. */
export type Told = Omit<McpServerInfo, 'name' | 'url' | 'command' | 'effects' | 'callLimitMs' | 'tools' | 'changed'>

/** How a server stands, as its owner tells. */
export interface StateNote {
  /** The worker that owns it; null where nobody does. */
  readonly worker: string | null
  /** The prefix of its leases. */
  readonly holder: string
  /** The owner is about to end: whoever stays takes it over. */
  readonly leaving: boolean
  readonly told: Told
  /** Its catalogue: of what was read, by a hash of it; null where nothing was read. */
  readonly catalogue: string | null
  readonly known?: KnownEra
  /** Unix milliseconds. */
  readonly seen: number
}

export interface CatalogueNote {
  readonly hash: string
  readonly tools: readonly ListedTool[]
  /** What was left out of it, and why. */
  readonly faults: readonly string[]
}

/** What logging in has brought: secret. */
export interface LoginNote {
  readonly login: Json
  /** Unix milliseconds at which a person logged in; 0 for what came without one. */
  readonly at: number
}

export const switchKey = ({ entry }: Server) => `switch/${entry.name}`
export const pinsKey = ({ entry, identity }: Server) => `pins/${entry.name}/${identity}`
export const loginKey = ({ entry, identity }: Server) => `login/${entry.name}/${identity}`
export const stateKey = (serverId: string, { entry, fingerprint }: Server) => `state/${serverId}/${entry.name}/${fingerprint}`

export const asJson = (value: object): Json => value as unknown as Json

type Kept = Pick<Store, 'get' | 'batch'>

/** Makes the space where it is missing. */
export const openNotes = async (store: Store, use: Use): Promise<void> => {
  await store.open(SPACE, use)
}

/** A note as the store has it: version 0 where there is none. */
export interface Note {
  readonly version: number
  readonly value: Json | undefined
}

export async function readNote(store: Kept, key: string, use: Use): Promise<Note> {
  const found = await store.get(NOTES, key, use)
  return { version: found?.version ?? 0, value: found?.value }
}

/** Puts what `change` makes of a note, also against others who change it at this moment; `undefined` leaves it as it is. Answers what it is now. */
export async function changeNote(
  store: Kept,
  key: string,
  change: (value: Json | undefined, version: number) => Json | undefined,
  use: Use
): Promise<Note> {
  for (;;) {
    use.signal.throwIfAborted()
    const { version, value } = await readNote(store, key, use)
    const next = change(value, version)
    if (next === undefined) return { version, value }
    try {
      await store.batch([{ op: 'put', collection: NOTES, key, value: next, ifVersion: version }], {}, use)
      return { version: version + 1, value: next }
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
    }
  }
}

const asPins = (value: Json | undefined): Pins => (value as unknown as PinsNote | undefined)?.tools ?? {}

/** The approved tools of a server. */
export const readPins = async (store: Kept, server: Server, use: Use): Promise<Pins> =>
  asPins((await readNote(store, pinsKey(server), use)).value)

/** Changes the approved tools of a server; the same pins back leave them. */
export async function changePins(store: Kept, server: Server, change: (pins: Pins) => Pins, use: Use): Promise<Note> {
  const put = (value: Json | undefined) => {
    const before = asPins(value)
    const tools = change(before)
    return tools === before ? undefined : asJson({ tools } satisfies PinsNote)
  }
  return changeNote(store, pinsKey(server), put, use)
}

/** Pins these of the tools that were seen: by name, or all. Throws MCP_TOOL_UNKNOWN. */
export async function pinSeen(
  store: Kept,
  server: Server,
  seen: readonly ListedTool[],
  names: readonly string[] | undefined,
  use: Use
): Promise<Note> {
  const known = seen.map(tool => tool.name)
  const strange = names?.find(name => !known.includes(name))
  if (strange !== undefined) throw toolUnknown(server.entry.name, strange, known)
  const those = names === undefined ? seen : seen.filter(tool => names.includes(tool.name))
  return changePins(store, server, pins => approved(pins, those), use)
}

/** Switches a server on or off until it is switched again. */
export const putSwitch = (store: Kept, server: Server, enabled: boolean, use: Use): Promise<Note> =>
  changeNote(store, switchKey(server), () => asJson({ enabled, at: Date.now() } satisfies SwitchNote), use)

/** The tools that an owner has read last. */
export async function readCatalogue(store: Kept, key: string, use: Use): Promise<CatalogueNote | undefined> {
  const found = await store.get(CATALOGUES, key, use)
  return found?.value as unknown as CatalogueNote | undefined
}

/** The server of this name. Throws MCP_SERVER_UNKNOWN. */
export function serverNamed(servers: readonly Server[], name: string): Server {
  const found = servers.find(one => one.entry.name === name)
  if (!found)
    throw serverUnknown(
      name,
      servers.map(one => one.entry.name)
    )
  return found
}
