import type { Json, Space } from '@svc/core/contracts'

/** Buckets of one worker: `<step>/<start>/<worker>`. */
export const BUCKETS = 'usage_buckets'
export const SPACE: Space = { name: 'usage', version: 1, collections: { [BUCKETS]: {} } }

export type Step = 'minute' | 'hour'
export const STEP_MS: Readonly<Record<Step, number>> = { minute: 60_000, hour: 3_600_000 }

/** What is counted. All but `latency`, which is milliseconds, and `cost` are whole numbers. */
export const FIELDS = [
  'requests',
  'errors',
  'latency',
  'calls',
  'failures',
  'input',
  'output',
  'cached',
  'reasoning',
  'cost',
] as const
export type Field = (typeof FIELDS)[number]
/** The counts in the order of `FIELDS`. */
export type Counts = number[]

/** What the counts of a row are counted by. Each row counts everything of its principal that has this label. */
const DIMENSIONS = ['total', 'route', 'status', 'model', 'conversation', 'workflow', 'tool'] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** Bounds of the latencies, in milliseconds. The last bucket of a histogram is for all above. */
export const BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000]

/** A stored bucket: rows by dimension, principal and label; latencies by principal. */
export interface StoredBucket {
  readonly rows: readonly (readonly [dimension: Dimension, principal: string, label: string, counts: readonly number[]])[]
  readonly latencies: readonly (readonly [principal: string, counts: readonly number[]])[]
}

/** What a full bucket counts further principals and labels as. */
export const OTHER = 'other'
/** Rows of a dimension in a bucket; a bucket of an hour has five times as many. */
const MOST: Readonly<Record<Step, number>> = { minute: 200, hour: 1_000 }
const LONGEST = 200

export const keyOf = (step: Step, start: number, worker: string) => `${step}/${String(start).padStart(15, '0')}/${worker}`

/** The start of a bucket, from its key. */
export const startIn = (key: string): number => Number(key.split('/')[1])

/** Amounts in the order of `FIELDS`. */
export const amountsOf = (given: Partial<Record<Field, number>>): Counts => FIELDS.map(field => given[field] ?? 0)

export function addTo(sum: Counts, more: readonly number[]): void {
  for (let at = 0; at < more.length; at++) sum[at] = (sum[at] ?? 0) + more[at]!
}

/** Labels of a principal. Nested maps: joining three texts for each event costs more than counting it. */
type Rows = Map<string, Map<string, Counts>>

/** The counts of one span of time in this worker. Memory and record have a limit, whatever labels callers choose. */
export class Bucket {
  readonly step: Step
  readonly start: number
  isDirty = false
  readonly #rows = new Map<Dimension, Rows>()
  readonly #sizes = new Map<Dimension, number>()
  readonly #latencies = new Map<string, Counts>()

  constructor(step: Step, start: number) {
    this.step = step
    this.start = start
  }

  add(dimension: Dimension, principal: string, label: string, amounts: readonly number[]): void {
    addTo(this.#row(dimension, principal, label), amounts)
    this.isDirty = true
  }

  latency(principal: string, ms: number): void {
    const at = BOUNDS_MS.findIndex(bound => ms <= bound)
    this.#latenciesOf(principal)[at < 0 ? BOUNDS_MS.length : at]! += 1
    this.isDirty = true
  }

  /** Adds the counts of another bucket. */
  fold(other: Bucket): void {
    for (const [dimension, rows] of other.#rows)
      for (const [principal, labels] of rows) for (const [label, counts] of labels) this.add(dimension, principal, label, counts)
    for (const [principal, counts] of other.#latencies) addTo(this.#latenciesOf(principal), counts)
    this.isDirty = true
  }

  value(): Json {
    const rows: StoredBucket['rows'] = [...this.#rows].flatMap(([dimension, principals]) =>
      [...principals].flatMap(([principal, labels]) =>
        [...labels].map(([label, counts]) => [dimension, principal, label, counts] as const)
      )
    )
    return { rows, latencies: [...this.#latencies] } satisfies StoredBucket as unknown as Json
  }

  #latenciesOf(principal: string): Counts {
    const found = this.#latencies.get(principal)
    if (found) return found
    const name = this.#latencies.size < MOST[this.step] ? short(principal) : OTHER
    const counts = this.#latencies.get(name) ?? Array.from({ length: BOUNDS_MS.length + 1 }, () => 0)
    this.#latencies.set(name, counts)
    return counts
  }

  /** A label of a full dimension is counted as `other` of its principal, and of a further principal as `other` of all. */
  #row(dimension: Dimension, principal: string, label: string): Counts {
    const found = this.#rows.get(dimension)?.get(principal)?.get(label)
    if (found) return found
    const [who, what] = [short(principal), short(label)]
    return (
      this.#find(dimension, who, what, 0) ??
      this.#find(dimension, who, OTHER, MOST[this.step]) ??
      this.#find(dimension, OTHER, OTHER, Number.POSITIVE_INFINITY)!
    )
  }

  #find(dimension: Dimension, principal: string, label: string, spare: number): Counts | undefined {
    const rows = this.#rows.get(dimension) ?? (new Map() as Rows)
    const labels = rows.get(principal) ?? new Map<string, Counts>()
    const found = labels.get(label)
    if (found) return found
    const size = this.#sizes.get(dimension) ?? 0
    if (size >= MOST[this.step] + spare) return undefined
    const counts: Counts = FIELDS.map(() => 0)
    this.#rows.set(dimension, rows.set(principal, labels.set(label, counts)))
    this.#sizes.set(dimension, size + 1)
    return counts
  }
}

const short = (text: string) => text.slice(0, LONGEST).toWellFormed()
