import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf } from '@svc/core'
import type {
  BulkAction,
  BulkOutcome,
  BulkRequest,
  JobKind,
  Jobs,
  JobStep,
  JobTask,
  Json,
  RunFilter,
  Store,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { invalid, jobsUnavailable, toPublicError } from './errors.ts'
import { isDead, isSeen, meets, rangeOf } from './run-filter.ts'
import type { RunActions } from './run-actions.ts'
import type { RunStarter } from './run-starter.ts'
import { type RunRecord, RUNS } from './space.ts'

export interface BulkOptions {
  readonly store: Store
  readonly jobs: Jobs | undefined
  readonly runActions: RunActions
  readonly starting: RunStarter
  readonly publish: Publish
}

/** The job kind that changes many runs. Its input is a `BulkRequest`, checked by `checkedRequest`. */
export const BULK_KIND = 'workflows.bulk'

/** More runs than these are changed in a job. */
const PAGE = 200
/** How many runs one retry or drop at a time. */
const WIDTH = 8
const MOST_ERRORS = 20
/** How long a page of cancelled runs has to end, and how often that is looked up. */
const [ENDING_MS, LOOK_MS] = [10_000, 100]

const text = { type: 'string', minLength: 1, maxLength: 1_000 }

type Failure = NonNullable<BulkOutcome['failed']>[number]

/** What a bulk change has done so far. */
interface Sum {
  readonly changed: number
  readonly pending: number
  readonly failed: number
  readonly errors: readonly Failure[]
}
const NOTHING: Sum = { changed: 0, pending: 0, failed: 0, errors: [] }

const added = (sum: Sum, more: Sum): Sum => ({
  changed: sum.changed + more.changed,
  pending: sum.pending + more.pending,
  failed: sum.failed + more.failed,
  errors: [...sum.errors, ...more.errors].slice(0, MOST_ERRORS),
})

/** What each action selects, besides the filter. */
const SELECTS: { readonly [action in BulkAction]: (record: RunRecord, filter: RunFilter) => boolean } = {
  cancel: ({ status }) => status === 'running',
  // a cancelled run is only retried where that is asked for
  retry: (record, { errorCode }) =>
    isDead(record) || (errorCode === 'CANCELLED' && record.status === 'failed' && record.continuedBy === undefined),
  drop: record => isDead(record),
}
const STATUS = { cancel: 'running', retry: 'failed', drop: 'failed' } as const

/** Cancels, retries and drops runs by filter. */
export class BulkRuns {
  readonly #options: BulkOptions

  constructor(options: BulkOptions) {
    this.#options = options
  }

  /** Changes at most a page of runs at once, and more in a job. */
  async bulk(request: BulkRequest, ctx: CallContext): Promise<BulkOutcome> {
    const { jobs, publish } = this.#options
    const checked = checkedRequest(request)
    const ids: string[] = []
    let count = 0
    for await (const page of this.#selected(checked, ctx)) {
      count += page.length
      if (ids.length <= PAGE) ids.push(...page)
    }
    if (request.dryRun === true) return { count }
    if (count > PAGE) {
      if (!jobs) throw jobsUnavailable()
      const { id } = await jobs.add({ kind: BULK_KIND, input: checked as unknown as Json }, ctx)
      return { count, job: id }
    }
    const sum = await this.#change(checked, ids, ctx)
    publishBulk(publish, checked, sum, ctx)
    return { count, changed: sum.changed, pending: sum.pending, failed: sum.errors }
  }

  /** The job kind. A second attempt goes on where the first ended: changed runs are no longer selected. */
  get kind(): JobKind {
    return {
      description: 'Cancel, retry or drop the workflow runs that meet all conditions',
      scope: 'workflows',
      attempts: 10,
      timeoutMs: 24 * 3_600_000,
      input: {
        type: 'object',
        additionalProperties: false,
        required: ['action', 'filter'],
        properties: {
          action: { enum: ['cancel', 'retry', 'drop'] },
          filter: {
            type: 'object',
            additionalProperties: false,
            properties: {
              workflow: text,
              status: { enum: ['running', 'failed'] },
              errorCode: text,
              owner: text,
              since: { type: 'integer' },
              until: { type: 'integer' },
            },
          },
        },
      },
      run: (task, ctx) => this.#job(task, ctx),
    }
  }

  async *#job(task: JobTask, ctx: CallContext): AsyncGenerator<JobStep, void> {
    const request = checkedRequest(task.input as unknown as BulkRequest)
    let sum = (task.checkpoint as unknown as Sum | undefined) ?? NOTHING
    let total = sum.changed
    for await (const page of this.#selected(request, ctx)) total += page.length
    for await (const page of this.#selected(request, ctx)) {
      for (let from = 0; from < page.length; from += PAGE) {
        ctx.signal.throwIfAborted()
        sum = added(sum, await this.#change(request, page.slice(from, from + PAGE), ctx))
        const done = sum.changed + sum.pending + sum.failed
        yield { type: 'checkpoint', value: sum as unknown as Json }
        yield { type: 'progress', progress: done, total: Math.max(total, done), message: `${done} runs` }
      }
    }
    publishBulk(this.#options.publish, request, sum, ctx)
    const { changed, pending, failed, errors } = sum
    yield { type: 'result', value: { changed, pending, failed, errors: errors as unknown as Json } }
  }

  /** The ids of the selected runs, page by page, oldest first. The order does not change while they change. */
  async *#selected({ action, filter }: BulkRequest, ctx: CallContext): AsyncGenerator<string[], void> {
    const range = { ...rangeOf(filter, ctx), limit: PAGE }
    for (let cursor: string | undefined; ; ) {
      const page = await this.#options.store.range(RUNS, { ...range, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      const ids = page.records.flatMap(({ key, value }) => {
        const record = value as unknown as RunRecord
        return isSeen(record, ctx) && meets(record, filter) && SELECTS[action](record, filter) ? [key] : []
      })
      if (ids.length > 0) yield ids
      cursor = page.next
      if (cursor === undefined) return
    }
  }

  #change({ action }: BulkRequest, ids: readonly string[], ctx: CallContext): Promise<Sum> {
    const { runActions, starting } = this.#options
    if (action === 'cancel') return this.#cancel(ids, ctx)
    if (action === 'retry') return each(ids, id => starting.retry(id, { detached: true, once: true }, ctx))
    return each(ids, id => runActions.drop(id, ctx))
  }

  async #cancel(ids: readonly string[], ctx: CallContext): Promise<Sum> {
    await this.#options.runActions.cancelAll(ids, ctx)
    let open = [...ids]
    for (const until = performance.now() + ENDING_MS; open.length > 0 && performance.now() < until; ) {
      const records = await Promise.all(open.map(id => this.#options.store.get(RUNS, id, ctx)))
      open = open.filter((_, at) => (records[at]?.value as unknown as RunRecord | undefined)?.status === 'running')
      if (open.length > 0) await sleep(LOOK_MS, undefined, { signal: ctx.signal })
    }
    return { ...NOTHING, changed: ids.length - open.length, pending: open.length }
  }
}

/** Changes runs one by one, some at a time. One that another caller has changed meanwhile is a failure. */
async function each(ids: readonly string[], change: (id: string) => Promise<unknown>): Promise<Sum> {
  let sum = NOTHING
  const left = [...ids]
  const lane = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      try {
        await change(id)
        sum = added(sum, { ...NOTHING, changed: 1 })
      } catch (error) {
        // the store is away: the job is tried again
        if (codeOf(error)?.startsWith('STORE_UN') === true) throw error
        const { code, message } = toPublicError(error)
        sum = added(sum, { ...NOTHING, failed: 1, errors: [{ run: id, code, message }] })
      }
    }
  }
  await Promise.all(Array.from({ length: WIDTH }, lane))
  return sum
}

/** Checks a request, and leaves out runs that are created from now on. Throws INVALID_VALUE. */
function checkedRequest({ action, filter }: BulkRequest): BulkRequest {
  const { workflow, status, errorCode, owner, since, until } = filter
  if ([workflow, status, errorCode, owner, since, until].every(condition => condition === undefined))
    throw invalid('workflow', 'is needed, or another condition: status, failure_code, since, until or owner')
  if (status !== undefined && status !== STATUS[action])
    throw invalid('status', `must be ${STATUS[action]} for the action ${action}`, { value: status })
  if (errorCode !== undefined && action === 'cancel')
    throw invalid('error_code', 'is not for the action cancel', { value: errorCode })
  const given = { workflow, status, errorCode, owner, since }
  const conditions = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { action, filter: { ...conditions, until: Math.min(until ?? Number.POSITIVE_INFINITY, Date.now() + 1) } }
}

const DONE = { cancel: 'cancelled', retry: 'retried', drop: 'dropped' } as const

function publishBulk(publish: Publish, { action, filter }: BulkRequest, sum: Sum, ctx: CallContext): void {
  const { workflow, errorCode, owner } = filter
  const after = { workflow, failure_code: errorCode, owner, changed: sum.changed, pending: sum.pending, failed: sum.failed }
  publish({ type: `workflow_runs_${DONE[action]}`, subject: 'workflows/runs', after }, ctx)
}
