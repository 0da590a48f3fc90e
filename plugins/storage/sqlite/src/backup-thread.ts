import { basename } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '@svc/core'
import { makeBackup } from './backup.ts'
import { failedAnswer } from './backup-job.ts'

// The thread that backs up a store for a job.

const { store, file } = workerData as { readonly store: string; readonly file: string }
const ending = new AbortController()
const port = parentPort!
port.on('message', () => ending.abort())

try {
  port.postMessage({ made: await makeBackup(store, file, { force: false, signal: ending.signal }) })
} catch (error) {
  port.postMessage(failedAnswer(error, messageOf(error).replaceAll(file, basename(file)).replaceAll(store, basename(store))))
}
