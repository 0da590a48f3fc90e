import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { asSvcError, type CallContext, type Log, type Principal, svcError } from '@svc/core'
import type { DefinedSchedule, JobKind, Jobs, JobStep, JobTask, Json } from '@svc/core/contracts'
import { type RunJob, specOf } from './definition-schedule.ts'
import type { LoadedWorkflow, WorkflowLibrary } from './library.ts'
import type { RunActions } from './run-actions.ts'
import type { RunReader } from './run-reader.ts'
import type { RunStarter } from './run-starter.ts'

const DAY_MS = 86_400_000

export interface ScheduleSyncOptions {
  readonly library: Pick<WorkflowLibrary, 'scheduled'>
  /** Adds an item to the slot. Returns what removes it. */
  readonly add: (name: string, item: DefinedSchedule) => () => void
  readonly log: Log
  /** Tools can write definitions, so that a model could name any owner: none counts. */
  readonly isWritableByTools: boolean
}

/** Time between two looks at the definitions. A look reads only files that changed. */
const EVERY_MS = 5_000

/** Keeps the schedules of the loaded definitions in their slot. Each worker does it, and the service lets one handle a tick. */
export class ScheduleSync {
  readonly #options: ScheduleSyncOptions
  readonly #added = new Map<string, { readonly item: DefinedSchedule; readonly remove: () => void }>()
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #hasEnded = false

  constructor(options: ScheduleSyncOptions) {
    this.#options = options
  }

  async begin(): Promise<void> {
    this.#timer = setInterval(() => void this.look(), EVERY_MS).unref()
    await this.look()
  }

  /** The schedules stay in the slot: a worker that ends must not look as if they were removed. */
  end(): void {
    this.#hasEnded = true
    clearInterval(this.#timer)
  }

  /** Takes what has changed in the definitions. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    return this.#looking
  }

  async #look(): Promise<void> {
    try {
      const { library, isWritableByTools } = this.#options
      const found = new Map((await library.scheduled()).flatMap(workflow => scheduleOf(workflow, !isWritableByTools)))
      if (this.#hasEnded) return
      for (const [name, { item, remove }] of this.#added) {
        if (isDeepStrictEqual(found.get(name), item)) found.delete(name)
        else {
          remove()
          this.#added.delete(name)
        }
      }
      for (const [name, item] of found) this.#added.set(name, { item, remove: this.#options.add(name, item) })
    } catch (err) {
      if (!this.#hasEnded) this.#options.log.warn({ err }, 'failed to read the schedules of workflows')
    }
  }
}

/** A definition with problems cannot run, so its schedule does not exist. */
function scheduleOf(
  { name, file, source, definition, problems }: LoadedWorkflow,
  mayNameOwner: boolean
): [string, DefinedSchedule][] {
  const { schedule } = definition
  if (!schedule || problems.length > 0) return []
  const owner = mayNameOwner ? schedule.owner : undefined
  const id = file === undefined ? `plugin:${source}` : (owner ?? `workflow:${name}`)
  return [[`workflow.${name}`, { spec: specOf(name, schedule), principal: { id, scopes: ['workflows'] } satisfies Principal }]]
}

export interface RunKindOptions {
  readonly jobs: Jobs | undefined
  readonly starting: RunStarter
  readonly reading: RunReader
  readonly runActions: RunActions
  readonly lasting: CallContext
}

const LOOKS_MS = [100, 200, 500, 1_000, 2_000]
/** Errors that another attempt does not change. */
const FINAL: ReadonlySet<string> = new Set(['WORKFLOW_UNKNOWN', 'WORKFLOW_INVALID', 'INVALID_VALUE'])

/** The job kind that starts a run, and by default ends with it, so that the overlap policy of a schedule counts for runs. */
export const createRunKind = (options: RunKindOptions): JobKind => ({
  description: 'Start a workflow run, and wait for its end unless `wait` is false',
  scope: 'workflows',
  waits: true,
  attempts: 100,
  timeoutMs: 7 * DAY_MS,
  input: {
    type: 'object',
    additionalProperties: false,
    required: ['workflow'],
    properties: {
      workflow: { type: 'string', minLength: 1, maxLength: 1_000, description: 'Name of the workflow, or path of its file' },
      input: { type: 'object', description: 'Input of the run; default {}' },
      parameters: { type: 'object', description: 'Parameters of the run; default {}' },
      wait: {
        type: 'boolean',
        description: 'Whether the job ends with the run, and its cancellation cancels the run; default true',
      },
    },
  },
  run: (task, ctx) => runJob(options, task, ctx),
})

async function* runJob(options: RunKindOptions, task: JobTask, ctx: CallContext): AsyncGenerator<JobStep, void> {
  const { wait = true, ...request } = task.input as unknown as RunJob
  let id = (task.checkpoint as { readonly run: string } | undefined)?.run
  if (id === undefined) {
    // a second attempt of a worker that died after this gets the same run
    const started = options.starting.start({ ...request, idempotencyKey: `job:${task.id}`, detached: true }, ctx)
    id = (await started.catch(asFinal)).id
    yield { type: 'checkpoint', value: { run: id } }
  }
  if (!wait) return yield { type: 'result', value: { run_id: id, status: 'running' } }
  try {
    yield { type: 'result', value: await endOf(options, id, ctx) }
  } catch (error) {
    if (ctx.signal.aborted) await cancelWith(options, task.id, id, ctx)
    throw error
  }
}

/** The end of a run and of those that continue it as new. */
async function endOf({ reading }: RunKindOptions, first: string, ctx: CallContext): Promise<Json> {
  for (let [look, id] = [0, first]; ; look += 1) {
    const { status, error, nextRun } = await reading.record(id, ctx)
    if (nextRun !== undefined) id = nextRun
    else if (status !== 'running') return { run_id: id, status, ...(error ? { error_code: error.code } : {}) }
    await sleep(LOOKS_MS[Math.min(look, LOOKS_MS.length - 1)], undefined, { signal: ctx.signal })
  }
}

/** Cancels the run of a job that a person or a later tick cancelled, but not of one that another worker continues. */
async function cancelWith({ jobs, reading, runActions, lasting }: RunKindOptions, job: string, run: string, ctx: CallContext) {
  const own = { ...ctx, signal: lasting.signal }
  const found = await jobs?.get(job, own)
  if (found?.isCancelling !== true && found?.state !== 'cancelled') return
  let last = run
  for (let next: string | undefined = run; next !== undefined; next = (await reading.record(last, own)).nextRun) last = next
  await runActions.cancelAll([last], own)
}

function asFinal(thrown: unknown): never {
  const { code, message, details, hint } = asSvcError(thrown, 'INTERNAL_ERROR')
  if (!FINAL.has(code)) throw thrown
  throw svcError(code, message, { details: { ...details, retryable: false }, ...(hint === undefined ? {} : { hint }) })
}
