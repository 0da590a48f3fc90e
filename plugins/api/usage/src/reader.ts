import { type CallContext, svcError } from '@svc/core'
import type { Store } from '@svc/core/contracts'
import {
  addTo,
  BOUNDS_MS,
  BUCKETS,
  type Counts,
  type Dimension,
  type Field,
  FIELDS,
  OTHER,
  startIn,
  type Step,
  STEP_MS,
  type StoredBucket,
} from './recorder.ts'

/** What can be counted by. `principal` and `provider` are not stored: they are parts of other rows. */
export type By = 'principal' | 'route' | 'status' | 'provider' | 'model' | 'conversation' | 'workflow' | 'tool'

export interface UsageQuery {
  /** Unix milliseconds. */
  readonly from: number
  readonly to: number
  readonly step: Step
  readonly by: By | undefined
  /** The only principal that counts; all without it. */
  readonly principal: string | undefined
}

/** Counts by label, of one bucket or of all. */
type CountsByLabel = ReadonlyMap<string, Counts>

export interface UsagePoint {
  readonly start: number
  readonly counts: CountsByLabel
  /** Latencies of the requests, by `BOUNDS_MS`. */
  readonly latencies: Counts
}

const PAGE = 500
/** Buckets that one request reads. */
const MOST_BUCKETS = 20_000

/** Reads the buckets of all workers, the oldest first. Buckets of the same start are one point. */
export async function readUsage(store: Store, query: UsageQuery, ctx: CallContext): Promise<readonly UsagePoint[]> {
  const { step, from, to } = query
  const points = new Map<number, { counts: Map<string, Counts>; latencies: Counts }>()
  const keyAt = (time: number) => `${step}/${String(Math.max(0, time)).padStart(15, '0')}`
  let cursor: string | undefined
  let seen = 0
  do {
    const range = { from: keyAt(from), to: keyAt(to), limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
    const page = await store.range(BUCKETS, range, ctx)
    for (const { key, value } of page.records) {
      const start = startIn(key)
      const point = points.get(start) ?? { counts: new Map(), latencies: BOUNDS_MS.map(() => 0).concat(0) }
      points.set(start, point)
      addBucket(point, value as unknown as StoredBucket, query)
    }
    seen += page.records.length
    cursor = page.next
  } while (cursor !== undefined && seen < MOST_BUCKETS)
  if (cursor !== undefined) throw tooMuch()
  return [...points].map(([start, point]) => ({ start, ...point }))
}

function addBucket(
  point: { counts: Map<string, Counts>; latencies: Counts },
  bucket: StoredBucket,
  { by, principal }: UsageQuery
) {
  const dimension = dimensionOf(by)
  for (const [rowDimension, rowPrincipal, label, counts] of bucket.rows) {
    if (rowDimension !== dimension || (principal !== undefined && rowPrincipal !== principal)) continue
    const name = nameOf(by, rowPrincipal, label)
    const sum = point.counts.get(name) ?? FIELDS.map(() => 0)
    point.counts.set(name, sum)
    addTo(sum, counts)
  }
  for (const [rowPrincipal, counts] of bucket.latencies)
    if (principal === undefined || rowPrincipal === principal) addTo(point.latencies, counts)
}

const dimensionOf = (by: By | undefined): Dimension => {
  if (by === undefined || by === 'principal') return 'total'
  return by === 'provider' ? 'model' : by
}

function nameOf(by: By | undefined, principal: string, label: string): string {
  if (by === undefined) return ''
  if (by === 'principal') return principal
  // names of providers have no slash
  return by === 'provider' && label !== OTHER ? label.slice(0, label.indexOf('/')) : label
}

/** The sums over all points. */
export function sumsOf(points: readonly UsagePoint[]): Map<string, Counts> {
  const sums = new Map<string, Counts>()
  for (const { counts } of points)
    for (const [label, own] of counts) {
      const sum = sums.get(label) ?? FIELDS.map(() => 0)
      sums.set(label, sum)
      addTo(sum, own)
    }
  return sums
}

export const fieldOf = (counts: readonly number[] | undefined, field: Field): number => counts?.[FIELDS.indexOf(field)] ?? 0

/** The bound below which this part of the requests is, between two bounds by proportion. `null` without requests. */
export function quantileOf(latencies: readonly number[], part: number): number | null {
  const count = latencies.reduce((sum, own) => sum + own, 0)
  if (count === 0) return null
  let left = part * count
  for (const [at, own] of latencies.entries()) {
    const [low, high] = [BOUNDS_MS[at - 1] ?? 0, BOUNDS_MS[at] ?? BOUNDS_MS.at(-1)!]
    if (own >= left) return own === 0 ? low : low + ((high - low) * left) / own
    left -= own
  }
  return BOUNDS_MS.at(-1)!
}

/** The start of the bucket of a time. */
export const floorTo = (step: Step, time: number) => Math.floor(time / STEP_MS[step]) * STEP_MS[step]

const tooMuch = () =>
  svcError('INVALID_VALUE', 'the range has more usage records than one request can add up', {
    details: { field: 'from', reason: 'is too long ago' },
    hint: 'Choose a shorter range',
  })
