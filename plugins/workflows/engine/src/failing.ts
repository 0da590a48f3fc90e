import type { CallContext } from '@svc/core'
import type { Json, RunClaim, Store } from '@svc/core/contracts'
import type { Left } from './drive-parts.ts'
import { toPublicError } from './errors.ts'
import { metricsOf } from './metrics.ts'
import type { Loader } from './loader.ts'
import { LOG, RUNS, type RunRecord } from './space.ts'

export interface FailingParts {
  readonly store: Store
  readonly loader: Loader
  readonly lasting: CallContext
}

/** Ends a run that cannot even be made ready. Throws where the store does not take it. */
export async function failRun({ store, loader, lasting }: FailingParts, { id, fence }: RunClaim, reason: unknown): Promise<Left> {
  const record = await loader.record(id, lasting)
  if (record?.status !== 'running') return { how: 'over' }
  const [at, error, history] = [Date.now(), toPublicError(reason), await loader.history(id, lasting)]
  const ended = metricsOf(history, record.nodes, false)
  const failed: RunRecord = { ...record, status: 'failed', error, waiting: [], updatedAt: at, finishedAt: at, ended }
  const over = { t: 'over', at, status: 'failed', error } as unknown as Json
  const append = { op: 'append', log: LOG, id, values: [over], ifLength: history.length } as const
  await store.batch([append, { op: 'put', collection: RUNS, key: id, value: failed as unknown as Json }], { fence }, lasting)
  return { how: 'ended', record: failed }
}
