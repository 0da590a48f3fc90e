import type { CallContext } from '@svc/core'
import type { Json, McpServerInfo, Space, Store } from '@svc/core/contracts'
import type { Pins, ToolList } from '@svc/mcp-protocol'
import { changeRecord, readRecord, type RecordStore, type StoredRecord } from '@svc/storage-kit/records'
import type { KnownEra, TokenStorage } from '../connection/client-types.ts'
import type { McpServerSettings } from './configured-servers.ts'

/** The collection of all records of a server, under the keys below. The name is part of the stored data. */
export const RECORDS = 'mcp_notes'
/** The last list of a server's tools, under the key of its state. */
export const CATALOGUES = 'mcp_catalogues'

const SPACE: Space = {
  name: 'mcp_client',
  version: 1,
  collections: { [RECORDS]: { indexes: { by_seen: ['seen'] }, watched: true }, [CATALOGUES]: {} },
}

/** A user has enabled or disabled the server; overrides the configuration. */
export interface SwitchRecord {
  readonly enabled: boolean
  /** Unix milliseconds: enabling an enabled server ends a quarantine, so each record must differ. */
  readonly at: number
}

/** The tools as they were approved or first seen, by name. */
export interface PinsRecord {
  readonly tools: Pins
}

/** The status of a connection, as its owner reports it. */
export type ReportedStatus = Omit<McpServerInfo, 'name' | 'url' | 'command' | 'effects' | 'callLimitMs' | 'tools' | 'changed'>

/** The state of a server, as its owner reports it. */
export interface StateRecord {
  /** The owner, null if there is none. */
  readonly worker: string | null
  /** The prefix of the owner's leases. */
  readonly holder: string
  /** The owner is about to end: another worker can take over. */
  readonly leaving: boolean
  readonly status: ReportedStatus
  /** The hash of the last list of tools, null if there is none. */
  readonly catalogue: string | null
  readonly known?: KnownEra
  /** Unix milliseconds. */
  readonly seen: number
}

/** A list of tools, with its hash. */
export interface CatalogueRecord extends ToolList {
  readonly hash: string
}

/** The result of a login: secret. */
export interface LoginRecord {
  readonly login: Json
  /** Unix milliseconds of a login by a user; 0 for tokens that came without one. */
  readonly at: number
}

/** The kinds of records of a server, with their keys. A state belongs to one server of svc; all others are shared. */
export const KEYS = {
  switch: ({ entry }: McpServerSettings) => `switch/${entry.name}`,
  pins: ({ entry, identity }: McpServerSettings) => `pins/${entry.name}/${identity}`,
  login: ({ entry, identity }: McpServerSettings) => `login/${entry.name}/${identity}`,
  state: ({ entry, fingerprint }: McpServerSettings, serverId: string) => `state/${serverId}/${entry.name}/${fingerprint}`,
}
export type RecordKind = keyof typeof KEYS

export const asJson = (value: object): Json => value as unknown as Json

/** Creates the collections if they are missing. */
export const openRecords = async (store: Store, ctx: CallContext): Promise<void> => {
  await store.open(SPACE, ctx)
}

/** The last list of tools of an owner. */
export const readCatalogue = async (store: RecordStore, key: string, ctx: CallContext): Promise<CatalogueRecord | undefined> =>
  (await readRecord(store, CATALOGUES, key, ctx)).value as unknown as CatalogueRecord | undefined

const asLogin = (value: Json | undefined) => value as unknown as LoginRecord | undefined
const loginRecord = (login: Json | undefined, at: number) => asJson({ login: login ?? null, at } satisfies LoginRecord)

/** Stores the login of a server; calls `saved` with each record. Does not overwrite a record that another process has written since the last load. */
export function loginStorage(
  store: RecordStore,
  server: McpServerSettings,
  lasting: CallContext,
  saved?: (record: StoredRecord) => void
): TokenStorage {
  const place = { collection: RECORDS, key: KEYS.login(server) }
  let known = 0
  return {
    async load() {
      const { version, value } = await readRecord(store, RECORDS, place.key, lasting)
      known = version
      return asLogin(value)?.login ?? undefined
    },
    async save(login) {
      const put = ({ value, version }: StoredRecord) =>
        version === known ? loginRecord(login, asLogin(value)?.at ?? 0) : undefined
      const record = await changeRecord(store, place, put, lasting)
      if (record.version === known + 1) known = record.version
      saved?.(record)
    },
  }
}

/** The storage for a login by a user: overwrites any other. `done` makes the owner of the server connect again. */
export function personStorage(
  store: RecordStore,
  server: McpServerSettings,
  ctx: CallContext
): TokenStorage & { done(): Promise<void> } {
  const place = { collection: RECORDS, key: KEYS.login(server) }
  let latest: Json | undefined
  const put = (at?: number) => changeRecord(store, place, ({ value }) => loginRecord(latest, at ?? asLogin(value)?.at ?? 0), ctx)
  return {
    // the earlier login did not work
    load: async () => latest,
    async save(login) {
      latest = login
      await put()
    },
    async done() {
      await put(Date.now())
    },
  }
}
