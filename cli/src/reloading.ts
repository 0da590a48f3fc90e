import { problemsToWire, type ReloadResult, type Supervisor } from '@svc/core/processes'
import type { Announcer } from './announcer.ts'
import type { WorkerReport } from './work.ts'

/** Reloads, whoever asks: a signal, a command, a file that changed. */
export interface Reloading {
  /** Never throws: what is wrong stands in the result, and is announced. */
  reload(why: string): Promise<ReloadResult>
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
  return {
    report,
    onReloaded: told => void listeners.add(told),
    async reload(why) {
      announcer.reloading(why)
      const problems = await supervisor.reload().then(() => [], problemsToWire)
      const next = report()
      if (problems.length === 0 && next) for (const told of listeners) told(next)
      const done = result(problems)
      announcer.reloaded(done)
      return done
    },
  }
}
