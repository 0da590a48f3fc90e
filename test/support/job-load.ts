import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { JobQuery } from '@svc/core/contracts'
import { reachServer } from '@svc/runtime'
import { recordsFile } from './job-records.ts'
import { operate } from './management.ts'
import { post, type Service, startService } from './service.ts'
import { configureFew } from './tides.ts'

/** The plugin of jobs that leave evidence. */
export const RECORDS = fileURLToPath(new URL('./job-records.ts', import.meta.url))
const WORKERS = 4
/** A worker that has served so long is replaced at once after its death. */
const STABLE_MS = 5_500
/** How long the newest job of a schedule may wait for a worker. */
const LATEST_MS = 60_000
const BATCH = 100

export async function startJobs(home: string, env: Readonly<Record<string, string>> = {}): Promise<Service> {
  await configureFew(home, { plugins: [RECORDS] }, ['admin-api', 'jobs', 'schedules'])
  const args = ['--workers', String(WORKERS), '--config', join(home, 'svc.config.json')]
  const service = await startService({ home, args, env })
  await service.seen(/"event":"worker_ready"/, WORKERS - 1)
  return service
}

/** Kills stable workers, one after the other, until the work has ended. Returns how many. */
export async function killWorkersWhile(home: string, everyMs: number, work: Promise<unknown>): Promise<number> {
  const state = { isOver: false }
  const over = work.finally(() => (state.isOver = true))
  over.catch(() => {})
  let killed = 0
  while (!state.isOver) {
    const pid = await stableWorker(home)
    if (pid !== undefined) {
      process.kill(pid, 'SIGKILL')
      killed += 1
    }
    await Promise.race([sleep(everyMs), over])
  }
  await over
  return killed
}

/** The worker that has served longest, unless another one is being replaced. */
async function stableWorker(home: string): Promise<number | undefined> {
  using server = await reachServer(home)
  const { workers } = server.info
  if (workers.length < 2) return undefined
  const [oldest] = workers.toSorted((a, b) => a.startedAt - b.startedAt)
  return oldest && Date.now() - oldest.startedAt > STABLE_MS ? oldest.pid : undefined
}

interface JobShown {
  readonly schedule: { readonly tick: string } | null
}

/** Asks the running server for jobs, all pages. */
async function jobsOf(home: string, query: Omit<JobQuery, 'limit' | 'cursor'>): Promise<JobShown[]> {
  const jobs: JobShown[] = []
  for (let cursor: string | undefined; ; ) {
    const words = new URLSearchParams({ ...query, limit: '200', ...(cursor === undefined ? {} : { cursor }) })
    const page = await operate<{ jobs: JobShown[]; next_cursor: string | null }>(home, 'GET', `/api/v1/jobs?${words.toString()}`)
    jobs.push(...page.jobs)
    if (page.next_cursor === null) return jobs
    cursor = page.next_cursor
  }
}

/** Adds the jobs `first` to `count - 1`, once each, although workers die. */
export async function addJobs(service: Pick<Service, 'url'>, count: number, first = 0): Promise<void> {
  for (let from = first; from < count; from += BATCH) {
    for (let attempts = 1; ; attempts++) {
      const answer = await post(`${service.url}/add-jobs`, { from, count: Math.min(BATCH, count - from) }).catch(() => undefined)
      if (answer?.status === 200) break
      if (attempts === 20) throw new Error(`no worker adds jobs: ${JSON.stringify(answer?.body)}`)
      await sleep(200)
    }
  }
}

/** Waits until no job of a kind is queued or running. */
export async function untilDone(home: string, kind: string, limitMs: number): Promise<void> {
  const until = Date.now() + limitMs
  for (;;) {
    const open = [...(await openJobs(home, kind, 'queued')), ...(await openJobs(home, kind, 'running'))]
    if (open.length === 0) return
    if (Date.now() > until) throw new Error(`still not done: ${JSON.stringify(open.slice(0, 3))} and ${open.length} in all`)
    await sleep(250)
  }
}

// a worker can die while it answers
const openJobs = (home: string, kind: string, state: 'queued' | 'running') =>
  jobsOf(home, { kind, state }).catch(() => [undefined])

/** What the jobs recorded in a folder, by the first word of a line. */
export function recordsOf(folder: string): ReadonlyMap<string, string[]> {
  const lines = readFileSync(recordsFile(folder), 'utf8').trimEnd().split('\n')
  return Map.groupBy(lines, line => line.split(' ', 1)[0]!)
}

/**
 * The problems of jobs `0` to `count - 1` of the kind `record`: lost ones, and those that ran twice at the same time. `folder`: that of
 * the records, if it is not the home.
 */
export async function auditJobs(home: string, count: number, folder = home): Promise<string[]> {
  const records = recordsOf(folder)
  const ended = new Set((records.get('end') ?? []).map(line => line.split(' ')[1]))
  const names = Array.from({ length: count }, (_, at) => String(at))
  const completed = (await jobsOf(home, { kind: 'record', state: 'completed' })).length
  return [
    ...(records.get('clash') ?? []).map(line => `twice at the same time: ${line}`),
    ...names.filter(name => !ended.has(name)).map(name => `never ran to its end: ${name}`),
    ...(completed === count ? [] : [`${completed} of ${count} jobs are completed`]),
  ]
}

/** The problems of the ticks of `each-second`: missing ones, and those with several jobs or without a run. */
export async function auditTicks(home: string, folder = home): Promise<{ readonly ticks: number; readonly problems: string[] }> {
  const jobs = await jobsOf(home, { kind: 'tick' })
  const ticks = jobs.map(({ schedule }) => Date.parse(schedule!.tick)).toSorted((a, b) => a - b)
  const ranSoFar = () => new Set((recordsOf(folder).get('tick') ?? []).map(line => Number(line.split(' ')[1])))
  // the schedule goes on: its newest jobs wait for a worker
  for (const until = Date.now() + LATEST_MS; !ranSoFar().isSupersetOf(new Set(ticks)) && Date.now() < until; ) await sleep(100)
  const ran = ranSoFar()
  const problems = ticks.flatMap((tick, at) => {
    const before = ticks[at - 1]
    if (before === tick) return [`two jobs for ${tick}`]
    if (before !== undefined && tick !== before + 1_000) return [`no job between ${before} and ${tick}`]
    return ran.has(tick) ? [] : [`the job of ${tick} did not run`]
  })
  return { ticks: ticks.length, problems }
}
