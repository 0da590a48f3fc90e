import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { type CallContext, codeOf, messageOf } from '@svc/core'
import { createSemaphore } from '@svc/plugin-kit'
import { sandboxClosed, overrun, threadLost, threadMemory } from './errors.ts'
import type { GuestTask, GuestOutcome, AskName, FromThread, ThreadData, ToThread } from './messages.ts'

/** Threads for guests. None starts before the first run. */
export interface Pool extends AsyncDisposable {
  /** Waits for a thread and runs a job there. Throws WORK_BUSY where too many wait. */
  run(job: GuestTask, handler: RequestHandler, ctx: CallContext): Promise<GuestOutcome>
}

const WAITING = { waiting: 256, waitingEach: 64, waitMs: 30_000 }
/** Milliseconds for which the last idle thread is kept, and each other one. */
const IDLE_MS = 60_000
const SPARE_MS = 500

export function createPool(places: number, spareBytes: number): Pool {
  const semaphore = createSemaphore({ places, ...WAITING })
  const all = new Set<GuestThread>()
  const free = new Map<GuestThread, NodeJS.Timeout>()
  let engine: Promise<WebAssembly.Module> | undefined
  let closed = false

  async function retire(thread: GuestThread): Promise<void> {
    free.delete(thread)
    await thread.end()
    all.delete(thread)
  }
  async function take(tenant: string): Promise<GuestThread> {
    const idle = [...free.keys()].filter(thread => thread.alive)
    const thread = idle.find(key => key.tenants.includes(tenant)) ?? idle[0]
    if (thread) {
      clearTimeout(free.get(thread))
      free.delete(thread)
      return thread
    }
    engine ??= loadEngine()
    const loaded = await engine.catch((error: unknown) => {
      engine = undefined
      throw error
    })
    if (closed) throw sandboxClosed()
    const started = new GuestThread({ engine: loaded, spareBytes })
    all.add(started)
    return started
  }
  function leave(thread: GuestThread): void {
    if (!thread.alive || closed) return void retire(thread)
    const timer = setTimeout(() => void retire(thread), free.size === 0 ? IDLE_MS : SPARE_MS)
    free.set(thread, timer.unref())
  }
  return {
    async run(job, handler, ctx) {
      using _place = await semaphore.take(ctx.principal.id, ctx.signal)
      const thread = await take(job.tenant)
      try {
        ctx.signal.throwIfAborted()
        return await thread.run(job, handler, ctx.signal)
      } finally {
        leave(thread)
      }
    },
    async [Symbol.asyncDispose]() {
      closed = true
      semaphore[Symbol.dispose]()
      for (const timer of free.values()) clearTimeout(timer)
      await Promise.all([...all].map(retire))
    },
  }
}

/** Compiles the engine once for all threads, outside the event loop. */
const loadEngine = async (): Promise<WebAssembly.Module> =>
  WebAssembly.compile(await readFile(fileURLToPath(import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm'))))

/** Handles a request of a guest. Returns JSON; the guest gets the message of an error. */
export type RequestHandler = (name: AskName, json: string, signal: AbortSignal) => Promise<string>

const FILE = new URL(`./thread/worker${extname(import.meta.url)}`, import.meta.url)
/** Maximum milliseconds from the start of a thread to its first job. */
const START_MS = 30_000
/** Milliseconds after the time limit in which the engine can stop by itself. A single step of the engine cannot be interrupted. */
const GRACE_MS = 500
/** A safeguard: V8's heap holds inputs and outputs only, and the guest's memory is outside it. With a small heap V8 would collect at each new engine. */
const HEAP_MB = 1024
/** The engine checks its own stack. It needs about 3 MB of V8's. */
const STACK_MB = 8
const OUT_OF_MEMORY = 'ERR_WORKER_OUT_OF_MEMORY'

interface Running {
  readonly handler: RequestHandler
  /** Aborts the requests of the guest; set at the first request. */
  asks?: AbortController
  readonly end: PromiseWithResolvers<GuestOutcome>
}

/** A thread that runs one job at a time. An idle thread does not keep the process alive. */
class GuestThread {
  /** Whether the thread can take a job. */
  alive = true
  /** The tenants whose engines the thread keeps. */
  tenants: readonly string[] = []
  readonly #worker: Worker
  readonly #ready = Promise.withResolvers<void>()
  #started = false
  #running: Running | undefined

  constructor(data: ThreadData) {
    const limits = { maxOldGenerationSizeMb: HEAP_MB, stackSizeMb: STACK_MB }
    this.#worker = new Worker(FILE, { workerData: data, env: {}, name: 'svc-quickjs', resourceLimits: limits })
    this.#ready.promise.catch(() => {})
    this.#worker.on('message', (message: FromThread) => this.#receive(message))
    this.#worker.on('error', error => this.#lost(codeOf(error) === OUT_OF_MEMORY ? threadMemory() : threadLost(messageOf(error))))
    this.#worker.on('exit', code => this.#lost(threadLost(`code ${code}`)))
    this.#worker.unref()
  }

  /** Runs a job. The thread ends if the job exceeds its time, and when the signal aborts. */
  async run(job: GuestTask, handler: RequestHandler, signal: AbortSignal): Promise<GuestOutcome> {
    const running: Running = { handler, end: Promise.withResolvers() }
    running.end.promise.catch(() => {})
    const onAbort = () => void this.end(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#running = running
    this.#worker.ref()
    try {
      if (!this.#started) await this.#withDeadline(START_MS, threadLost('it did not start'), this.#ready.promise)
      this.#worker.postMessage({ job } satisfies ToThread)
      return await this.#withDeadline(job.timeoutMs + GRACE_MS, overrun(job.timeoutMs), running.end.promise)
    } finally {
      signal.removeEventListener('abort', onAbort)
      running.asks?.abort(sandboxClosed())
      this.#running = undefined
      this.#worker.unref()
    }
  }

  /** Ends the thread. A running job fails with `reason`. */
  async end(reason: Error = sandboxClosed()): Promise<void> {
    this.#lost(reason)
    await this.#worker.terminate()
  }

  #lost(reason: Error): void {
    this.alive = false
    this.#ready.reject(reason)
    this.#running?.end.reject(reason)
  }

  async #withDeadline<T>(ms: number, reason: Error, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => void this.end(reason), ms)
    return work.finally(() => clearTimeout(timer))
  }

  #receive(message: FromThread): void {
    if ('ready' in message) {
      this.#started = true
      return this.#ready.resolve()
    }
    if ('ask' in message) return void this.#answer(message)
    this.tenants = message.tenants
    this.#running?.end.resolve(message.done)
  }

  /** Answers a request of the guest. An answer after the end of the job is dropped. */
  async #answer({ ask, name, json }: Extract<FromThread, { readonly ask: number }>): Promise<void> {
    if (!this.#running) return
    const { handler } = this.#running
    const asks = (this.#running.asks ??= new AbortController())
    const said = await handler(name, json, asks.signal).then(
      answered => ({ json: answered }),
      (error: unknown) => ({ error: messageOf(error) })
    )
    if (!asks.signal.aborted) this.#worker.postMessage({ answer: ask, ...said } satisfies ToThread)
  }
}
