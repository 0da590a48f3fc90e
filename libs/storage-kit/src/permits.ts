/** The numbers of one name that a worker asks for. */
export interface PermitNumbers {
  /** What it has already. */
  readonly least: number
  /** What it has when all its requests are granted. */
  readonly wanted: number
  /** For the sum of all workers. */
  readonly limit: number
}

/**
 * Sets the number of this worker: at least `least`, and up to `wanted` as far as the sum of all is within the limit. Resolves to it.
 * It can be repeated.
 */
export type SetPermits = (name: string, numbers: PermitNumbers) => Promise<number>

interface Change {
  /** `write`: nothing changes, but the row is written again. */
  readonly kind: 'acquire' | 'release' | 'write'
  readonly limit: number
  readonly settle: PromiseWithResolvers<boolean>
}

/** The permits of one name that this worker has. */
interface Held {
  count: number
  waiting: Change[]
  running: Promise<void> | undefined
}

/**
 * The permits of this worker in a bus. A row for each name contains the number of each worker. A worker writes its number, not a
 * difference, so it can repeat a statement whose answer was lost. Changes that wait are one statement.
 */
export class WorkerPermits {
  readonly #set: SetPermits
  readonly #held = new Map<string, Held>()
  /** Names whose row can be wrong, because a statement failed. */
  readonly #unsure = new Set<string>()

  constructor(set: SetPermits) {
    this.#set = set
  }

  acquire(name: string, limit: number): Promise<boolean> {
    return this.#change(name, 'acquire', limit)
  }

  async release(name: string): Promise<void> {
    await this.#change(name, 'release')
  }

  /** Writes rows again that can be wrong; all of them after the table was emptied. */
  async restore(all: boolean): Promise<void> {
    const names = all ? [...this.#held.keys()] : [...this.#unsure]
    await Promise.all(names.map(name => this.#change(name, 'write')))
  }

  #change(name: string, kind: Change['kind'], limit = 0): Promise<boolean> {
    const held = this.#held.get(name) ?? { count: 0, waiting: [], running: undefined }
    this.#held.set(name, held)
    const settle = Promise.withResolvers<boolean>()
    held.waiting.push({ kind, limit, settle })
    held.running ??= this.#flush(name, held)
    return settle.promise
  }

  async #flush(name: string, held: Held): Promise<void> {
    await Promise.resolve() // calls of the same turn share a statement
    while (held.waiting.length > 0) {
      const group = groupOf(held.waiting)
      try {
        await this.#apply(name, held, group)
      } catch (error) {
        this.#unsure.add(name)
        for (const { settle } of group) settle.reject(error)
      }
    }
    held.running = undefined
    if (held.count === 0 && !this.#unsure.has(name)) this.#held.delete(name)
  }

  async #apply(name: string, held: Held, group: readonly Change[]): Promise<void> {
    const asks = group.filter(({ kind }) => kind === 'acquire')
    // a release is done in any case; when its statement fails, the row is written later
    held.count = Math.max(0, held.count - group.filter(({ kind }) => kind === 'release').length)
    const least = held.count
    const numbers = { least, wanted: least + asks.length, limit: asks[0]?.limit ?? 0 }
    held.count = Math.max(least, await this.#set(name, numbers))
    this.#unsure.delete(name)
    let granted = held.count - least
    for (const { kind, settle } of group) settle.resolve(kind !== 'acquire' || granted-- > 0)
  }
}

/** The changes that one statement can make: all requests have the same limit. */
function groupOf(waiting: Change[]): Change[] {
  const asks = waiting.filter(({ kind }) => kind === 'acquire')
  const other = asks.find(({ limit }) => limit !== asks[0]!.limit)
  return waiting.splice(0, other === undefined ? waiting.length : waiting.indexOf(other))
}
