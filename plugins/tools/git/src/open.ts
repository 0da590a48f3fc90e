import type { FairSemaphore } from '@svc/worker-pool'
import type { Use } from '@svc/core'
import type { Roots } from '@svc/safe-fs'
import { openRepository, type Repository } from './repository.ts'
import type { GitConfig } from './settings.ts'

/** Where the tools work, and how. */
export interface Ground {
  readonly roots: Roots
  readonly config: GitConfig
  /** For the processes of git that run at the same time. */
  readonly seats: FairSemaphore
}

/** Does something in the repository that a call names, and closes it again. */
export async function inRepository<T>(
  ground: Ground,
  path: string | undefined,
  use: Use,
  work: (repository: Repository) => Promise<T>
): Promise<T> {
  use.signal.throwIfAborted()
  await using repository = await openRepository(ground, path ?? '.', use)
  return await work(repository)
}
