import { Worker } from 'node:worker_threads'
import type { Space } from '@svc/core/contracts'
import { storeClosed } from '@svc/storage-kit'
import { answerLost, refusedError, tooManyWrites, writerGone } from './errors.ts'
import {
  type WriterAnswer,
  type WriterReply,
  commitOf,
  eachAnswer,
  type FromWriter,
  isRefused,
  type WriterTask,
  type NumberedTask,
  pack,
  type ToWriter,
  type Word,
  type WriterData,
} from './wire.ts'

/** The connection of the event loop to the writer's thread. */
export interface Link {
  /** Sends a job. Jobs of one turn of the event loop travel together. */
  send(job: WriterTask, signal?: AbortSignal): Promise<WriterAnswer>
  /** Whether its thread has started: soon after the server, or with the first write. */
  isRunning(): boolean
  /** Checkpoints the log of a file of counts on the writer's thread, because that waits for the disk. */
  settle(file: string): void
  /** Declares a space to the present writer and to all later ones. */
  remember(space: Space): void
  /** Settles all jobs, calls `then`, closes the file and ends the thread. */
  close(then: () => void): Promise<void>
}
export interface LinkOptions extends Omit<WriterData, 'spaces'> {
  /** The writer opened the file again: it may be another one. */
  reopened(): void
  /** A watched collection may have changed. */
  watched(): void
  /** Receives the error of a job, and returns it. */
  readonly failed: <T>(error: T) => T
}

const MAX_PENDING = 50_000
/** A starting server does not need the thread yet, but the first write must not wait for it. */
const WARM_MS = 500
// Works from the source (.ts) and from the built package (.js).
const WRITER = new URL(`./writer${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

/** Starts the writer's thread with the first write or soon after the start; restarts it after its death. */
export function createLink(options: LinkOptions): Link {
  const { path, busyMs } = options
  const spaces = new Map<string, Space>()
  const pending = createPending(() => worker?.unref())
  const outbox: NumberedTask[] = []
  let worker: Worker | undefined
  let seen = 0
  let { mayMake } = options
  let closing = false

  // Its thread keeps the process alive only while a job waits.
  const rest = (writer = worker) => pending.size === 0 && writer?.unref()
  const receive = (words: FromWriter) => {
    const { watched, generation } = commitOf(words)
    if (generation > seen && seen > 0) options.reopened()
    seen = Math.max(seen, generation)
    mayMake &&= seen === 0
    if (watched) options.watched()
    eachAnswer(words, (id, answer) => pending.settle(id, s => answerTo(s, answer, options)))
    // after everything that follows from these answers, and before the next ones
    queueMicrotask(() => process.nextTick(flush))
  }
  const lost = (dead: Worker, cause: unknown) => {
    if (worker !== dead) return
    ;[worker, seen] = [undefined, 0]
    // jobs that were not sent yet wait for the next thread; of the others, batches may have been committed
    pending.failSent(isBatch => (isBatch ? answerLost(cause) : writerGone(cause)))
  }
  const running = () => (worker ??= startWriter({ path, busyMs, mayMake, spaces: [...spaces.values()] }, receive, lost))
  const flush = () => {
    const words = packed(outbox.splice(0), pending)
    if (words.length === 0) return
    running().ref()
    running().postMessage(words satisfies ToWriter)
  }
  const warm = setTimeout(() => rest(running()), WARM_MS).unref()
  const send: Link['send'] = async (job, signal) => {
    signal?.throwIfAborted()
    if (closing) throw storeClosed()
    if (pending.size >= MAX_PENDING) throw tooManyWrites()
    const { id, promise } = pending.add(job[0] === 'batch', signal)
    if (outbox.push([id, job]) === 1) setImmediate(flush)
    return promise
  }
  return {
    send,
    isRunning: () => worker !== undefined,
    settle(file) {
      if (!closing) running().postMessage({ settle: file } satisfies ToWriter)
      rest()
    },
    remember(space) {
      spaces.set(space.name, space)
      // If that fails, the next write fails for the same reason.
      if (worker) send(['open', JSON.stringify(space)]).catch(() => {})
    },
    async close(then) {
      closing = true
      clearTimeout(warm)
      await pending.allSettled()
      then()
      await endOf(worker)
    },
  }
}

/** Packs jobs that are sent now. Skips those whose callers have given up. */
function packed(jobs: readonly NumberedTask[], pending: Pending): Word[] {
  const words: Word[] = []
  for (const [id, job] of jobs) if (pending.sent(id)) pack(words, id, job)
  return words
}

const answerTo = (
  { resolve, reject }: PromiseWithResolvers<WriterAnswer>,
  answer: WriterReply,
  { path, failed }: LinkOptions
): void => (isRefused(answer) ? reject(failed(refusedError(answer, path))) : resolve(answer))

function startWriter(
  data: WriterData,
  receive: (message: FromWriter) => void,
  lost: (worker: Worker, cause: unknown) => void
): Worker {
  const worker = new Worker(WRITER, { workerData: data, name: 'svc-store' })
  worker.on('message', receive)
  worker.on('error', error => lost(worker, error))
  worker.on('exit', code => lost(worker, new Error(`it exited with ${code}`)))
  return worker
}

async function endOf(worker: Worker | undefined): Promise<void> {
  if (!worker) return
  worker.ref()
  const ended = new Promise<void>(resolve => worker.once('exit', () => resolve()))
  worker.postMessage('close' satisfies ToWriter)
  await ended
}

type Settle = PromiseWithResolvers<WriterAnswer>

/** Jobs that wait for an answer of the writer, by number. */
interface Pending {
  readonly size: number
  /** Adds a job that its caller can abort. */
  add(isBatch: boolean, signal: AbortSignal | undefined): { readonly id: number; readonly promise: Promise<WriterAnswer> }
  /** Settles a job, unless its caller has given up. */
  settle(id: number, finish: (settle: Settle) => void): void
  /** Records that a job is on its way to the writer. Returns false if its caller has given up. */
  sent(id: number): boolean
  /** Fails all jobs that were sent. */
  failSent(error: (isBatch: boolean) => unknown): void
  /** Resolves when no job waits any more. */
  allSettled(): Promise<void>
}

interface Waiting {
  readonly settle: Settle
  /** All jobs with the same signal. */
  readonly beside: Set<number> | undefined
  readonly isBatch: boolean
  isSent: boolean
}

/** Creates an empty table; calls `emptied` whenever no job waits any more. */
function createPending(emptied: () => void): Pending {
  const waiting = new Map<number, Waiting>()
  let last = 0
  let idle: (() => void) | undefined

  const settle: Pending['settle'] = (id, finish) => {
    const found = waiting.get(id)
    if (!found) return
    waiting.delete(id)
    found.beside?.delete(id)
    finish(found.settle)
    if (waiting.size > 0) return
    emptied()
    idle?.()
  }
  // One listener for each signal: adding a listener checks all existing ones, and a plugin uses one signal all its life.
  const bySignal = new WeakMap<AbortSignal, Set<number>>()
  const besideOf = (signal: AbortSignal): Set<number> => {
    const there = bySignal.get(signal)
    if (there) return there
    const ids = new Set<number>()
    bySignal.set(signal, ids)
    const abort = () => {
      for (const id of ids) settle(id, s => s.reject(signal.reason))
    }
    signal.addEventListener('abort', abort, { once: true })
    return ids
  }
  return {
    get size() {
      return waiting.size
    },
    add(isBatch, signal) {
      const id = ++last
      const promises = Promise.withResolvers<WriterAnswer>()
      waiting.set(id, { settle: promises, beside: signal && besideOf(signal).add(id), isBatch, isSent: false })
      return { id, promise: promises.promise }
    },
    settle,
    sent(id) {
      const item = waiting.get(id)
      if (item) item.isSent = true
      return item !== undefined
    },
    failSent(error) {
      for (const [id, { isSent, isBatch }] of waiting) if (isSent) settle(id, s => s.reject(error(isBatch)))
    },
    async allSettled() {
      if (waiting.size > 0) await new Promise<void>(resolve => (idle = resolve))
    },
  }
}
