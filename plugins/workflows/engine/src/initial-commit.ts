import { codeOf, type CallContext } from '@svc/core'
import type { QueuedRun, RunClaim, RunQueue, Store, StoreOp } from '@svc/core/contracts'
import { REFUSED } from './errors.ts'
import { RUNS } from './space.ts'

export interface InitialCommitParts {
  readonly store: Store
  readonly queue: RunQueue
  /** What makes the run. */
  readonly ops: readonly StoreOp[]
  readonly queued: QueuedRun
  /** Whether this process takes it at once. */
  readonly claim: boolean
  readonly ctx: CallContext
}

/** How a run was stored and queued; `claim` is undefined where it is for whoever comes first. */
export interface Opened {
  readonly kept: PromiseSettledResult<unknown>
  readonly claimed: PromiseSettledResult<RunClaim | undefined>
}

/** The first write of a run. One that is worked on here begins at once, and what came of it by then goes into the same commit. */
export class InitialCommit {
  readonly #parts: InitialCommitParts
  readonly #opened = Promise.withResolvers<Opened>()
  #isFresh = true
  #isOver = false
  #due: () => unknown = () => this.open([])

  constructor(parts: InitialCommitParts) {
    this.#parts = parts
  }

  get id(): string {
    return this.#parts.queued.id
  }
  /** Whether nothing is written yet. */
  get isFresh(): boolean {
    return this.#isFresh
  }
  /** Whether the run has ended with its first write: then nobody ever waited for it, and no claim on it is to be given back. */
  get isOver(): boolean {
    return this.#isOver
  }
  get opened(): Promise<Opened> {
    return this.#opened.promise
  }

  /** Who writes it, with what has come of the run. */
  by(write: () => unknown): void {
    this.#due = write
  }
  /** Has it written in this turn of the loop, whatever the run waits for. */
  soon(): void {
    setImmediate(() => void (this.#isFresh && this.#due()))
  }

  /** Writes a run that has ended, with all of it; whether the store takes that. Throws what keeps the run from being stored. */
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

  /** Writes the run, with more where the store takes that; whether it did. What keeps the run from being stored, `claim` throws. */
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
    // in this order: what the queue has and the store has not is forgotten soon, a run that the queue has not is found late
    const [claimed, kept] = await Promise.allSettled([queue.put(queued, { claim }, ctx), keep()])
    this.#opened.resolve({ kept, claimed })
    return isWhole
  }

  /** The claim on the run, once it is stored. Throws what it was not stored or taken with. */
  async claim(): Promise<RunClaim> {
    const { kept, claimed } = await this.#opened.promise
    if (kept.status === 'rejected') throw kept.reason
    if (claimed.status === 'rejected') throw claimed.reason
    if (!claimed.value) throw new Error('somebody else has the run')
    return claimed.value
  }
}

const NOBODY = { status: 'fulfilled', value: undefined } as const
