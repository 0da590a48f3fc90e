import { problemsToWire, type ReloadResult, type Supervisor } from '@svc/runtime'
import type { Announcer } from './announcer.ts'
import type { WorkerReport } from './work.ts'

/** Reloads, whoever asks: a signal, a command, a file that changed. */
export interface Reloading {
  /** Never throws: what is wrong stands in the result, and is announced. */
  reload(why: string): Promise<ReloadResult>
  /** The same, with nobody serving while the work is done. */
  pause(why: string, work: () => Promise<void>): Promise<ReloadResult>
  /** What the first worker of those that serve has told, once one has. */
  report(): WorkerReport | undefined
  onReloaded(told: (report: WorkerReport) => void): void
}

export function createReloading(supervisor: Supervisor<WorkerReport>, announcer: Announcer): Reloading {
  const listeners = new Set<(report: WorkerReport) => void>()
  let last: WorkerReport | undefined
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
    const next = report()
    if (problems.length === 0 && next) for (const told of listeners) told(next)
    const done = result(problems)
    announcer.reloaded(done)
    return done
  }
  return {
    report,
    onReloaded: told => void listeners.add(told),
    reload: why => take(why, () => supervisor.reload()),
    pause: (why, work) => take(why, () => supervisor.pause(work)),
  }
}
