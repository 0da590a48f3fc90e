import type { CallContext } from '@svc/core'
import type { Fence, Lease, LeaseRequest } from '@svc/core/contracts'
import { leaseBusy, storeClosed } from './errors.ts'

/** The lease, or the milliseconds until it expires by the clock of the store if another holder has it. */
export type LeaseAttempt = Omit<Lease, 'validMs'> | { readonly busyMs: number }

/** The operations of a store for the queue. */
export interface LeaseBackend {
  /** Tries once; `looks` is the number of earlier tries. */
  attempt(lease: string, request: LeaseRequest, looks: number): Promise<LeaseAttempt>
  /** Releases a lease that no caller wants any more. */
  release(lease: Fence): Promise<void>
  /** Milliseconds until the next try, for releases by other processes; Infinity if there are none. */
  lookAgain(looks: number): number
}

interface Waiter {
  readonly request: LeaseRequest
  readonly ctx: CallContext
  /** When it asked, by the monotonic clock. */
  readonly asked: number
  readonly settle: PromiseWithResolvers<Lease>
  done: boolean
  /** A request to the store is running. */
  isTrying: boolean
  /** Its limit has passed. */
  late: boolean
  undo?: () => void
}
interface WaitingLine {
  readonly waiters: Waiter[]
  wake?: () => void
  freed: boolean
}

/** The callers of this process that wait for leases, in order. Only the first one of each queue asks the store. */
export interface LeaseQueue {
  acquire(lease: string, request: LeaseRequest, ctx: CallContext): Promise<Lease>
  /** A lease was released in this process: the next caller tries at once. Without a name, any lease. */
  freed(lease?: string): void
  /** Rejects all waiting callers with STORE_UNAVAILABLE. */
  close(): void
}

/** Creates a queue for a store. */
export function createLeaseQueue(backend: LeaseBackend): LeaseQueue {
  const lines = new Map<string, WaitingLine>()
  let closed = false

  async function serve(lease: string, line: WaitingLine): Promise<void> {
    for (let looks = 0; line.waiters.length > 0; looks++) {
      const waiter = line.waiters[0]!
      line.freed = false
      const busyMs = await tryOnce(backend, lease, waiter, looks)
      if (waiter.done) looks = leave(line, waiter)
      else if (waiter.late || waiter.request.waitMs === 0) end(waiter, leaseBusy(lease, waiter.request.waitMs), line)
      else await pause(line, Math.min(backend.lookAgain(looks), busyMs))
    }
    lines.delete(lease)
  }

  return {
    acquire(lease, request, ctx) {
      if (closed) return Promise.reject(storeClosed())
      const line = lines.get(lease)
      if (line && request.waitMs === 0) return Promise.reject(leaseBusy(lease, 0))
      const asked = performance.now()
      const waiter: Waiter = { request, ctx, asked, settle: Promise.withResolvers(), done: false, isTrying: false, late: false }
      if (line) {
        line.waiters.push(waiter)
        limit(lease, waiter, line)
      } else {
        const fresh: WaitingLine = { waiters: [waiter], freed: false }
        lines.set(lease, fresh)
        limit(lease, waiter, fresh)
        void serve(lease, fresh)
      }
      return waiter.settle.promise
    },
    freed(lease) {
      for (const line of lease === undefined ? lines.values() : [lines.get(lease)]) if (line) notifyNext(line)
    },
    close() {
      closed = true
      for (const line of lines.values()) for (const waiter of line.waiters.slice()) end(waiter, storeClosed(), line)
    },
  }
}

/** One try for the first caller; returns the milliseconds before which a retry is useless. */
async function tryOnce(backend: LeaseBackend, lease: string, waiter: Waiter, looks: number): Promise<number> {
  waiter.isTrying = true
  // the lease runs from a moment after this one, and the holder counts from when it asked
  const waitedMs = performance.now() - waiter.asked
  try {
    const got = await backend.attempt(lease, waiter.request, looks)
    if ('busyMs' in got) return got.busyMs
    if (waiter.done) await backend.release(got)
    else finish(waiter, () => waiter.settle.resolve({ ...got, validMs: Math.floor(waitedMs) + waiter.request.ttlMs }))
  } catch (error) {
    if (!waiter.done) finish(waiter, () => waiter.settle.reject(error))
  } finally {
    waiter.isTrying = false
  }
  return 0
}

function finish(waiter: Waiter, settle: () => void): void {
  waiter.done = true
  waiter.undo?.()
  settle()
}

function leave(line: WaitingLine, waiter: Waiter): number {
  const at = line.waiters.indexOf(waiter)
  if (at >= 0) line.waiters.splice(at, 1)
  return -1
}

function end(waiter: Waiter, reason: unknown, line: WaitingLine): void {
  if (waiter.done) return
  finish(waiter, () => waiter.settle.reject(reason))
  leave(line, waiter)
  notifyNext(line)
}

/** Ends the waiting at its limit or when the caller gives up. */
function limit(lease: string, waiter: Waiter, line: WaitingLine): void {
  const { waitMs } = waiter.request
  if (waitMs === 0) return
  const { signal } = waiter.ctx
  const stop = () => {
    waiter.late = true
    // The running request can still succeed: after a rejection, the lease would belong to no caller and block others.
    if (!waiter.isTrying) end(waiter, leaseBusy(lease, waitMs), line)
  }
  const timer = setTimeout(stop, Math.min(waitMs, 2 ** 31 - 1))
  const abort = () => end(waiter, signal.reason, line)
  signal.addEventListener('abort', abort, { once: true })
  waiter.undo = () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

function notifyNext(line: WaitingLine): void {
  line.freed = true
  line.wake?.()
}

/** Waits until the queue is notified, with a limit. */
async function pause(line: WaitingLine, ms: number): Promise<void> {
  if (line.freed) return
  const { promise, resolve } = Promise.withResolvers<void>()
  // At least one millisecond: a lease that expires now is free only afterwards.
  const timer = setTimeout(resolve, Math.max(1, Math.min(ms, 2 ** 31 - 1)))
  line.wake = resolve
  await promise
  clearTimeout(timer)
  line.wake = undefined
}
