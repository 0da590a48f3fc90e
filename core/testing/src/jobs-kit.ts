import { concurrencyCases } from './jobs-kit/concurrency.ts'
import { executionCases } from './jobs-kit/execution.ts'
import { managementCases } from './jobs-kit/management.ts'
import type { JobsSubject } from './jobs-kit/rig.ts'
import { caseMaker, type KitCase } from './kit-case.ts'

export type { JobsSubject } from './jobs-kit/rig.ts'

/**
 * Cases for every implementation of `Jobs`: `for (const one of jobsKit(open)) it(one.title, one.run)`. `open` starts two
 * processes that execute jobs, with a short `jobs.drain_s`.
 */
export function jobsKit(open: () => JobsSubject | Promise<JobsSubject>): KitCase[] {
  const opened = caseMaker(open)
  return [...executionCases, ...concurrencyCases, ...managementCases].flatMap(group => group(opened))
}
