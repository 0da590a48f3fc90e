import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
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

/** Whether this machine lets a test mount a folder, by trying it once. */
function canMount(): boolean {
  mountable ??= tryMount()
  return mountable
}
let mountable: boolean | undefined

function tryMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mount-'))
  try {
    execFileSync('mount', ['--bind', folder, folder], { stdio: 'ignore' })
    execFileSync('umount', [folder])
    return true
  } catch {
    return false
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A store on a file of its own, and as many handles on it as are asked for. */
export async function openStore() {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'svc.db')
  const handles: SqliteStore[] = []
  const another = (file = path) => {
    const store = createSqliteStore({ path: file })
    handles.push(store)
    return store
  }
  const close = () => Promise.all(handles.splice(0).map(store => store[Symbol.asyncDispose]()))
  const store = another()
  const cover = join(folder.path, 'read-only')
  const readOnly = async () => {
    await mkdir(cover)
    execFileSync('mount', ['--bind', folder.path, cover])
    execFileSync('mount', ['-o', 'remount,bind,ro', cover])
    return another(join(cover, 'svc.db'))
  }
  // the thread that writes, of the handle that wrote last
  let writer: Worker | undefined
  const onWorker = (worker: Worker) => (writer = worker)
  process.on('worker', onWorker)
  return {
    store,
    counts: store,
    async cut() {
      await writer?.terminate()
    },
    ...(canMount() ? { readOnly } : {}),
    second: async () => another(),
    async reopen() {
      await close()
      return another()
    },
    async [Symbol.asyncDispose]() {
      process.off('worker', onWorker)
      await close()
      if (existsSync(cover)) execFileSync('umount', ['--lazy', cover])
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
