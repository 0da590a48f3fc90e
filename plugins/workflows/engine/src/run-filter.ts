import type { CallContext } from '@svc/core'
import type { RangeQuery, RunFilter } from '@svc/core/contracts'
import type { RunRecord } from './space.ts'

/** Whether a principal sees a run. */
export const isSeen = ({ owner }: RunRecord, ctx: CallContext) => owner === ctx.principal.id || seesAll(ctx)
export const seesAll = ({ principal }: CallContext) => principal.scopes.includes('*') || principal.scopes.includes('admin')

/** Whether a run has failed for good: it was not cancelled, and no other run continues it. */
export const isDead = ({ status, error, continuedBy }: RunRecord) =>
  status === 'failed' && error?.code !== 'CANCELLED' && continuedBy === undefined

const isPaused = ({ status, pausedAt }: RunRecord) => status === 'running' && pausedAt !== undefined

/** The range of the store that contains all runs of a filter, in the order of a list. */
export function rangeOf({ since, until, owner, dead }: RunFilter, ctx: CallContext): Omit<RangeQuery, 'limit' | 'cursor'> {
  const times = { ...(since === undefined ? {} : { from: since }), ...(until === undefined ? {} : { to: until }) }
  if (dead === true) return { index: 'by_status', equals: ['failed'], ...times }
  if (!seesAll(ctx)) return { index: 'by_owner', equals: [ctx.principal.id], ...times }
  return owner === undefined ? { index: 'by_time', ...times } : { index: 'by_owner', equals: [owner], ...times }
}

/** Whether a run in this range meets all conditions of the filter. */
export function meets(record: RunRecord, { workflow, status, errorCode, owner, dead, paused }: RunFilter): boolean {
  return (
    (workflow ?? record.workflow) === record.workflow &&
    (status ?? record.status) === record.status &&
    (errorCode === undefined || record.error?.code === errorCode) &&
    (owner ?? record.owner) === record.owner &&
    (dead !== true || isDead(record)) &&
    (paused ?? isPaused(record)) === isPaused(record)
  )
}
