import { type FailedReload, problemsToWire, type ReloadResult, type Supervisor, type Control } from '@svc/runtime'
import type { Announcer } from './announcer.ts'
import type { WorkerReport } from './work.ts'

/** Reloads for a signal, a command, or a changed file. */
export interface Reloading {
  /** Never throws: the result contains the problems, and the announcer reports them. */
  reload(why: string): Promise<ReloadResult>
  /** The same, but no worker serves while `work` runs. */
  pause(why: string, work: () => Promise<void>): Promise<ReloadResult>
  /** The report of the first worker that serves, once there is one. */
  report(): WorkerReport | undefined
  onReloaded(listener: (report: WorkerReport) => void): void
  /** The last reload, if it failed. */
  failed(): FailedReload | undefined
}

export function createReloading(supervisor: Supervisor<WorkerReport>, announcer: Announcer): Reloading {
  const listeners = new Set<(report: WorkerReport) => void>()
  let last: WorkerReport | undefined
  let failed: FailedReload | undefined
  const report = () => {
    if (supervisor.state.state === 'running') last = supervisor.state.report
    return last
  }
  const result = (problems: ReloadResult['problems']): ReloadResult => ({
    problems,
    workers: supervisor.workers,
    url: report()?.address?.url ?? '',
    drainLimitMs: report()?.swapLimitMs ?? 0,
  })
  const take = async (why: string, motion: () => Promise<unknown>) => {
    announcer.reloading(why)
    const problems = await motion().then(() => [], problemsToWire)
    failed = problems.length === 0 ? undefined : { at: Date.now(), reason: why, problems }
    const next = report()
    if (problems.length === 0 && next) for (const listener of listeners) listener(next)
    const done = result(problems)
    announcer.reloaded(done)
    return done
  }
  return {
    report,
    failed: () => failed,
    onReloaded: listener => void listeners.add(listener),
    reload: why => take(why, () => supervisor.reload(why)),
    pause: (why, work) => take(why, () => supervisor.pause(work, why)),
  }
}

/** Ends a pause that its command does not end. */
const LONGEST_MS = 300_000

/** Stops the workers while a command works on their files. One pause at a time: a second one waits for the first. */
export function createPausing(reloading: Reloading): Pick<Control, 'pause' | 'resume'> {
  const open: (() => ReturnType<Reloading['reload']>)[] = []
  return {
    async *pause({ signal }) {
      const paused = Promise.withResolvers<void>()
      const asked = Promise.withResolvers<void>()
      let timer: NodeJS.Timeout | undefined
      const done = reloading.pause('svc store restore', () => {
        timer = setTimeout(asked.resolve, LONGEST_MS)
        paused.resolve()
        return asked.promise
      })
      const resume = () => {
        clearTimeout(timer)
        asked.resolve()
        return done
      }
      open.push(resume)
      try {
        await Promise.race([paused.promise, done])
        yield 'paused'
        // a stream is read ahead: only a reply or the end of the reader ends the pause
        signal.addEventListener('abort', () => asked.resolve(), { once: true })
        if (!signal.aborted) await asked.promise
      } finally {
        open.splice(open.indexOf(resume), 1)
        await resume()
      }
    },
    resume: () => open[0]?.() ?? reloading.reload('svc'),
  }
}
