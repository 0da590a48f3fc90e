import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type CallContext } from '@svc/core'
import type { Fence, Json, Store, StoreOp } from '@svc/core/contracts'
import { type Entry, type History, note } from './history.ts'
import type { InitialCommit } from './initial-commit.ts'
import { LOG } from './space.ts'

export interface JournalOptions {
  readonly store: Store
  readonly id: string
  /** Returns the fencing token that proves ownership of the run. */
  readonly fence: () => Promise<Fence>
  /** The first write of a run that starts here. */
  readonly initialCommit: InitialCommit | undefined
  readonly history: History
  /** Called with entries after they are stored. */
  readonly stored: (entries: readonly Entry[], first: number) => void
  /** Called when another worker has the run or the store is unavailable for too long. */
  readonly lost: (error: unknown) => void
  readonly ctx: CallContext
}

/** How long writes are retried while the store is unavailable, and the delay between retries. */
const [AWAY_MS, RETRY_MS] = [20_000, 250]

/**
 * Writes the log of a run. Entries of one turn of the event loop, and those added during another write, form one batch. Entries
 * apply at once in this process (`history`), and for all processes after `stored` resolves.
 */
export class RunJournal {
  readonly #parts: JournalOptions
  #length: number
  #entries: Entry[] = []
  #ops: StoreOp[] = []
  #next: Promise<void> | undefined
  #writing: Promise<void> = Promise.resolve()
  /** Number of unsaved entries that record a result. */
  #outcomes = 0
  #isDue = false
  #isOver = false
  #fence: Fence | undefined

  constructor(parts: JournalOptions) {
    this.#parts = parts
    this.#length = parts.history.length
    parts.initialCommit?.by(() => this.stored().catch(() => {}))
  }

  /** Number of stored entries. */
  get length(): number {
    return this.#length
  }

  add(entry: Entry): void {
    note(this.#parts.history, entry)
    this.#entries.push(entry)
    if (!BEGINNINGS.has(entry.t)) this.#outcomes += 1
  }

  /** Adds an operation to the next batch. */
  with(op: StoreOp): void {
    this.#ops.push(op)
  }

  /** Adds the operation that ends the run. */
  end(op: StoreOp): void {
    this.with(op)
    this.#isOver = true
  }

  /** Whether all results are stored. */
  get isSettled(): boolean {
    return this.#outcomes === 0 && this.#ops.length === 0
  }

  /** Stores the added entries in this turn of the event loop or the next. The next caller of `stored` gets an error. */
  soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      void this.stored().catch(() => {})
    })
  }

  /** Resolves when all entries are stored. Throws the error with which the run was lost. */
  stored(): Promise<void> {
    if (this.#entries.length === 0 && this.#ops.length === 0 && !this.#parts.initialCommit?.isFresh) return this.#writing
    this.#next ??= this.#writing.then(() => this.#write())
    return this.#next
  }

  async #write(): Promise<void> {
    // writes do not overlap, so this write takes all pending entries
    const [entries, ops, outcomes] = [this.#entries, this.#ops, this.#outcomes]
    this.#writing = this.#next!
    ;[this.#entries, this.#ops, this.#next] = [[], [], undefined]
    try {
      if (entries.length > 0) ops.unshift(this.#append(entries))
      await this.#put(ops)
    } catch (error) {
      this.#parts.lost(error)
      throw error
    }
    const first = this.#length + 1
    this.#length += entries.length
    this.#outcomes -= outcomes
    this.#parts.stored(entries, first)
  }

  #append(entries: readonly Entry[]): StoreOp {
    return { op: 'append', log: LOG, id: this.#parts.id, values: entries as unknown as Json[], ifLength: this.#length }
  }

  async #put(ops: readonly StoreOp[]): Promise<void> {
    const { store, initialCommit, ctx } = this.#parts
    const isStored =
      initialCommit?.isFresh === true && (await (this.#isOver ? initialCommit.openOver(ops) : initialCommit.open(ops)))
    if (initialCommit?.isOver) return
    this.#fence ??= await this.#parts.fence()
    if (isStored) return
    const [fence, until] = [this.#fence, performance.now() + AWAY_MS]
    for (;;) {
      try {
        return void (await store.batch(ops, { fence }, ctx))
      } catch (error) {
        if (codeOf(error) !== 'STORE_UNAVAILABLE' || performance.now() > until) throw error
      }
      await sleep(RETRY_MS)
    }
  }
}

/** Entries that only record a start. If they are lost, the step has not started. */
const BEGINNINGS: ReadonlySet<Entry['t']> = new Set(['started', 'begun', 'bound', 'forked'])
