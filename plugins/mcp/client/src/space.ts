import type { Json, McpServerInfo, Space } from '@svc/core/contracts'
import type { KnownEra } from '@svc/mcp-client'
import type { ListedTool } from '@svc/mcp-protocol'
import type { Server } from './servers.ts'

/** What is told of a server to all workers, under the keys below. */
export const NOTES = 'mcp_notes'
/** The tools of a server as its owner has read them last, under the key of its state. */
export const CATALOGUES = 'mcp_catalogues'

export const SPACE: Space = {
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
  readonly tools: { readonly [name: string]: ListedTool }
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
