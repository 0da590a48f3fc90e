import { codeOf, type CallContext } from '@svc/core'
import type { Fence, Json, Store, StoreOp } from '@svc/core/contracts'
import { type Entry, type History, note } from './history.ts'
import type { InitialCommit } from './initial-commit.ts'
import { LOG } from './space.ts'

export interface JournalParts {
  readonly store: Store
  readonly id: string
  /** What proves that the run is this process's. */
  readonly fence: () => Promise<Fence>
  /** Of a run that begins here, its first write. */
  readonly opening: InitialCommit | undefined
  readonly history: History
  /** Told of entries once they are stored. */
  readonly stored: (entries: readonly Entry[], first: number) => void
  /** Another has the run, or the store has been gone for too long: nothing may be written any more. */
  readonly lost: (error: unknown) => void
  readonly ctx: CallContext
}

/** The store may be away for so long, and is asked so often meanwhile. */
const [AWAY_MS, RETRY_MS] = [20_000, 250]

/**
 * Writes a run's log: what is added in one turn of the loop, and while another write waits for the disk, goes in one batch. Entries count at once for this
 * process (`history`), and for all once `stored` answers.
 */
export class Journal {
  readonly #parts: JournalParts
  #length: number
  #entries: Entry[] = []
  #ops: StoreOp[] = []
  #next: Promise<void> | undefined
  #writing: Promise<void> = Promise.resolve()
  /** Entries that are not stored yet and tell what has come of something. */
  #outcomes = 0
  #isDue = false
  #isOver = false
  #fence: Fence | undefined

  constructor(parts: JournalParts) {
    this.#parts = parts
    this.#length = parts.history.length
    parts.opening?.by(() => this.stored().catch(() => {}))
  }

  /** Entries that are stored. */
  get length(): number {
    return this.#length
  }

  add(entry: Entry): void {
    note(this.#parts.history, entry)
    this.#entries.push(entry)
    if (!BEGINNINGS.has(entry.t)) this.#outcomes += 1
  }

  /** Something that is to be stored together with what was added. */
  with(op: StoreOp): void {
    this.#ops.push(op)
  }

  /** The same with what ends the run. */
  end(op: StoreOp): void {
    this.with(op)
    this.#isOver = true
  }

  /** Whether all that has come of something is stored. */
  get isSettled(): boolean {
    return this.#outcomes === 0 && this.#ops.length === 0
  }

  /** Stores what was added within this turn of the loop and the next; trouble with it is told to who waits for what follows. */
  soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      void this.stored().catch(() => {})
    })
  }

  /** Answers once all that was added is stored. Throws what the run was lost with. */
  stored(): Promise<void> {
    if (this.#entries.length === 0 && this.#ops.length === 0 && !this.#parts.opening?.isFresh) return this.#writing
    this.#next ??= this.#writing.then(() => this.#write())
    return this.#next
  }

  async #write(): Promise<void> {
    // writes follow each other: what is not stored yet when one begins is its own
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
    const { store, opening, ctx } = this.#parts
    const isStored = opening?.isFresh === true && (await (this.#isOver ? opening.openOver(ops) : opening.open(ops)))
    if (opening?.isOver) return
    this.#fence ??= await this.#parts.fence()
    if (isStored) return
    const [fence, until] = [this.#fence, performance.now() + AWAY_MS]
    for (;;) {
      try {
        return void (await store.batch(ops, { fence }, ctx))
      } catch (error) {
        if (codeOf(error) !== 'STORE_UNAVAILABLE' || performance.now() > until) throw error
      }
      await new Promise(resolve => setTimeout(resolve, RETRY_MS))
    }
  }
}

/** What only tells that something begins: lost with its process, it has not begun. */
const BEGINNINGS: ReadonlySet<Entry['t']> = new Set(['started', 'begun', 'forked'])
