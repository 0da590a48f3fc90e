import type { CallContext } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import type { TokenStorage } from '../connection/options.ts'
import type { Server } from './configured-servers.ts'
import { asJson, changeRecord, loginKey, type LoginRecord, readRecord, type RecordStore, type StoredRecord } from './records.ts'

const asLogin = (value: Json | undefined) => value as unknown as LoginRecord | undefined
const loginRecord = (login: Json | undefined, at: number) => asJson({ login: login ?? null, at } satisfies LoginRecord)

/** Stores the login of a server; calls `saved` with each record. Does not overwrite a record that another process has written since the last load. */
export function loginStorage(
  store: RecordStore,
  server: Server,
  lasting: CallContext,
  saved?: (record: StoredRecord) => void
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
        version === known ? loginRecord(login, asLogin(before)?.at ?? 0) : undefined
      const record = await changeRecord(store, key, put, lasting)
      if (record.version === known + 1) known = record.version
      saved?.(record)
    },
  }
}

/** The storage for a login by a person: overwrites any other. `done` makes the owner of the server connect anew. */
export function personStorage(store: RecordStore, server: Server, ctx: CallContext): TokenStorage & { done(): Promise<void> } {
  const key = loginKey(server)
  let latest: Json | undefined
  const put = (at?: number) => changeRecord(store, key, before => loginRecord(latest, at ?? asLogin(before)?.at ?? 0), ctx)
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
