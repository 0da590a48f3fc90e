import { extname } from 'node:path'
import { createSemaphore, workClosed } from '@svc/plugin-kit'
import type { Functions } from './messages.ts'
import { startWorker, type ChildWorker } from './worker.ts'

/** The caller of a task: a `CallContext` is one. Callers without a principal count as one. */
interface Caller {
  readonly signal: AbortSignal
  readonly principal?: { readonly id: string }
}

/** The limits of the work. */
export interface WorkOptions {
  /** The entry file of a worker process. It calls `serveWork` of `@svc/worker-pool/child`. See `workFile`. */
  readonly file: URL
  /** Maximum worker processes; default 2. They start on demand. */
  readonly workers?: number
  /** Megabytes of JavaScript heap of each worker; default 128. Buffers do not count: limit the input. */
  readonly memoryMb?: number
  /** Maximum milliseconds of a task, from its start; default 2000. */
  readonly timeMs?: number
  /** Maximum waiting tasks; default 256. */
  readonly waiting?: number
  /** Maximum waiting tasks of one principal; default 64. Principals take turns. */
  readonly waitingEach?: number
  /** Maximum milliseconds that a task waits; default 30,000. */
  readonly waitMs?: number
  /** Milliseconds for which one idle worker is kept; default 10,000. */
  readonly idleMs?: number
}

type InputOf<F> = F extends (input: infer I) => unknown ? I : never
type OutputOf<F> = F extends (...args: never[]) => infer O ? Awaited<O> : never

/** Runs tasks that might never end, in processes that are killed when a task exceeds its limits. */
export interface BoundedWork<F extends Functions> extends AsyncDisposable {
  /**
   * Runs a task. Its process is killed when the task exceeds its time or memory, and when the signal aborts. Throws the task's own refusals, WORK_TIMEOUT,
   * WORK_MEMORY, WORK_BUSY, WORK_FAILED, WORK_CLOSED, and the reason of the signal.
   */
  run<K extends keyof F & string>(
    work: K,
    input: InputOf<F[K]>,
    ctx: Caller,
    limits?: { readonly timeMs?: number }
  ): Promise<OutputOf<F[K]>>
  /** Kills all processes and waits for their exit. */
  close(): Promise<void>
}

/** Finds the entry file next to its caller: `workFile('./work', import.meta.url)` is `.ts` in the source, `.js` in the build. */
export const workFile = (file: string, from: string): URL => new URL(file + extname(new URL(from).pathname), from)

const WORKERS = 2
const MEMORY_MB = 128
const TIME_MS = 2_000
const WAITING = 256
const WAITING_EACH = 64
const WAIT_MS = 30_000
const IDLE_MS = 10_000

/** Creates worker processes for tasks that might never end: `createBoundedWork<typeof work>({ file: workFile('./work', import.meta.url) })`. */
export function createBoundedWork<F extends Functions>(options: WorkOptions): BoundedWork<F> {
  const { file, memoryMb = MEMORY_MB, idleMs = IDLE_MS } = options
  const { workers: places = WORKERS, waiting = WAITING, waitingEach = WAITING_EACH, waitMs = WAIT_MS } = options
  const semaphore = createSemaphore({ places, waiting, waitingEach, waitMs })
  const all = new Set<ChildWorker>()
  let idle: { readonly worker: ChildWorker; readonly timer: NodeJS.Timeout } | undefined
  let closed = false

  function start(): ChildWorker {
    const worker = startWorker({ file, memoryMb })
    all.add(worker)
    return worker
  }
  function retire(worker: ChildWorker): void {
    if (idle?.worker === worker) idle = undefined
    void worker.end().then(() => all.delete(worker))
  }
  function take(): ChildWorker {
    if (closed) throw workClosed()
    const kept = idle
    idle = undefined
    clearTimeout(kept?.timer)
    return kept?.worker.alive ? kept.worker : start()
  }
  function leave(worker: ChildWorker): void {
    if (!worker.alive || closed || idle) retire(worker)
    else idle = { worker, timer: setTimeout(retire, idleMs, worker).unref() }
  }
  async function close(): Promise<void> {
    closed = true
    clearTimeout(idle?.timer)
    semaphore[Symbol.dispose]()
    await Promise.all([...all].map(worker => worker.end()))
  }

  return {
    async run(work, input, ctx, { timeMs = options.timeMs ?? TIME_MS } = {}) {
      using _place = await semaphore.take(ctx.principal?.id ?? '', ctx.signal)
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
