import type { SqlStatement } from '@svc/core/contracts'
import type { BusSql } from './sql.ts'

/** A request fails rather than wait longer for the database. */
const RETRY_MS = 1_000

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
 * The permits of this worker. A row for each name contains the number of each worker. A worker writes its number, not a difference, so
 * it can repeat a statement whose answer was lost. Changes that wait are one statement.
 */
export class WorkerPermits {
  readonly #sql: BusSql
  readonly #self: string
  readonly #cluster: string
  readonly #held = new Map<string, Held>()
  /** Names whose row can be wrong, because a statement failed. */
  readonly #unsure = new Set<string>()

  constructor(sql: BusSql, self: string, cluster: string) {
    this.#sql = sql
    this.#self = self
    this.#cluster = cluster
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
    const [row] = await this.#sql.run(this.#statements(name, [least, least + asks.length, asks[0]?.limit ?? 0]), RETRY_MS)
    held.count = Math.max(least, Number(row!.rows[0]?.held ?? 0))
    this.#unsure.delete(name)
    let granted = held.count - least
    for (const { kind, settle } of group) settle.resolve(kind !== 'acquire' || granted-- > 0)
  }

  /** Sets the number of this worker: at least `least`, and up to `wanted` as far as the sum of all is within the limit. */
  #statements(name: string, [least, wanted, limit]: readonly [number, number, number]): SqlStatement[] {
    const key = `${this.#cluster}\n${name}`
    const number = `greatest($3::int, least($4::int, $5::int - (SELECT coalesce(sum(v::int), 0)::int FROM jsonb_each_text(p.held - $2::text) AS e(k, v))))`
    return [
      {
        text: `INSERT INTO ${this.#sql.s}.bus_permits AS p (name, held) VALUES ($1, jsonb_build_object($2::text, greatest($3::int, least($4::int, $5::int))))
          ON CONFLICT (name) DO UPDATE SET held = CASE WHEN ${number} > 0 THEN p.held || jsonb_build_object($2::text, ${number}) ELSE p.held - $2::text END
          RETURNING coalesce((held->>$2::text)::int, 0) AS held`,
        values: [key, this.#self, least, wanted, limit],
      },
      {
        text: `DELETE FROM ${this.#sql.s}.bus_permits WHERE name = $1 AND held IN ('{}', jsonb_build_object($2::text, 0))`,
        values: [key, this.#self],
      },
    ]
  }
}

/** The changes that one statement can make: all requests have the same limit. */
function groupOf(waiting: Change[]): Change[] {
  const asks = waiting.filter(({ kind }) => kind === 'acquire')
  const other = asks.find(({ limit }) => limit !== asks[0]!.limit)
  return waiting.splice(0, other === undefined ? waiting.length : waiting.indexOf(other))
}
