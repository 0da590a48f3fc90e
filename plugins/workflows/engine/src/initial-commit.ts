import { codeOf, type CallContext } from '@svc/core'
import type { QueuedRun, RunClaim, RunQueue, Store, StoreOp } from '@svc/core/contracts'
import { REFUSED } from './errors.ts'
import { RUNS } from './space.ts'

export interface InitialCommitOptions {
  readonly store: Store
  readonly queue: RunQueue
  /** The operations that create the run. */
  readonly ops: readonly StoreOp[]
  readonly queued: QueuedRun
  /** Whether this process claims it at once. */
  readonly claim: boolean
  readonly ctx: CallContext
}

/** The results of storing and queueing a run. `claimed` holds undefined if any worker can take the run. */
export interface CommitResult {
  readonly kept: PromiseSettledResult<unknown>
  readonly claimed: PromiseSettledResult<RunClaim | undefined>
}

/** The first write of a run. A run that starts here begins before it is stored, and its first entries go into the same commit. */
export class InitialCommit {
  readonly #parts: InitialCommitOptions
  readonly #opened = Promise.withResolvers<CommitResult>()
  #isFresh = true
  #isOver = false
  #due: () => unknown = () => this.open([])

  constructor(parts: InitialCommitOptions) {
    this.#parts = parts
  }

  get id(): string {
    return this.#parts.queued.id
  }
  /** Whether nothing was written. */
  get isFresh(): boolean {
    return this.#isFresh
  }
  /** Whether the run ended with its first write. It then has no claim to return. */
  get isOver(): boolean {
    return this.#isOver
  }
  get opened(): Promise<CommitResult> {
    return this.#opened.promise
  }

  /** Sets the function that writes the run with its first entries. */
  by(write: () => unknown): void {
    this.#due = write
  }
  /** Writes the run in this turn of the event loop, even if it waits. */
  soon(): void {
    setImmediate(() => void (this.#isFresh && this.#due()))
  }

  /** Writes a run that has already ended. Returns false if the store rejects the entries. Throws if the run cannot be stored. */
  async openOver(more: readonly StoreOp[]): Promise<boolean> {
    const { store, ops, queued, ctx } = this.#parts
    const isRun = (op: StoreOp) => op.op === 'put' && op.collection === RUNS && op.key === queued.id
    const whole = [...ops.filter(op => !isRun(op)), ...more.map(op => (isRun(op) ? { ...op, ifVersion: 0 } : op))]
    this.#isFresh = false
    try {
      await store.batch(whole, {}, ctx)
    } catch (error) {
      if (REFUSED.has(codeOf(error))) return this.open([]).then(() => false)
      this.#opened.resolve({ kept: { status: 'rejected', reason: error }, claimed: NOBODY })
      throw error
    }
    this.#isOver = true
    this.#opened.resolve({ kept: { status: 'fulfilled', value: undefined }, claimed: NOBODY })
    return true
  }

  /** Writes the run and, if the store accepts them, further operations. Returns whether it did. `claim` throws if the run cannot be stored. */
  async open(more: readonly StoreOp[]): Promise<boolean> {
    const { store, queue, ops, queued, claim, ctx } = this.#parts
    this.#isFresh = false
    let isWhole = true
    const keep = async () => {
      try {
        await store.batch([...ops, ...more], {}, ctx)
      } catch (error) {
        if (more.length === 0 || !REFUSED.has(codeOf(error))) throw error
        isWhole = false
        await store.batch(ops, {}, ctx)
      }
    }
    // in this order: the queue soon forgets an unknown run, but a run that only the store has is found late
    const [claimed, kept] = await Promise.allSettled([queue.put(queued, { claim }, ctx), keep()])
    this.#opened.resolve({ kept, claimed })
    return isWhole
  }

  /** The claim on the stored run. Throws if storing or claiming failed. */
  async claim(): Promise<RunClaim> {
    const { kept, claimed } = await this.#opened.promise
    if (kept.status === 'rejected') throw kept.reason
    if (claimed.status === 'rejected') throw claimed.reason
    if (!claimed.value) throw new Error('another worker has claimed the run')
    return claimed.value
  }
}

const NOBODY = { status: 'fulfilled', value: undefined } as const
