import type { Use } from '@svc/core'
import type { Store } from '@svc/core/contracts'
import { RUNS, type RunRecord } from './space.ts'

/** Runs that have not ended, of all workers. */
export interface OpenRuns {
  readonly open: number
  /** Those of them that were parked when they were written last: for a person, an event, or a time. */
  readonly waiting: number
  /** There are more than were looked at. */
  readonly andMore: boolean
}

/** So many are looked at: figures are asked for often. */
const LOOKED = 1_000

export async function openRuns(store: Store, use: Use): Promise<OpenRuns> {
  const { records, next } = await store.range(RUNS, { index: 'by_status', equals: ['running'], limit: LOOKED }, use)
  const waiting = records.filter(({ value }) => (value as unknown as RunRecord).waiting.length > 0).length
  return { open: records.length, waiting, andMore: next !== undefined }
}
