import { createHash } from 'node:crypto'
import { type CallContext, codeOf, type SvcError, svcError } from '@svc/core'
import type {
  Evaluation,
  EvaluationEvent,
  EvaluationRequest,
  EvaluationResult,
  Evaluations,
  JobDetail,
  JobKind,
  Jobs,
  JobStep,
  JobTask,
  Json,
} from '@svc/core/contracts'
import { REQUEST } from './cases.ts'
import { evaluationUnknown, jobsUnavailable } from './errors.ts'
import { checkRequest, type EvaluationDependencies, keyOf, planOf, runSamples } from './evaluate.ts'
import { cutResults, type Outline, reportOf } from './report.ts'

/** The job kind that runs evaluations. Its input is an `EvaluationRequest`. */
export const KIND = 'evaluations.run'

/** Checkpoint and result of the job. */
interface Stored {
  readonly outline: Outline
  readonly results: readonly EvaluationResult[]
}

/** Characters of JSON of a stored evaluation; the limit of jobs is 1 MiB. */
const MOST_STORED = 900_000
/** Larger checkpoints are stored at most each second. */
const [SMALL, EVERY_MS] = [32_000, 1_000]
const MOST_WAIT_MS = 30_000

export function createEvaluations(services: EvaluationDependencies, jobs: Jobs | undefined): Evaluations {
  const find = (id: string, ctx: CallContext) => own(() => needed(jobs).get(id, ctx), id, ctx)
  return {
    run: (request, ctx) => run(request, services, ctx),
    async start(given, ctx) {
      const service = needed(jobs)
      const request = withTime(given)
      await checkRequest(request, services, ctx)
      const { id } = await service.add({ kind: KIND, input: request as unknown as Json, group: groupOf(ctx) }, ctx)
      return find(id, ctx).then(shown)
    },
    async get(id, waitMs, ctx) {
      const job = await find(id, ctx)
      if (waitMs === 0 || job.finishedAt !== undefined) return shown(job)
      return shown(await needed(jobs).settled(id, Math.min(waitMs, MOST_WAIT_MS), ctx))
    },
    async cancel(id, ctx) {
      const { finishedAt } = await find(id, ctx)
      if (finishedAt === undefined)
        await needed(jobs)
          .cancel(id, ctx)
          .catch((error: unknown) => {
            // it has ended meanwhile
            if (codeOf(error) !== 'JOB_STATE') throw error
          })
      return shown(await find(id, ctx))
    },
  }
}

function needed(jobs: Jobs | undefined): Jobs {
  if (jobs) return jobs
  throw jobsUnavailable()
}

/** Evaluations of one principal run one after the other. */
const groupOf = ({ principal }: CallContext) => createHash('sha256').update(principal.id).digest('base64url')

/** A repeated attempt of the job has to find the same turns: those stored up to this millisecond. */
const withTime = (request: EvaluationRequest): EvaluationRequest =>
  request.replay?.since === undefined || request.replay.until !== undefined
    ? request
    : { ...request, replay: { ...request.replay, until: new Date(Date.now() + 1).toISOString() } }

/** The job, if it is an evaluation of this principal. */
async function own(read: () => Promise<JobDetail>, id: string, ctx: CallContext): Promise<JobDetail> {
  const job = await read().catch((error: unknown) => {
    throw codeOf(error) === 'JOB_UNKNOWN' ? evaluationUnknown(id) : error
  })
  if (job.kind !== KIND || job.owner !== ctx.principal.id) throw evaluationUnknown(id)
  return job
}

function shown(job: JobDetail): Evaluation {
  const stored = (job.result ?? job.checkpoint) as unknown as Stored | null | undefined
  const report = stored?.outline && reportOf(stored.outline, stored.results)
  return {
    id: job.id,
    state: job.state,
    done: report?.done ?? job.progress?.progress ?? 0,
    total: report?.total ?? job.progress?.total ?? 0,
    ...(job.error === undefined ? {} : { error: job.error }),
    ...(report ? { report } : {}),
  }
}

async function* run(
  request: EvaluationRequest,
  services: EvaluationDependencies,
  ctx: CallContext
): AsyncGenerator<EvaluationEvent> {
  const plan = await planOf(request, services, ctx)
  yield { type: 'start', ...plan.outline }
  const results: EvaluationResult[] = []
  for await (const result of runSamples(plan, ctx)) {
    results.push(result)
    yield { type: 'result', result }
  }
  yield { type: 'end', report: reportOf(plan.outline, results) }
}

/** What was refused once would be refused again. */
const REFUSED: readonly (string | undefined)[] = ['INVALID_VALUE', 'CONVERSATION_UNKNOWN']

function final(error: unknown): never {
  if (!REFUSED.includes(codeOf(error))) throw error
  const { code, message, details } = error as SvcError
  throw svcError(code, message, { details: { ...details, retryable: false } })
}

/** Runs evaluations. A further attempt runs only what has no result in the last checkpoint. */
export const createEvaluationKind = (services: EvaluationDependencies): JobKind => ({
  description: 'Run turns of cases or stored turns, and check their replies',
  scope: 'chat',
  concurrency: 4,
  attempts: 5,
  timeoutMs: 6 * 3_600_000,
  input: REQUEST,
  async *run(task: JobTask, ctx: CallContext): AsyncIterable<JobStep> {
    const { outline, samples, concurrency } = await planOf(task.input as EvaluationRequest, services, ctx).catch(final)
    const before = (task.checkpoint as unknown as Stored | undefined)?.results ?? []
    const known = new Set(samples.map(keyOf))
    const results = before.filter(result => known.has(keyOf(result)))
    const done = new Set(results.map(keyOf))
    const left = samples.filter(sample => !done.has(keyOf(sample)))
    const stored = (): Json => ({ outline, results: cutResults(results, MOST_STORED) }) as unknown as Json
    yield { type: 'checkpoint', value: stored() }
    let [at, size] = [performance.now(), 0]
    for await (const result of runSamples({ samples: left, concurrency }, ctx)) {
      results.push(result)
      const progress = { progress: results.length, total: outline.total }
      yield { type: 'progress', ...progress, message: `${results.length} of ${outline.total} turns` }
      if (size > SMALL && performance.now() - at < EVERY_MS) continue
      const value = stored()
      yield { type: 'checkpoint', value }
      ;[at, size] = [performance.now(), JSON.stringify(value).length]
    }
    yield { type: 'result', value: stored() }
  },
})
