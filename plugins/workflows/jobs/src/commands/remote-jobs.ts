import type { Job, JobDetail, JobKindRecord, JobLogEntry, Jobs, Json, PublicError, ServerClient } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'

/** The part of the service that commands use. */
export type ManagedJobs = Pick<Jobs, 'list' | 'get' | 'log' | 'kinds' | 'cancel' | 'retry'>

const PATH = '/api/v1/jobs'

/** A job as the API shows it: absent members are null, times are text. */
interface JobShown {
  readonly id: string
  readonly kind: string
  readonly state: Job['state']
  readonly owner: string
  readonly created_at: string
  readonly due_at: string
  readonly attempts: number
  readonly max_attempts: number
  readonly group: string | null
  readonly schedule: { readonly name: string; readonly tick: string } | null
  readonly progress: NonNullable<Job['progress']> | null
  readonly is_cancelling: boolean
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly error: PublicError | null
}

interface JobDetailShown extends JobShown {
  readonly input: Json
  readonly result?: Json
  readonly checkpoint?: Json
}

interface KindShown {
  readonly name: string
  readonly description: string
  readonly plugin: string
  readonly concurrency: number | null
  readonly timeout_ms: number
  readonly attempts: number
  readonly is_internal: boolean
  readonly can_start: boolean
  readonly scope: string | null
  readonly input: JobKindRecord['input'] | null
}

/** The jobs of a server over its API, which checks the caller. */
export const remoteJobs = (server: ServerClient): ManagedJobs => ({
  async list(query) {
    const words = new URLSearchParams(Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]))
    const page = await server.request<{ jobs: readonly JobShown[]; next_cursor: string | null }>(
      'GET',
      `${PATH}?${words.toString()}`
    )
    return { jobs: page.jobs.map(jobOf), ...definedOf({ next: page.next_cursor ?? undefined }) }
  },
  async get(id) {
    const { input, result, checkpoint, ...job } = await server.request<JobDetailShown>('GET', pathOf(id))
    return { ...jobOf(job), input, ...definedOf({ result, checkpoint }) } satisfies JobDetail
  },
  async log(id, limit) {
    const { entries } = await server.request<{
      entries: readonly (Omit<JobLogEntry, 'at'> & { readonly at: string })[]
    }>('GET', `${pathOf(id)}/log?limit=${limit}`)
    return entries.map(({ at, ...entry }) => ({ at: Date.parse(at), ...entry }))
  },
  async kinds() {
    const { kinds } = await server.request<{ kinds: readonly KindShown[] }>('GET', `${PATH}/kinds`)
    return kinds.map(kindOf)
  },
  cancel: async id => jobOf(await server.request('POST', `${pathOf(id)}/cancel`)),
  retry: async id => jobOf(await server.request('POST', `${pathOf(id)}/retry`)),
})

const pathOf = (id: string) => `${PATH}/${encodeURIComponent(id)}`
const time = (text: string | null) => (text === null ? undefined : Date.parse(text))

const jobOf = (job: JobShown): Job => ({
  id: job.id,
  kind: job.kind,
  state: job.state,
  owner: job.owner,
  createdAt: Date.parse(job.created_at),
  due: Date.parse(job.due_at),
  attempts: job.attempts,
  maxAttempts: job.max_attempts,
  ...definedOf({
    group: job.group ?? undefined,
    schedule: job.schedule ? { name: job.schedule.name, tick: Date.parse(job.schedule.tick) } : undefined,
    progress: job.progress ?? undefined,
    isCancelling: job.is_cancelling || undefined,
    startedAt: time(job.started_at),
    finishedAt: time(job.finished_at),
    error: job.error ?? undefined,
  }),
})

const kindOf = ({ concurrency, timeout_ms, is_internal, can_start, scope, input, ...kind }: KindShown): JobKindRecord => ({
  ...kind,
  timeoutMs: timeout_ms,
  isInternal: is_internal,
  canStart: can_start,
  ...definedOf({ concurrency: concurrency ?? undefined, scope: scope ?? undefined, input: input ?? undefined }),
})
