import type { Principal } from '@svc/core'
import type { JobDetail, JobKind, JobRequest, Jobs, JobStep, JobTask, Json, Store } from '@svc/core/contracts'
import { abortable, type caseMaker } from '../kit-case.ts'

/** The jobs service to test, as seen by two processes that execute jobs. Both have empty, shared stores. */
export interface JobsSubject {
  readonly jobs: Jobs
  /** The same in another process. */
  readonly other: Jobs
  /** The store of both. The kit opens a space of its own in it. */
  readonly store: Store
  /** Adds a job kind to both processes, or to one. */
  addKind(name: string, kind: JobKind, to?: 'jobs' | 'other'): void
  /** The package that `addKind` adds kinds as. */
  readonly plugin: string
  /** Simulates the death of the process of `jobs`: its leases are free when this resolves, and it takes no more jobs. */
  kill(): Promise<void>
  /** Shuts the process of `jobs` down in an orderly way. */
  drain(): Promise<void>
  close?(): unknown
}

export type Opened = ReturnType<typeof caseMaker<JobsSubject>>
export const { ctx } = abortable('jobs kit')
export const as = (id: string, ...scopes: string[]): typeof ctx => ({ ...ctx, principal: { id, scopes } satisfies Principal })

type Run = (task: JobTask, signal: AbortSignal) => AsyncIterable<JobStep>
export const kind = (run: Run, more: Partial<JobKind> = {}): JobKind => ({
  description: 'A job of the kit',
  backoff: { firstMs: 10, maxMs: 20 },
  ...more,
  run: (task, { signal }) => run(task, signal),
})
export const result = (value: Json): JobStep => ({ type: 'result', value })

/** A kind without steps but its result. */
export const doing = (work: (task: JobTask, signal: AbortSignal) => Promise<unknown>, more: Partial<JobKind> = {}): JobKind =>
  kind(async function* (task, signal) {
    await work(task, signal)
    yield result(null)
  }, more)

/** Adds a job and waits for its end. */
export async function done(jobs: Jobs, request: JobRequest): Promise<JobDetail> {
  const { id } = await jobs.add(request, ctx)
  return jobs.settled(id, 20_000, ctx)
}
