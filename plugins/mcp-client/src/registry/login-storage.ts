import type { Use } from '@svc/core'
import type { Json, Store } from '@svc/core/contracts'
import type { TokenStorage } from '../connection/options.ts'
import type { Server } from './configured-servers.ts'
import { asJson, changeRecord, loginKey, type LoginRecord, type StoredRecord, readRecord } from './records.ts'

type RecordStore = Pick<Store, 'get' | 'batch'>

const asLogin = (value: Json | undefined) => value as unknown as LoginRecord | undefined
const noteOf = (login: Json | undefined, at: number) => asJson({ login: login ?? null, at } satisfies LoginRecord)

/**
 * Keeps in the store what logging in to a server has brought; `saved` hears of each note. What another process has put since it was loaded is newer than what
 * this one knows: it stays.
 */
export function loginStorage(
  store: RecordStore,
  server: Server,
  lasting: Use,
  saved?: (note: StoredRecord) => void
): TokenStorage {
  const key = loginKey(server)
  let known = 0
  return {
    async load() {
      const { version, value } = await readRecord(store, key, lasting)
      known = version
      return asLogin(value)?.login ?? undefined
    },
    async save(login) {
      const put = (before: Json | undefined, version: number) =>
        version === known ? noteOf(login, asLogin(before)?.at ?? 0) : undefined
      const note = await changeRecord(store, key, put, lasting)
      if (note.version === known + 1) known = note.version
      saved?.(note)
    },
  }
}

/** The storage of a person who logs in, which wins over all others. `done`: from now on whoever connects to the server does it anew. */
export function personStorage(store: RecordStore, server: Server, use: Use): TokenStorage & { done(): Promise<void> } {
  const key = loginKey(server)
  let latest: Json | undefined
  const put = (at?: number) => changeRecord(store, key, before => noteOf(latest, at ?? asLogin(before)?.at ?? 0), use)
  return {
    // what was before is what did not work
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
