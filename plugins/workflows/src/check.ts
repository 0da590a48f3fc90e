import type { Check, Store } from '@svc/core/contracts'
import { RUNS, type RunRecord } from './space.ts'
import type { Worker } from './worker.ts'

/** So many running runs are looked at for the figures. */
const LOOKED = 1_000

/** Whether this worker takes runs; and how many there are. */
export function createCheck(worker: Pick<Worker, 'trouble' | 'size'>, store: Store): Check {
  const probe: Check['probe'] = async () =>
    worker.trouble === undefined
      ? { status: 'healthy' }
      : { status: 'degraded', reason: `no runs are taken from the queue: ${worker.trouble}` }
  return {
    probe,
    async status(use) {
      const { records, next } = await store.range(RUNS, { index: 'by_status', equals: ['running'], limit: LOOKED }, use)
      const waiting = records.filter(({ value }) => (value as unknown as RunRecord).waiting.length > 0).length
      const detail = {
        runs_here: worker.size,
        runs_open: records.length,
        runs_waiting: waiting,
        ...(next === undefined ? {} : { and_more: true }),
      }
      return { ...(await probe(use)), detail }
    },
  }
}
