import { createHash } from 'node:crypto'
import type { Job, JobSchedule, JobState, Json, PublicError, Space, StoreOp } from '@svc/core/contracts'

/** Records of jobs by id. Their input, result and checkpoint are in `DATA`, so that lists stay small. */
export const JOBS = 'jobs'
/** `<id>/input`, `<id>/result`, `<id>/checkpoint`. */
export const DATA = 'job_data'
/** Ids of jobs by the hash of owner, kind and key. */
export const KEYS = 'job_keys'
/** Log entries; stream `<id>/<segment>`. */
export const LOG = 'job_log'

export const SPACE: Space = {
  name: 'jobs',
  version: 1,
  collections: {
    [JOBS]: {
      indexes: {
        by_kind: ['kind', 'state', 'next'],
        by_state: ['state', 'createdAt'],
        by_owner: ['owner', 'createdAt'],
        by_queue: ['state', 'owner'],
        by_expiry: ['expiresAt'],
      },
    },
    [DATA]: {},
    [KEYS]: {},
  },
  logs: [LOG],
}

/** A stored job. Times are Unix milliseconds. */
export interface JobRecord {
  readonly kind: string
  readonly state: JobState
  readonly owner: string
  /** The scopes of the owner when it added the job. */
  readonly scopes: readonly string[]
  readonly createdAt: number
  readonly due: number
  /** When a worker looks at it: its due time, or for a running job the time at which its worker can be dead. */
  readonly next: number
  readonly attempts: number
  readonly maxAttempts: number
  readonly group?: string
  /** Its key in `KEYS`. */
  readonly key?: string
  readonly schedule?: JobSchedule
  readonly progress?: NonNullable<Job['progress']>
  readonly isCancelling?: boolean
  readonly startedAt?: number
  readonly finishedAt?: number
  /** When it is deleted. */
  readonly expiresAt?: number
  readonly error?: PublicError
  /** The lease holder that executes it. */
  readonly holder?: string
  /** Number of stored log entries. */
  readonly logged: number
}

/** Maximum characters of JSON of an input, a result or a checkpoint. */
export const MOST_DATA = 1024 * 1024
/** Entries of a log segment. The last two segments are kept. */
export const SEGMENT = 500

export const leaseOf = (id: string) => `job/${id}`
export const takeLease = (kind: string) => `jobs.take/${kind}`
export const dataKey = (id: string, what: 'input' | 'result' | 'checkpoint') => `${id}/${what}`
export const segmentOf = (logged: number) => Math.floor(logged / SEGMENT)
export const streamOf = (id: string, segment: number) => `${id}/${segment}`

/** Keys of callers are hashed: they can be long, and contain anything. */
export const keyOf = (owner: string, kind: string, key: string) =>
  createHash('sha256')
    .update(JSON.stringify([owner, kind, key]))
    .digest('base64url')

export const putJob = (id: string, record: JobRecord, ifVersion?: number): StoreOp => ({
  op: 'put',
  collection: JOBS,
  key: id,
  value: record as unknown as Json,
  ...(ifVersion === undefined ? {} : { ifVersion }),
})

export const putData = (id: string, what: 'input' | 'result' | 'checkpoint', value: Json): StoreOp => ({
  op: 'put',
  collection: DATA,
  key: dataKey(id, what),
  value,
})

/** Operations that delete a job with its data and log. */
export function deleteOps(id: string, record: JobRecord, ifVersion: number): StoreOp[] {
  const segment = segmentOf(record.logged)
  const streams = [segment - 1, segment].filter(at => at >= 0)
  return [
    { op: 'delete', collection: JOBS, key: id, ifVersion },
    ...(['input', 'result', 'checkpoint'] as const).map(what => ({
      op: 'delete' as const,
      collection: DATA,
      key: dataKey(id, what),
    })),
    ...streams.map(at => ({ op: 'drop' as const, log: LOG, id: streamOf(id, at) })),
    ...(record.key === undefined ? [] : [{ op: 'delete' as const, collection: KEYS, key: record.key }]),
  ]
}

export const isFinal = (state: JobState): boolean => state !== 'queued' && state !== 'running'

/** The request id of an attempt, under which its events, traces and log lines are found. */
export const requestIdOf = (id: string, { attempts }: Pick<JobRecord, 'attempts'>): string => `${id}-${attempts}`

/** The job as callers see it. */
export function jobOf(id: string, record: JobRecord): Job {
  const { kind, state, owner, createdAt, due, attempts, maxAttempts } = record
  const { group, schedule, progress, isCancelling, startedAt, finishedAt, error } = record
  return {
    id,
    kind,
    state,
    owner,
    createdAt,
    due,
    attempts,
    maxAttempts,
    ...(group === undefined ? {} : { group }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(progress === undefined ? {} : { progress }),
    ...(isCancelling && state === 'running' ? { isCancelling } : {}),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
    ...(error === undefined ? {} : { error }),
  }
}
