import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Counted, CountWindow } from '@svc/core/contracts'
import { endOf, hit, storeClosed, type StoredWindow, storeUnsure } from '@svc/storage-kit'
import { isLost, isRepeated, rolledBack, storeError, tooManyWaiting } from './errors.ts'
import { type Line, localSettings, type Step } from './line.ts'
import { quoted } from './schema.ts'

/** Counts hits through a connection of its own: they do not wait for the disk. The hits that wait are one transaction. */
export interface Counter {
  count(key: string, windows: readonly CountWindow[], signal: AbortSignal): Promise<Counted>
  close(): Promise<void>
}

interface Waiting {
  readonly key: string
  readonly windows: readonly CountWindow[]
  readonly signal: AbortSignal
  readonly settle: PromiseWithResolvers<Counted>
}

const MOST_WAITING = 50_000
const GROUP = 1000
const TRIES = 100
const LONGEST_PAUSE_MS = 20
/** Expired keys that are deleted with each new key. */
const SWEPT = 2

export interface CounterOptions {
  readonly line: Line
  readonly schema: string
  readonly waitMs: number
  readonly statementMs: number
}

/** Creates a counter; connects with the first hit. */
export const createCounter = (options: CounterOptions): Counter => new GroupCounter(options)

class GroupCounter implements Counter {
  readonly #options: CounterOptions
  readonly #s: string
  #waiting: Waiting[] = []
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(options: CounterOptions) {
    this.#options = options
    this.#s = quoted(options.schema)
  }

  async count(key: string, windows: readonly CountWindow[], signal: AbortSignal): Promise<Counted> {
    if (this.#isClosed) throw storeClosed()
    if (this.#waiting.length >= MOST_WAITING) throw tooManyWaiting()
    const settle = Promise.withResolvers<Counted>()
    this.#waiting.push({ key, windows, signal, settle })
    this.#running ??= this.#flush()
    return settle.promise
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
    await this.#options.line.close()
  }

  async #flush(): Promise<void> {
    await setImmediate() // hits of the same turn share a transaction
    for (;;) {
      this.#waiting = this.#waiting.filter(stillAsks)
      const group = this.#waiting.splice(0, GROUP)
      if (group.length === 0) break
      try {
        const answers = await this.#attempt(group)
        group.forEach(({ settle }, at) => settle.resolve(answers[at]!))
      } catch (error) {
        for (const { settle } of group) settle.reject(error)
      }
    }
    this.#running = undefined
  }

  async #attempt(group: readonly Waiting[]): Promise<Counted[]> {
    const { line, waitMs } = this.#options
    const until = performance.now() + waitMs
    for (let tries = 1; ; tries++) {
      let isSent = false
      try {
        return await this.#transact(group, () => (isSent = true))
      } catch (error) {
        if (isLost(error)) line.drop()
        else await line.one({ text: 'ROLLBACK' }).catch(() => line.drop())
        if (isLost(error) && isSent) throw storeUnsure('the connection to PostgreSQL was lost', error)
        const goesOn = isLost(error) ? performance.now() < until : isRepeated(error) && tries < TRIES
        if (!goesOn) throw storeError(error)
        await sleep(Math.random() * Math.min(2 ** tries, LONGEST_PAUSE_MS))
      }
    }
  }

  /** Counts in one transaction. `sent` is called when it may be committed. */
  async #transact(group: readonly Waiting[], sent: () => void): Promise<Counted[]> {
    const { line, waitMs, statementMs } = this.#options
    const { pooled } = await line.session(waitMs)
    const results = await line.run([
      [{ text: 'BEGIN' }],
      ...(pooled ? [[{ text: localSettings(statementMs) }] satisfies Step] : []),
      // a hit need not survive a power failure
      [{ name: 'async', text: `SELECT set_config('synchronous_commit', 'off', true)` }],
      [lockIn(this.#s), [[...new Set(group.map(({ key }) => key))]]],
      [NOW],
    ])
    const now = Number(results.at(-1)!.rows[0]!.now)
    const stored: Stored = new Map(
      results.at(-2)!.rows.map(row => [String(row.key), JSON.parse(row.windows as string) as readonly StoredWindow[]])
    )
    const kept: Stored = new Map(stored)
    const answers = group.map(({ key, windows }) => {
      const done = hit(kept.get(key) ?? [], windows, now)
      if (done.kept.length > 0) kept.set(key, done.kept)
      return done.counted
    })
    const steps = writesOf(this.#s, stored, kept, now)
    if (steps.length > 0) sent()
    const ended = await line.run([...steps, [{ text: 'COMMIT' }]])
    if (ended.at(-1)!.command !== 'COMMIT') throw rolledBack()
    return answers
  }
}

type Stored = Map<string, readonly StoredWindow[]>

function writesOf(s: string, stored: Stored, kept: Stored, now: number): Step[] {
  const changed = [...kept].filter(([key, list]) => stored.get(key) !== list)
  const values = (rows: typeof changed) => [
    rows.map(([key]) => key),
    rows.map(([, windows]) => endOf(windows)),
    rows.map(([, windows]) => JSON.stringify(windows)),
  ]
  const [fresh, known] = [changed.filter(([key]) => !stored.has(key)), changed.filter(([key]) => stored.has(key))]
  return [
    ...(known.length > 0 ? [[updateIn(s), values(known)] satisfies Step] : []),
    ...(fresh.length > 0
      ? [[insertIn(s), values(fresh)] satisfies Step, [sweepIn(s), [now, fresh.length * SWEPT]] satisfies Step]
      : []),
  ]
}

function stillAsks({ signal, settle }: Waiting): boolean {
  if (signal.aborted) settle.reject(signal.reason)
  return !signal.aborted
}

const NOW = { name: 'now', text: 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now' }
const lockIn = (s: string) => ({
  name: 'counts',
  text: `SELECT key, windows FROM ${s}.counts WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE`,
})
const COLUMNS = 'unnest($1::text[], $2::bigint[], $3::text[]) AS u(key, ends, windows)'
const updateIn = (s: string) => ({
  name: 'counts_kept',
  text: `UPDATE ${s}.counts c SET ends = u.ends, windows = u.windows FROM ${COLUMNS} WHERE c.key = u.key`,
})
const insertIn = (s: string) => ({
  name: 'counts_in',
  text: `INSERT INTO ${s}.counts SELECT * FROM ${COLUMNS} ORDER BY key COLLATE "C"`,
})
const sweepIn = (s: string) => ({
  name: 'counts_swept',
  text: `DELETE FROM ${s}.counts WHERE key IN (SELECT key FROM ${s}.counts WHERE ends <= $1 ORDER BY ends LIMIT $2 FOR UPDATE SKIP LOCKED)`,
})
