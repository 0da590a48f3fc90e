import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { codeOf, messageOf } from '@svc/core'
import { overrun, sandboxClosed, threadLost, threadMemory } from './errors.ts'
import type { AskName, FromThread, Job, Outcome, ThreadData, ToThread } from './messages.ts'

/** Does what a guest asks for; answers JSON, throws in words for the guest. */
export type Servant = (name: AskName, json: string, signal: AbortSignal) => Promise<string>

const FILE = new URL(`./thread/worker${extname(import.meta.url)}`, import.meta.url)
/** The most milliseconds from the start of a thread to its first job. */
const START_MS = 30_000
/** Milliseconds that it may take to notice that its time is over: what the engine does in one step cannot be interrupted. */
const GRACE_MS = 500
/** The guest's memory is not in V8's heap, where there is only what goes in and out: a rail. With a small one V8 collects at each new engine. */
const HEAP_MB = 1024
/** The engine's stack is checked by the engine; it needs about 3 MB of V8's. */
const STACK_MB = 8
const OUT_OF_MEMORY = 'ERR_WORKER_OUT_OF_MEMORY'

interface Running {
  readonly servant: Servant
  /** Ends what the guest asked for, once it has. */
  asks?: AbortController
  readonly end: PromiseWithResolvers<Outcome>
}

/** A thread that runs one job at a time, and holds no process open while it has none. */
export class GuestThread {
  /** Whether it can be given a job. */
  alive = true
  /** For whom it keeps an engine. */
  tenants: readonly string[] = []
  readonly #worker: Worker
  readonly #ready = Promise.withResolvers<void>()
  #started = false
  #running: Running | undefined

  constructor(data: ThreadData) {
    const limits = { maxOldGenerationSizeMb: HEAP_MB, stackSizeMb: STACK_MB }
    this.#worker = new Worker(FILE, { workerData: data, env: {}, name: 'svc-quickjs', resourceLimits: limits })
    this.#ready.promise.catch(() => {})
    this.#worker.on('message', (message: FromThread) => this.#hear(message))
    this.#worker.on('error', error => this.#lost(codeOf(error) === OUT_OF_MEMORY ? threadMemory() : threadLost(messageOf(error))))
    this.#worker.on('exit', code => this.#lost(threadLost(`code ${code}`)))
    this.#worker.unref()
  }

  /** Runs a job. The thread ends where the job goes on after its time, and when the signal aborts. */
  async run(job: Job, servant: Servant, signal: AbortSignal): Promise<Outcome> {
    const running: Running = { servant, end: Promise.withResolvers() }
    running.end.promise.catch(() => {})
    const onAbort = () => void this.end(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#running = running
    this.#worker.ref()
    try {
      if (!this.#started) await this.#within(START_MS, threadLost('it did not start'), this.#ready.promise)
      this.#worker.postMessage({ job } satisfies ToThread)
      return await this.#within(job.timeoutMs + GRACE_MS, overrun(job.timeoutMs), running.end.promise)
    } finally {
      signal.removeEventListener('abort', onAbort)
      running.asks?.abort(sandboxClosed())
      this.#running = undefined
      this.#worker.unref()
    }
  }

  /** Ends it, whatever it does; what it was doing fails with `reason`. */
  async end(reason: Error = sandboxClosed()): Promise<void> {
    this.#lost(reason)
    await this.#worker.terminate()
  }

  #lost(reason: Error): void {
    this.alive = false
    this.#ready.reject(reason)
    this.#running?.end.reject(reason)
  }

  async #within<T>(ms: number, reason: Error, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => void this.end(reason), ms)
    return work.finally(() => clearTimeout(timer))
  }

  #hear(message: FromThread): void {
    if ('ready' in message) {
      this.#started = true
      return this.#ready.resolve()
    }
    if ('ask' in message) return void this.#answer(message)
    this.tenants = message.tenants
    this.#running?.end.resolve(message.done)
  }

  /** Answers the guest; what comes after its end goes nowhere. */
  async #answer({ ask, name, json }: Extract<FromThread, { readonly ask: number }>): Promise<void> {
    if (!this.#running) return
    const { servant } = this.#running
    const asks = (this.#running.asks ??= new AbortController())
    const said = await servant(name, json, asks.signal).then(
      answered => ({ json: answered }),
      (error: unknown) => ({ error: messageOf(error) })
    )
    if (!asks.signal.aborted) this.#worker.postMessage({ answer: ask, ...said } satisfies ToThread)
  }
}
