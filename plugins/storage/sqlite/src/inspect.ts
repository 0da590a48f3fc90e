import { Worker } from 'node:worker_threads'

/** What was found in a file. */
export interface Findings {
  /** What is wrong with it; absent when it is a store of svc's, whole, and of a format that is known. */
  readonly fault?: { readonly code: string; readonly reason: string }
  readonly spaces: readonly { readonly name: string; readonly version: number }[]
  readonly records: number
  readonly entries: number
}

// Works from the source (.ts) and from the built package (.js).
const INSPECTOR = new URL(`./inspector${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

/** Looks a whole store file through, in a thread of its own: its pages, and whether every value in it can be read. */
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
