import { type CallContext, createYielder, type Log, pause, redactData, redactText, type StartSpan } from '@svc/core'
import type { Fence, JobKind, JobLogLevel, JobState, JobStep, Json, Store, StoreOp } from '@svc/core/contracts'
import type { LeaseHold } from '@svc/storage-kit'
import { interrupted, stepInvalid, stuck, timedOut, tooLarge, toPublicError } from './errors.ts'
import { JobWriter } from './job-writer.ts'
import type { Kinds } from './kinds.ts'
import { DATA, dataKey, type JobRecord, MOST_DATA, putData, requestIdOf } from './space.ts'

export interface AttemptOptions {
  readonly store: Store
  readonly kinds: Kinds
  readonly id: string
  /** Its lease, which the worker renews. */
  readonly hold: LeaseHold
  readonly record: JobRecord
  readonly version: number
  readonly keepMs: { readonly completed: number; readonly failed: number }
  /** How long a job has to end after its signal has aborted. */
  readonly graceMs: number
  readonly log: Log
  readonly span: StartSpan
  readonly lasting: CallContext
}

/** Why svc ends an attempt. */
type AbortReason = 'cancelled' | 'timeout' | 'draining' | 'lost'

/** How an attempt ended. */
type Outcome =
  | { readonly how: 'completed'; readonly result: Json }
  | { readonly how: 'failed'; readonly error: unknown }
  | { readonly how: 'stuck' }

const [LONGEST_TEXT, LONGEST_NAME] = [2_000, 500]
const LEVELS: readonly string[] = ['debug', 'info', 'warning', 'error'] satisfies JobLogLevel[]

/** One attempt at a job, from the claim to the stored outcome. */
export class Attempt {
  readonly #options: AttemptOptions
  readonly #aborting = new AbortController()
  readonly #writer: JobWriter
  #reason: AbortReason | undefined
  /** Resolves when the outcome is stored, or the job is lost. */
  readonly stored: Promise<void>
  /** Resolves when the code of the job has ended; later than `stored` if it ignores its signal. */
  readonly ended: Promise<void>
  readonly #ended = Promise.withResolvers<void>()

  constructor(options: AttemptOptions) {
    this.#options = options
    const { store, id, lasting, record, version } = options
    this.isWaiting = options.kinds.get(record.kind)?.waits === true
    const { fence } = options.hold
    const onCancel = () => this.abort('cancelled')
    const onLost = () => this.abort('lost')
    this.#writer = new JobWriter({ store, id, fence, lasting, onCancel, onLost }, record, version)
    this.ended = this.#ended.promise
    this.stored = this.#run()
  }

  get id(): string {
    return this.#options.id
  }
  /** The state of the job. */
  get state(): JobState {
    return this.#writer.record.state
  }
  get kind(): string {
    return this.#options.record.kind
  }
  /** Whether the job only waits for other work. */
  readonly isWaiting: boolean
  get hold(): LeaseHold {
    return this.#options.hold
  }
  get fence(): Fence {
    return this.hold.fence
  }

  /** Aborts the attempt. Only the first reason counts, but a lost job is lost. */
  abort(reason: AbortReason): void {
    if (reason === 'lost') this.#reason = 'lost'
    this.#reason ??= reason
    this.#aborting.abort(new Error(`the job is aborted: ${this.#reason}`))
  }

  /** Looks for a request to cancel it. */
  refresh(): Promise<void> {
    return this.#writer.refresh()
  }

  async #run(): Promise<void> {
    const { log } = this.#options
    using _writer = this.#writer
    try {
      const outcome = await this.#execute()
      if (this.#reason !== 'lost') await this.#store(outcome)
    } catch (err) {
      // its lease expires, and a worker takes the job again
      if (this.#reason !== 'lost') log.warn({ err, ...this.#facts() }, 'failed to store the outcome of a job')
    }
  }

  /** What each line of the log says about the attempt. */
  #facts() {
    const { id, record } = this.#options
    return { job: id, kind: record.kind, attempt: record.attempts, request_id: requestIdOf(id, record) }
  }

  async #execute(): Promise<Outcome> {
    const { kinds, record, graceMs } = this.#options
    const kind = kinds.get(record.kind)
    if (!kind) {
      // its plugin is being restarted
      this.abort('draining')
      this.#ended.resolve()
      return { how: 'failed', error: interrupted() }
    }
    const { timeoutMs } = kinds.limits(record.kind)
    const limit = setTimeout(() => this.abort('timeout'), timeoutMs)
    const ending = new AbortController()
    const overdue = this.#overdue(graceMs, ending.signal)
    const work = this.#work(kind, timeoutMs).then(
      (result): Outcome => ({ how: 'completed', result }),
      (error: unknown): Outcome => ({ how: 'failed', error })
    )
    void work.then(() => this.#ended.resolve())
    try {
      return await Promise.race([work, overdue])
    } finally {
      clearTimeout(limit)
      ending.abort()
    }
  }

  /** Resolves when the job has ignored its signal for too long. */
  async #overdue(graceMs: number, ending: AbortSignal): Promise<Outcome> {
    const { signal } = this.#aborting
    if (!signal.aborted)
      await new Promise<void>(resolve => {
        signal.addEventListener('abort', () => resolve(), { once: true })
        ending.addEventListener('abort', () => resolve(), { once: true })
      })
    await pause(graceMs, ending).catch(() => {})
    return { how: 'stuck' }
  }

  async #work(kind: JobKind, timeoutMs: number): Promise<Json> {
    const { id, record, store, lasting } = this.#options
    const { fence } = this
    const { signal } = this.#aborting
    const read = async (what: 'input' | 'checkpoint') => (await store.get(DATA, dataKey(id, what), lasting))?.value
    const [input, checkpoint] = [await read('input'), await read('checkpoint')]
    const task = {
      id,
      kind: record.kind,
      input: input ?? null,
      attempt: record.attempts,
      fence: { lease: fence.lease, fence: fence.fence },
      ...(checkpoint === undefined ? {} : { checkpoint }),
      ...(record.schedule === undefined ? {} : { schedule: record.schedule }),
    }
    const ctx: CallContext = {
      signal,
      principal: { id: record.owner, scopes: record.scopes },
      requestId: requestIdOf(id, record),
      deadline: Date.now() + timeoutMs,
      idempotencyKey: id,
    }
    signal.throwIfAborted()
    const attributes = { 'svc.job.id': id, 'svc.job.kind': record.kind, 'svc.job.attempt': record.attempts }
    const span = this.#options.span(`job ${record.kind}`, ctx, { kind: 'consumer', root: true, attributes })
    try {
      return await this.#steps(kind.run(task, span.ctx))
    } catch (error) {
      span.fail(this.#reason ?? error)
      throw error
    } finally {
      span.end()
    }
  }

  /** Handles the steps of the job until its end. Returns its result. */
  async #steps(steps: AsyncIterable<JobStep>): Promise<Json> {
    let result: Json | undefined
    const yielder = createYielder(this.#options.lasting.signal)
    for await (const step of steps) {
      const given = await this.#take(step)
      if (given !== undefined) result = given
      // a job that yields without pause must not block the worker
      if (yielder.isDue()) await yielder.take()
    }
    if (result === undefined) this.#aborting.signal.throwIfAborted()
    return result ?? null
  }

  /** Handles a step of the job, which can be any value. Returns the result. */
  async #take(step: JobStep): Promise<Json | undefined> {
    const { attempts } = this.#writer.record
    if (step.type === 'progress') this.#writer.report(progressOf(step))
    else if (step.type === 'log') {
      if (!LEVELS.includes(step.level)) throw stepInvalid('the level of a log entry must be debug, info, warning or error')
      const message = redactText(String(step.message)).toWellFormed().slice(0, LONGEST_TEXT)
      await this.#writer.log({ at: Date.now(), attempt: attempts, level: step.level, message })
    } else if (step.type === 'checkpoint') {
      const value = dataOf('checkpoint', step.value)
      if (hasSecret(value)) throw stepInvalid('a checkpoint must not contain a secret: read it again in the next attempt')
      await this.#writer.write(record => record, [putData(this.id, 'checkpoint', value)])
    } else if (step.type === 'result') return redactData(dataOf('result', step.value))
    else throw stepInvalid('its type must be progress, log, checkpoint or result')
    return undefined
  }

  async #store(outcome: Outcome): Promise<void> {
    const { record, log, id, kinds, graceMs } = this.#options
    if (outcome.how === 'completed') {
      await this.#finish('completed', {}, [putData(id, 'result', outcome.result)])
      return
    }
    if (this.#reason === 'draining') return this.#putBack(outcome)
    if (this.#reason === 'cancelled') return this.#finish('cancelled', {}, [])
    const limitMs = kinds.limits(record.kind).timeoutMs
    const error = outcome.how === 'stuck' ? stuck(graceMs) : this.#reason === 'timeout' ? timedOut(limitMs) : outcome.error
    log.warn({ err: error, ...this.#facts() }, 'an attempt of a job failed')
    await this.#failed(error)
  }

  /** At shutdown: the attempt does not count. A job that goes on in spite of its signal is left to the expiry of its lease. */
  async #putBack({ how }: Outcome): Promise<void> {
    if (how === 'stuck') return
    await this.#writer.write(record => {
      const { holder: _, startedAt: __, ...kept } = record
      return { ...kept, state: 'queued', next: Date.now(), attempts: record.attempts - 1 }
    })
  }

  async #failed(error: unknown): Promise<void> {
    const { kinds } = this.#options
    const shown = redactData(toPublicError(error))
    await this.#writer.write(record => afterFailure(record, shown, kinds, this.#options.keepMs))
  }

  async #finish(state: 'completed' | 'cancelled', more: Partial<JobRecord>, ops: readonly StoreOp[]): Promise<void> {
    const { keepMs } = this.#options
    await this.#writer.write(record => final(record, state, keepMs.completed, more), ops)
  }
}

/** The record after a failed attempt: queued again, or failed for good. */
export function afterFailure(
  record: JobRecord,
  error: NonNullable<JobRecord['error']>,
  kinds: Kinds,
  keepMs: AttemptOptions['keepMs']
): JobRecord {
  if (record.isCancelling) return final(record, 'cancelled', keepMs.completed, {})
  const isOver = record.attempts >= record.maxAttempts || error.details.retryable === false
  if (isOver) return final(record, 'failed', keepMs.failed, { error })
  const { holder: _, ...kept } = record
  const due = Date.now() + kinds.delay(record.kind, record.attempts)
  return { ...kept, state: 'queued', due, next: due, error }
}

/** The record of a job that has ended. */
export function final(record: JobRecord, state: JobRecord['state'], keepMs: number, more: Partial<JobRecord>): JobRecord {
  const { holder: _, error: before, isCancelling: __, ...kept } = record
  const now = Date.now()
  const error = state === 'completed' || before === undefined ? {} : { error: before }
  return { ...kept, ...error, ...more, state, next: now, finishedAt: now, expiresAt: now + keepMs }
}

function progressOf(step: Extract<JobStep, { type: 'progress' }>): NonNullable<JobRecord['progress']> {
  const { progress, total, message } = step
  if (!Number.isFinite(progress)) throw stepInvalid('progress must be a number')
  return {
    progress,
    ...(Number.isFinite(total) ? { total: total! } : {}),
    ...(typeof message === 'string' ? { message: redactText(message).toWellFormed().slice(0, LONGEST_NAME) } : {}),
  }
}

/** Whether data contains the value of a secret, which the store must not keep in clear. */
export function hasSecret(value: Json): boolean {
  const hidden = redactData(value)
  return hidden !== value && JSON.stringify(hidden) !== JSON.stringify(value)
}

/** Checks the size of data for the store. Throws JOB_TOO_LARGE. */
export function dataOf(what: 'input' | 'checkpoint' | 'result', value: Json | undefined): Json {
  const size = (JSON.stringify(value ?? null) ?? 'null').length
  if (size > MOST_DATA) throw tooLarge(what, size, MOST_DATA)
  return value ?? null
}
