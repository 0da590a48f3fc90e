import { type CallContext, defineService, defineSlot, type JsonSchema } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Fence, Json, StoreOp } from './store.ts'

/**
 * State of a job. `queued`: it waits for its time, or for a free worker. `running`: one worker executes it. The other states
 * are final. `failed` jobs are the dead letters: they are kept for `jobs.keep_failed`, and can be retried.
 */
export type JobState = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'

/** The tick of a schedule that started a job. `tick` is its time in Unix milliseconds. */
export interface JobSchedule {
  readonly name: string
  readonly tick: number
}

/** What a job kind receives to execute a job once. */
export interface JobTask {
  readonly id: string
  readonly kind: string
  readonly input: Json
  /** Number of this attempt, from 1. */
  readonly attempt: number
  /** The lease of the job. Put it into the batches of your own writes: the store rejects them once another worker has the job. */
  readonly fence: Fence
  /** The last checkpoint of an earlier attempt. */
  readonly checkpoint?: Json
  /** Set for a job of a schedule. */
  readonly schedule?: JobSchedule
}

export type JobLogLevel = 'debug' | 'info' | 'warning' | 'error'

/**
 * Events of a running job. A job without a `result` has the result null. A `checkpoint` is given to the next attempt. In the
 * process of svc, the job continues when it is stored; an isolated plugin can be up to 64 steps ahead. Limits: 1 MiB of JSON for a
 * result or checkpoint, the last 1000 log entries of 2000 characters.
 */
export type JobStep =
  | { readonly type: 'progress'; readonly progress: number; readonly total?: number; readonly message?: string }
  | { readonly type: 'log'; readonly level: JobLogLevel; readonly message: string }
  | { readonly type: 'checkpoint'; readonly value: Json }
  | { readonly type: 'result'; readonly value: Json }

/**
 * A kind of background work. All members but `run` are data. The same job can run more than once (its worker died, or an attempt
 * failed), but never twice at the same time. So make the work repeatable, or use `checkpoint` and `fence`.
 */
export interface JobKind {
  readonly description: string
  /** JSON Schema of the input. `Jobs` validates the input when a job is added. */
  readonly input?: JsonSchema
  /** Maximum number of jobs of this kind that run at the same time, over all workers. Default: no limit. */
  readonly concurrency?: number
  /**
   * Its jobs only wait for other work of svc, such as a workflow run: they take no place of `jobs.concurrency`, at most 1000 run in
   * a worker, and a shutdown aborts them at once.
   */
  readonly waits?: true
  /** Time limit of an attempt in milliseconds. Default: `jobs.timeout_s`. */
  readonly timeoutMs?: number
  /** Maximum number of attempts, including those that ended with their worker. Default: `jobs.attempts`. */
  readonly attempts?: number
  /**
   * Delays in milliseconds: `firstMs` after the first failed attempt, doubled for each further one, up to `maxMs`. Or one by one in
   * `delaysMs`; the last also for further attempts.
   */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number } | { readonly delaysMs: readonly number[] }
  /**
   * The scope with which callers can add jobs of this kind. Without it, only the plugin that adds the kind, principals with the
   * scope `admin`, and svc itself can.
   */
  readonly scope?: string
  /**
   * Makes the kind internal: svc adds a job only for a request with the same value in `internal`, whatever its principal, and
   * refuses it over HTTP and in schedules. Use a random value, such as `crypto.randomUUID()`. Only plugins that may read the slot
   * `job_kinds` can learn it.
   */
  readonly internal?: string
  /**
   * Executes a job once. It fails by throwing; with `details.retryable` false there is no further attempt. When the signal
   * aborts (cancelled, time limit, lost lease, shutdown), it must end within `jobs.grace_s`. `ctx.principal` is the one that added the job.
   */
  run(task: JobTask, ctx: CallContext): AsyncIterable<JobStep>
}

/** Job kinds by name: `[a-z][a-z0-9_.-]*`, at most 64 characters. Start the name with that of your plugin. */
export const JobKinds = defineSlot<JobKind>('job_kinds', { api: 1, methods: { run: 'stream' } })

/** A job to add. */
export interface JobRequest {
  readonly kind: string
  /** At most 1 MiB of JSON. Default: null. */
  readonly input?: Json
  /** Unix milliseconds before which it does not start. Default: now. */
  readonly due?: number
  /** Jobs of the same kind and group run one at a time, by due time. 1 to 200 characters. */
  readonly group?: string
  /**
   * A later request of the same principal for the same kind with this key returns the existing job, as long as svc keeps it. 1 to
   * 200 characters.
   */
  readonly key?: string
  /** The tick that starts the job. */
  readonly schedule?: JobSchedule
  /** For an internal kind: the value of `JobKind.internal`. */
  readonly internal?: string
}

/** A job kind as callers see it. */
export interface JobKindRecord {
  readonly name: string
  readonly description: string
  /** The package of the plugin that adds it. */
  readonly plugin: string
  /** Absent: no limit. */
  readonly concurrency?: number
  readonly timeoutMs: number
  readonly attempts: number
  /** Whether only its plugin adds its jobs. */
  readonly isInternal: boolean
  /** Whether this caller can add jobs, or schedules, of the kind. */
  readonly canStart: boolean
  /** The scope, beside `admin`, with which callers can add its jobs. */
  readonly scope?: string
  /** JSON Schema of the input. */
  readonly input?: JsonSchema
}

/** State of a job. Times are Unix milliseconds. */
export interface Job {
  readonly id: string
  readonly kind: string
  readonly state: JobState
  /** The id of the principal that added it. */
  readonly owner: string
  readonly createdAt: number
  /** When it starts, or is tried again. For a running or ended job: when it was due last. */
  readonly due: number
  /** Number of attempts so far, including a running one. */
  readonly attempts: number
  readonly maxAttempts: number
  readonly group?: string
  readonly schedule?: JobSchedule
  /** The last reported progress of the present or last attempt. */
  readonly progress?: { readonly progress: number; readonly total?: number; readonly message?: string }
  /** Whether a running job was asked to stop. */
  readonly isCancelling?: boolean
  /** Start of the present or last attempt. */
  readonly startedAt?: number
  readonly finishedAt?: number
  /** Why it failed, or why the last attempt did. */
  readonly error?: PublicError
}

/** A job with its input and result. */
export interface JobDetail extends Job {
  readonly input: Json
  readonly result?: Json
  readonly checkpoint?: Json
}

/** An entry of the log of a job. `at` is Unix milliseconds. */
export interface JobLogEntry {
  readonly at: number
  readonly attempt: number
  readonly level: JobLogLevel
  readonly message: string
}

export interface JobQuery {
  readonly kind?: string
  readonly state?: JobState
  readonly group?: string
  /** 1 to 200. */
  readonly limit: number
  readonly cursor?: string
}

/** A job that is not stored yet. */
export interface PreparedJob {
  readonly id: string
  /**
   * Put these into a batch of your own: the job exists if and only if the batch is applied. They write to a space of svc: a plugin in
   * a process of its own needs the permission for the service `store`.
   */
  readonly ops: readonly StoreOp[]
}

/**
 * Background jobs, kept in the store: executed at least once, by one worker at a time, with fenced results. A principal sees
 * only its own jobs; the scope `admin` sees all. Errors: JOB_UNKNOWN (also for jobs of others), JOB_KIND_UNKNOWN, FORBIDDEN (this
 * principal cannot add jobs of this kind, or the kind is internal), JOB_TOO_LARGE (`details: {size, limit}` in characters of JSON), JOB_QUEUE_FULL, JOB_STATE (a cancel
 * or retry in the wrong state, `details: {state}`), INVALID_VALUE (`details: {field, reason}`).
 */
export interface Jobs {
  /** Adds a job. When it resolves, the job is stored and will run even if this process exits. */
  add(request: JobRequest, ctx: CallContext): Promise<Job>
  /**
   * Checks a request and returns the operations that add its job, for a batch with other changes. After the batch, call `wake`.
   * Without it, a worker finds the job within a second.
   */
  prepare(request: JobRequest, ctx: CallContext): Promise<PreparedJob>
  /** The job kinds of all plugins, by name. */
  kinds(ctx: CallContext): Promise<readonly JobKindRecord[]>
  /** Makes the workers of this process look for due jobs. */
  wake(ctx: CallContext): Promise<void>
  get(id: string, ctx: CallContext): Promise<JobDetail>
  /** Newest first. */
  list(query: JobQuery, ctx: CallContext): Promise<{ readonly jobs: readonly Job[]; readonly next?: string }>
  /** The last entries of its log, oldest first; at most `limit` (1 to 1000). */
  log(id: string, limit: number, ctx: CallContext): Promise<readonly JobLogEntry[]>
  /** Waits until a job has ended or `waitMs` have passed (at most 10 minutes), and returns its state. */
  settled(id: string, waitMs: number, ctx: CallContext): Promise<JobDetail>
  /**
   * Cancels a queued or running job. For a running job, its worker aborts the attempt; this resolves when the job has ended, or
   * after 10 s.
   */
  cancel(id: string, ctx: CallContext): Promise<Job>
  /** Queues a failed or cancelled job again, with all its attempts and its last checkpoint. */
  retry(id: string, ctx: CallContext): Promise<Job>
}

export const Jobs = defineService<Jobs>('jobs', {
  api: 1,
  methods: {
    add: 'call',
    prepare: 'call',
    kinds: 'call',
    wake: 'call',
    get: 'call',
    list: 'call',
    log: 'call',
    settled: 'call',
    cancel: 'call',
    retry: 'call',
  },
})
