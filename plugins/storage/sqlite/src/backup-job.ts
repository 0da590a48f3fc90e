import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type CallContext, codeOf, svcHome } from '@svc/core'
import type { JobKind, JobStep } from '@svc/core/contracts'
import type { Backup } from './backup.ts'
import { backupsFull, backupUnmade } from './errors.ts'
import { partialOf } from './file.ts'

/** The job kind that backs up the store. */
export const BACKUP_KIND = 'store.backup'

/** Where backups are made: no request chooses a path. */
export const backupsFolder = (): string => join(svcHome(), 'backups')

/** Backups that svc makes on request of a client. More would fill the disk; svc deletes none. */
const MOST_BACKUPS = 20
const LOOK_MS = 500
const LIMIT_MS = 6 * 3_600_000

/** What the thread answers. Its errors do not contain paths. */
export type BackupAnswer =
  | { readonly made: Backup }
  | { readonly failed: { readonly code: string | undefined; readonly message: string } }

// Works from the source (.ts) and from the built package (.js).
const THREAD = new URL(`./backup-thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

/** The job kind: only administrators can add its jobs, and no input chooses a path. */
export const createBackupKind = (store: string): JobKind => ({
  description: 'Backs up the store into the folder backups of the svc home',
  input: { type: 'null' },
  concurrency: 1,
  attempts: 1,
  timeoutMs: LIMIT_MS,
  run: (_task, ctx) => backUp(store, ctx),
})

async function* backUp(store: string, ctx: CallContext): AsyncGenerator<JobStep> {
  const folder = backupsFolder()
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const present = readdirSync(folder).filter(name => name.endsWith('.db')).length
  if (present >= MOST_BACKUPS) throw backupsFull(MOST_BACKUPS)
  const name = `${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db`
  const file = join(folder, name)
  const total = statSync(store).size
  const state: { answer?: BackupAnswer } = {}
  const ended = inThread(store, file, ctx.signal).then(answer => (state.answer = answer))
  ended.catch(() => {})
  yield { type: 'log', level: 'info', message: `copying ${total} bytes to ${name}` }
  // the copy is at most as large as the store, then it is checked
  for (let last = -1; state.answer === undefined; await Promise.race([ended, sleep(LOOK_MS, undefined, { ref: false })])) {
    const progress = Math.min(statSync(partialOf(file), { throwIfNoEntry: false })?.size ?? 0, total)
    if (progress > last) yield { type: 'progress', progress, total, message: progress < total ? 'copying' : 'checking' }
    last = progress
  }
  const { answer } = state
  if ('failed' in answer) throw backupUnmade(answer.failed)
  const { bytes, findings } = answer.made
  const { records, entries, spaces } = findings
  yield { type: 'progress', progress: total, total, message: 'done' }
  yield { type: 'log', level: 'info', message: `checked ${name}: ${bytes} bytes, ${records} records, ${entries} entries` }
  yield { type: 'result', value: { name, bytes, records, entries, spaces: spaces.length } }
}

/** Copies in a thread of its own: SQLite copies synchronously, and a large store takes minutes. */
async function inThread(store: string, file: string, signal: AbortSignal): Promise<BackupAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<BackupAnswer>()
  const worker = new Worker(THREAD, { workerData: { store, file }, name: 'svc-store-backup' })
  const abort = () => worker.postMessage('abort')
  signal.addEventListener('abort', abort, { once: true })
  worker.once('message', resolve).once('error', reject)
  worker.once('exit', code => reject(new Error(`the backup ended with ${code}`)))
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', abort)
    void worker.terminate()
  }
}

/** The answer for an error of the thread. */
export const failedAnswer = (error: unknown, message: string): BackupAnswer => ({ failed: { code: codeOf(error), message } })
