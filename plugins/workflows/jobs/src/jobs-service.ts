import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf } from '@svc/core'
import type {
  Job,
  JobDetail,
  JobKindRecord,
  JobLogEntry,
  JobQuery,
  JobRequest,
  Jobs,
  JobState,
  JobSchedule,
  PreparedJob,
  RangePage,
  RangeQuery,
  Store,
  StoreOp,
  StoreRecord,
} from '@svc/core/contracts'
import { timelyId } from '@svc/storage-kit'
import { dataOf, final, hasSecret } from './attempt.ts'
import { invalid, jobUnknown, queueFull, wrongState } from './errors.ts'
import type { Kinds } from './kinds.ts'
import {
  DATA,
  dataKey,
  isFinal,
  jobOf,
  type JobRecord,
  JOBS,
  KEYS,
  keyOf,
  LOG,
  putData,
  putJob,
  segmentOf,
  SEGMENT,
  streamOf,
} from './space.ts'

export interface JobsServiceOptions {
  readonly store: Store
  readonly kinds: Kinds
  readonly keepCompletedMs: number
  /** Maximum number of queued jobs of a principal. */
  readonly maxQueued: number
  /** Makes the worker of this process look for due jobs. */
  readonly wake: () => void
  /** Asks all workers to cancel a running job. */
  readonly cancelEverywhere: (id: string) => Promise<void>
  readonly lasting: CallContext
}

const [MOST_LISTED, MOST_PAGES, MOST_LOGGED] = [200, 20, 2 * SEGMENT]
const LOOK_MS = 100
const [COUNT_EVERY, COUNT_PAGE] = [100, 1000]
const CANCEL_WAIT_MS = 10_000
const LONGEST_WAIT_MS = 600_000
const LONGEST_NAME = 200
const STATES: readonly string[] = ['queued', 'running', 'completed', 'failed', 'cancelled'] satisfies JobState[]

const seesAll = ({ principal }: CallContext) => principal.scopes.includes('*') || principal.scopes.includes('admin')

/** Adds, shows and changes jobs. Workers execute them. */
export class JobsService implements Jobs {
  readonly #options: JobsServiceOptions
  /** Number of jobs that each principal has added in this process. */
  readonly #added = new Map<string, number>()

  constructor(options: JobsServiceOptions) {
    this.#options = options
  }

  async add(request: JobRequest, ctx: CallContext): Promise<Job> {
    const { store, wake } = this.#options
    for (;;) {
      const existing = await this.#existing(request, ctx)
      if (existing) return existing
      const { id, record, ops } = await this.#prepare(request, ctx)
      try {
        await store.batch(ops, {}, ctx)
      } catch (error) {
        // another caller has added a job with the same key
        if (codeOf(error) !== 'STORE_CONFLICT' || record.key === undefined) throw error
        continue
      }
      wake()
      return jobOf(id, record)
    }
  }

  async prepare(request: JobRequest, ctx: CallContext): Promise<PreparedJob> {
    const { id, ops } = await this.#prepare(request, ctx)
    return { id, ops }
  }

  async kinds({ principal }: CallContext): Promise<readonly JobKindRecord[]> {
    return this.#options.kinds.list(principal)
  }

  async wake(): Promise<void> {
    this.#options.wake()
  }

  async get(id: string, ctx: CallContext): Promise<JobDetail> {
    const { store } = this.#options
    const { record } = await this.#seen(id, ctx)
    const read = async (what: 'input' | 'result' | 'checkpoint') => (await store.get(DATA, dataKey(id, what), ctx))?.value
    const [input, result, checkpoint] = [await read('input'), await read('result'), await read('checkpoint')]
    return {
      ...jobOf(id, record),
      input: input ?? null,
      ...(record.state === 'completed' && result !== undefined ? { result } : {}),
      ...(checkpoint === undefined ? {} : { checkpoint }),
    }
  }

  async list(query: JobQuery, ctx: CallContext): Promise<{ readonly jobs: readonly Job[]; readonly next?: string }> {
    const { kind, state, group, limit } = query
    checkLimit(limit, MOST_LISTED)
    if (state !== undefined && !STATES.includes(state)) throw invalid('state', `must be one of ${STATES.join(', ')}`)
    const range = rangeOf(state, ctx)
    const jobs: Job[] = []
    let next = query.cursor
    for (let page = 0; page < MOST_PAGES; page++) {
      const found = await this.#page(
        { ...range, limit: limit - jobs.length, ...(next === undefined ? {} : { cursor: next }) },
        ctx
      )
      for (const { key, value } of found.records) {
        const record = value as unknown as JobRecord
        const isWanted =
          (kind ?? record.kind) === record.kind &&
          (state ?? record.state) === record.state &&
          (group ?? record.group) === record.group
        if (isWanted) jobs.push(jobOf(key, record))
      }
      next = found.next
      if (next === undefined || jobs.length >= limit) break
    }
    return { jobs, ...(next === undefined ? {} : { next }) }
  }

  async log(id: string, limit: number, ctx: CallContext): Promise<readonly JobLogEntry[]> {
    const { store } = this.#options
    checkLimit(limit, MOST_LOGGED)
    const { record } = await this.#seen(id, ctx)
    const segment = segmentOf(record.logged)
    const entries: JobLogEntry[] = []
    for (const at of [segment - 1, segment].filter(number => number >= 0))
      for (const { value } of await store.read(LOG, streamOf(id, at), { limit: SEGMENT }, ctx))
        entries.push(value as unknown as JobLogEntry)
    return entries.slice(-limit)
  }

  async settled(id: string, waitMs: number, ctx: CallContext): Promise<JobDetail> {
    if (!(waitMs >= 0 && waitMs <= LONGEST_WAIT_MS)) throw invalid('waitMs', `must be a number from 0 to ${LONGEST_WAIT_MS}`)
    await this.#untilFinal(id, waitMs, ctx)
    return this.get(id, ctx)
  }

  async cancel(id: string, ctx: CallContext): Promise<Job> {
    const { keepCompletedMs, cancelEverywhere } = this.#options
    const cancelled = await this.#change(id, ctx, record => {
      if (record.state === 'queued') return final(record, 'cancelled', keepCompletedMs, {})
      if (record.state === 'running') return { ...record, isCancelling: true }
      if (record.state === 'cancelled') return record
      throw wrongState(id, record.state, 'queued or running')
    })
    if (isFinal(cancelled.state)) return jobOf(id, cancelled)
    await cancelEverywhere(id)
    return jobOf(id, await this.#untilFinal(id, CANCEL_WAIT_MS, ctx))
  }

  async retry(id: string, ctx: CallContext): Promise<Job> {
    const record = await this.#change(id, ctx, before => {
      if (before.state !== 'failed' && before.state !== 'cancelled') throw wrongState(id, before.state, 'failed or cancelled')
      const { error: _, finishedAt: __, expiresAt: ___, progress: ____, ...kept } = before
      const now = Date.now()
      return { ...kept, state: 'queued', attempts: 0, due: now, next: now }
    })
    this.#options.wake()
    return jobOf(id, record)
  }

  /** The job that an earlier request with the same key has added. */
  async #existing({ kind, key }: JobRequest, ctx: CallContext): Promise<Job | undefined> {
    if (key === undefined) return undefined
    checkName('key', key)
    const { store } = this.#options
    const found = await store.get(KEYS, keyOf(ctx.principal.id, kind, key), ctx)
    if (!found) return undefined
    const { job } = found.value as unknown as { readonly job: string }
    const stored = await store.get(JOBS, job, ctx)
    return stored && jobOf(job, stored.value as unknown as JobRecord)
  }

  async #prepare(request: JobRequest, ctx: CallContext): Promise<PreparedJob & { readonly record: JobRecord }> {
    const { kinds } = this.#options
    const { kind, due = Date.now(), group, key, schedule } = request
    if (group !== undefined) checkName('group', group)
    if (key !== undefined) checkName('key', key)
    if (!Number.isSafeInteger(due) || due < 0) throw invalid('due', 'must be a time in Unix milliseconds')
    if (schedule !== undefined) checkSchedule(schedule)
    const input = await kinds.check(request, dataOf('input', request.input), ctx.principal)
    if (hasSecret(input)) throw invalid('input', 'must not contain a secret: the job can read it itself')
    await this.#checkQueue(ctx)
    const [id, now] = [timelyId(), Date.now()]
    const { id: owner, scopes } = ctx.principal
    const keyHash = key === undefined ? undefined : keyOf(owner, kind, key)
    const record: JobRecord = {
      kind,
      state: 'queued',
      owner,
      scopes: [...scopes],
      createdAt: now,
      due,
      next: due,
      attempts: 0,
      maxAttempts: kinds.limits(kind).attempts,
      logged: 0,
      ...(group === undefined ? {} : { group }),
      ...(schedule === undefined ? {} : { schedule: { name: schedule.name, tick: schedule.tick } }),
      ...(keyHash === undefined ? {} : { key: keyHash }),
    }
    const ops: StoreOp[] = [putJob(id, record, 0), putData(id, 'input', input)]
    if (keyHash !== undefined) ops.push({ op: 'put', collection: KEYS, key: keyHash, value: { job: id }, ifVersion: 0 })
    return { id, record, ops }
  }

  /** Counts the queued jobs of a principal, now and then, because many small jobs are expensive to count. Throws JOB_QUEUE_FULL. */
  async #checkQueue({ principal: { id: owner } }: CallContext): Promise<void> {
    const { store, maxQueued, lasting } = this.#options
    const added = this.#added.get(owner) ?? 0
    this.#added.set(owner, added + 1)
    if (added % COUNT_EVERY !== 0) return
    let [count, cursor]: [number, string | undefined] = [0, undefined]
    do {
      const query = {
        index: 'by_queue',
        equals: ['queued', owner],
        limit: COUNT_PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      }
      const page: RangePage = await store.range(JOBS, query, lasting)
      count += page.records.length
      cursor = page.next
    } while (cursor !== undefined && count < maxQueued)
    if (count < maxQueued) return
    // the next request counts again
    this.#added.set(owner, added)
    throw queueFull(maxQueued)
  }

  /** Throws INVALID_VALUE for an invalid cursor. */
  async #page(query: RangeQuery, ctx: CallContext) {
    try {
      return await this.#options.store.range(JOBS, query, ctx)
    } catch (error) {
      const isCursor = codeOf(error) === 'STORE_INVALID' && query.cursor !== undefined
      throw isCursor ? invalid('cursor', 'must be the cursor of an earlier page') : error
    }
  }

  /** The record of a job. Throws JOB_UNKNOWN, also for jobs of other owners. */
  async #seen(id: string, ctx: CallContext): Promise<{ readonly record: JobRecord; readonly found: StoreRecord }> {
    const found = isId(id) ? await this.#options.store.get(JOBS, id, ctx) : undefined
    const record = found?.value as unknown as JobRecord | undefined
    if (!found || !record || (record.owner !== ctx.principal.id && !seesAll(ctx))) throw jobUnknown(String(id))
    return { record, found }
  }

  async #change(id: string, ctx: CallContext, change: (record: JobRecord) => JobRecord): Promise<JobRecord> {
    for (;;) {
      const { record, found } = await this.#seen(id, ctx)
      const next = change(record)
      if (next === record) return record
      try {
        await this.#options.store.batch([putJob(id, next, found.version)], {}, ctx)
        return next
      } catch (error) {
        if (codeOf(error) !== 'STORE_CONFLICT') throw error
      }
    }
  }

  async #untilFinal(id: string, waitMs: number, ctx: CallContext): Promise<JobRecord> {
    const until = performance.now() + waitMs
    for (;;) {
      const { record } = await this.#seen(id, ctx)
      const left = until - performance.now()
      if (isFinal(record.state) || left <= 0) return record
      await sleep(Math.min(left, LOOK_MS), undefined, { signal: ctx.signal })
    }
  }
}

/** Jobs of all states, newest first. */
function rangeOf(state: JobState | undefined, ctx: CallContext): Omit<RangeQuery, 'limit'> {
  if (!seesAll(ctx)) return { index: 'by_owner', equals: [ctx.principal.id], reverse: true }
  return state === undefined ? { reverse: true } : { index: 'by_state', equals: [state], reverse: true }
}

function checkLimit(limit: number, most: number): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > most) throw invalid('limit', `must be an integer from 1 to ${most}`)
}

const isId = (id: unknown): id is string => typeof id === 'string' && /^[0-9a-f-]{36}$/.test(id)

function checkName(field: string, value: unknown): void {
  const isName =
    typeof value === 'string' && value !== '' && value.length <= LONGEST_NAME && value.isWellFormed() && !value.includes('\0')
  if (!isName) throw invalid(field, `must be a text of 1 to ${LONGEST_NAME} characters`)
}

function checkSchedule({ name, tick }: JobSchedule): void {
  checkName('schedule.name', name)
  if (!Number.isSafeInteger(tick)) throw invalid('schedule.tick', 'must be a time in Unix milliseconds')
}
