import { Worker } from 'node:worker_threads'

/** The result of a check of a file. */
export interface Findings {
  /** The problem; absent if it is an intact store of svc in a known format. */
  readonly problem?: { readonly code: string; readonly reason: string }
  readonly spaces: readonly { readonly name: string; readonly version: number }[]
  readonly records: number
  readonly entries: number
}

// Works from the source (.ts) and from the built package (.js).
const INSPECTOR = new URL(`./inspector${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

/** Checks a whole store file in a separate thread: its pages, and whether every value is readable. */
export function inspect(path: string, signal?: AbortSignal): Promise<Findings> {
  const { promise, resolve, reject } = Promise.withResolvers<Findings>()
  const worker = new Worker(INSPECTOR, { workerData: path, name: 'svc-store-inspect' })
  const abort = () => {
    void worker.terminate()
    reject(signal?.reason)
  }
  signal?.addEventListener('abort', abort, { once: true })
  worker.once('message', resolve).once('error', reject)
  worker.once('exit', code => {
    signal?.removeEventListener('abort', abort)
    reject(new Error(`the inspection ended with ${code}`))
  })
  return promise
}
