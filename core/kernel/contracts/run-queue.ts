import { defineService, type CallContext } from '@svc/core'
import type { Fence } from './store.ts'

/** A run that has work to do, and since when (Unix milliseconds; absent: not until it is woken). */
export interface QueuedRun {
  readonly id: string
  readonly due?: number
  /** At most so many of a group work at a time. */
  readonly group?: { readonly name: string; readonly limit: number }
}

/** A run that this process works on: nobody else does while the fence holds, and what it writes carries it. */
export interface RunClaim {
  readonly id: string
  readonly fence: Fence
}

/**
 * Which runs have work to do, and who does it: at least once, to one at a time. The store has what a run is; a queue only says whose turn it is, so any queue
 * with visibility time-outs can be one (over many machines BullMQ: `put` is a delayed job, a claim its lock together with a lease of the store, `keep` extends both).
 */
export interface RunQueue {
  /** Has a run worked on at its time, from now on; replaces what was said of it. With `claim`, this process takes it at once where its group has room. */
  put(run: QueuedRun, options: { readonly claim: boolean }, ctx: CallContext): Promise<RunClaim | undefined>
  /** Runs whose time has come, as this process may have them; the next one is taken when it is asked for. Ends with the signal. */
  take(ctx: CallContext): AsyncIterable<RunClaim>
  /** The same for one run alone; ends when the queue knows it no more, too. */
  takeOne(id: string, ctx: CallContext): AsyncIterable<RunClaim>
  /** Holds a claim for longer; due every 10 s. Throws STORE_FENCED when it is another's. */
  keep(claim: RunClaim, ctx: CallContext): Promise<void>
  /** Gives a claim back: to be worked on at `due`, when it is woken (`due` null), or never again (`ended`). */
  leave(claim: RunClaim, how: { readonly due: number | null } | 'ended', ctx: CallContext): Promise<void>
  /** There is news for a run: if nobody works on it, it is due now. */
  wake(id: string, ctx: CallContext): Promise<void>
}
export const RunQueue = defineService<RunQueue>('run_queue', {
  api: 1,
  methods: { put: 'call', take: 'stream', takeOne: 'stream', keep: 'call', leave: 'call', wake: 'call' },
})
