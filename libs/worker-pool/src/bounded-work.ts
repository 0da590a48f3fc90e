import { extname } from 'node:path'
import type { Functions } from './messages.ts'
import { type Asker, createFairSemaphore } from './fair-semaphore.ts'
import { workClosed } from './errors.ts'
import { startWorker, type Worker } from './worker.ts'

/** What bounds the work together. */
export interface WorkOptions {
  /** The file a worker process is started with; it calls `serveWork` of `@svc/worker-pool/child`. See `workFile`. */
  readonly file: URL
  /** How many work at once; default 2. None is there before it is needed. */
  readonly workers?: number
  /** Megabytes of JavaScript heap that each may have; default 128. Buffers do not count: bound what goes in. */
  readonly memoryMb?: number
  /** Milliseconds that one piece of work may take, counted from its beginning; default 2000. */
  readonly timeMs?: number
  /** How many pieces of work may wait for their turn; default 256. */
  readonly waiting?: number
  /** How many of them may be one principal's; default 64. Principals take turns. */
  readonly waitingEach?: number
  /** Milliseconds that one may wait for its turn; default 30,000. */
  readonly waitMs?: number
  /** Milliseconds for which one worker is kept for what may come next; default 10,000. */
  readonly idleMs?: number
}

type InputOf<F> = F extends (input: infer I) => unknown ? I : never
type OutputOf<F> = F extends (...args: never[]) => infer O ? Awaited<O> : never

/** Does work that may have no end, in processes that are stopped when it goes too far. */
export interface BoundedWork<F extends Functions> extends AsyncDisposable {
  /**
   * Does one piece of work. Its process is killed when the time is over, when it needs too much memory and when the signal aborts. Throws what the work
   * refused, WORK_TIMEOUT, WORK_MEMORY, WORK_BUSY, WORK_FAILED, WORK_CLOSED, and what the signal aborted with.
   */
  run<K extends keyof F & string>(
    work: K,
    input: InputOf<F[K]>,
    ctx: Asker,
    limits?: { readonly timeMs?: number }
  ): Promise<OutputOf<F[K]>>
  /** Stops everything, and waits until the processes are gone. */
  close(): Promise<void>
}

/** The file of the work beside the file that asks: `workFile('./work', import.meta.url)` is `.ts` in the source, `.js` in the build. */
export const workFile = (file: string, from: string): URL => new URL(file + extname(new URL(from).pathname), from)

const WORKERS = 2
const MEMORY_MB = 128
const TIME_MS = 2_000
const WAITING = 256
const WAITING_EACH = 64
const WAIT_MS = 30_000
const IDLE_MS = 10_000

/** Makes a place for work that may have no end: `createBoundedWork<typeof work>({ file: workFile('./work', import.meta.url) })`. */
export function createBoundedWork<F extends Functions>(options: WorkOptions): BoundedWork<F> {
  const { file, memoryMb = MEMORY_MB, idleMs = IDLE_MS } = options
  const { workers: places = WORKERS, waiting = WAITING, waitingEach = WAITING_EACH, waitMs = WAIT_MS } = options
  const seats = createFairSemaphore({ places, waiting, waitingEach, waitMs })
  const all = new Set<Worker>()
  let idle: { readonly worker: Worker; readonly timer: NodeJS.Timeout } | undefined
  let closed = false

  function start(): Worker {
    const worker = startWorker({ file, memoryMb })
    all.add(worker)
    return worker
  }
  function retire(worker: Worker): void {
    if (idle?.worker === worker) idle = undefined
    void worker.end().then(() => all.delete(worker))
  }
  function take(): Worker {
    if (closed) throw workClosed()
    const kept = idle
    idle = undefined
    clearTimeout(kept?.timer)
    return kept?.worker.alive ? kept.worker : start()
  }
  function leave(worker: Worker): void {
    if (!worker.alive || closed || idle) retire(worker)
    else idle = { worker, timer: setTimeout(retire, idleMs, worker).unref() }
  }
  async function close(): Promise<void> {
    closed = true
    clearTimeout(idle?.timer)
    seats[Symbol.dispose]()
    await Promise.all([...all].map(worker => worker.end()))
  }

  return {
    async run(work, input, ctx, { timeMs = options.timeMs ?? TIME_MS } = {}) {
      using _seat = await seats.take(ctx)
      const worker = take()
      try {
        return (await worker.run({ name: work, input }, { timeMs, signal: ctx.signal })) as never
      } finally {
        leave(worker)
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
