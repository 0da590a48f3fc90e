import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemContext, type CallContext } from '@svc/core'
import type { Space } from '@svc/core/contracts'
import { createSqliteStore, type SqliteStore } from '../src/store.ts'

/** What a store on a healthy file answers to a probe. */
export const PROBED = { kind: 'sqlite', durable: true, scope: 'machine', role: 'primary', clockOffsetMs: 0 } as const

/** A folder that is gone after the test. */
export async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'svc-store-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** A store on a file of its own, and as many handles on it as are asked for. */
export async function openStore() {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'svc.db')
  const handles: SqliteStore[] = []
  const another = () => {
    const store = createSqliteStore({ path })
    handles.push(store)
    return store
  }
  const close = () => Promise.all(handles.splice(0).map(store => store[Symbol.asyncDispose]()))
  const store = another()
  return {
    store,
    counts: store,
    second: async () => another(),
    async reopen() {
      await close()
      return another()
    },
    async [Symbol.asyncDispose]() {
      await close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** A `use` that ends with the test process. */
export const ctx: CallContext = systemContext(new AbortController().signal)

/** A space that the tests of this plugin write to. */
export const SPACE = {
  name: 'sqlite_tests',
  version: 1,
  collections: { notes: { indexes: { by_n: ['n'] }, watched: true } },
  logs: ['lines'],
} satisfies Space
