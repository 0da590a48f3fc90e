import type { Check, Store } from '@svc/core/contracts'
import { openRuns } from './open-runs.ts'
import type { Worker } from './worker.ts'

/** Whether this worker takes runs; and how many there are. */
export function createCheck(worker: Pick<Worker, 'trouble' | 'size'>, store: Store): Check {
  const probe: Check['probe'] = async () =>
    worker.trouble === undefined
      ? { status: 'healthy' }
      : { status: 'degraded', reason: `no runs are taken from the queue: ${worker.trouble}` }
  return {
    probe,
    async status(use) {
      const { open, waiting, andMore } = await openRuns(store, use)
      const detail = { runs_here: worker.size, runs_open: open, runs_waiting: waiting, ...(andMore ? { and_more: true } : {}) }
      return { ...(await probe(use)), detail }
    },
  }
}
