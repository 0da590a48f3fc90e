import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { createFairSemaphore } from '@svc/worker-pool'
import type { CallContext } from '@svc/core'
import { sandboxClosed } from './errors.ts'
import { GuestThread, type RequestHandler } from './guest-thread.ts'
import type { Job, Outcome } from './messages.ts'

/** Threads for guests. None starts before the first run. */
export interface Pool extends AsyncDisposable {
  /** Waits for a thread and runs a job there. Throws WORK_BUSY where too many wait. */
  run(job: Job, handler: RequestHandler, ctx: CallContext): Promise<Outcome>
}

const WAITING = { waiting: 256, waitingEach: 64, waitMs: 30_000 }
/** Milliseconds for which the last idle thread is kept, and each other one. */
const IDLE_MS = 60_000
const SPARE_MS = 500

export function createPool(places: number, spareBytes: number): Pool {
  const seats = createFairSemaphore({ places, ...WAITING })
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
    const thread = idle.find(one => one.tenants.includes(tenant)) ?? idle[0]
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
      using _seat = await seats.take(ctx)
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
      seats[Symbol.dispose]()
      for (const timer of free.values()) clearTimeout(timer)
      await Promise.all([...all].map(retire))
    },
  }
}

/** Compiles the engine once for all threads, outside the event loop. */
const loadEngine = async (): Promise<WebAssembly.Module> =>
  WebAssembly.compile(await readFile(fileURLToPath(import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm'))))
