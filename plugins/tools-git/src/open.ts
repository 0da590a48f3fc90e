import type { Roots } from '@svc/roots'
import { openRepository, type Repository } from './repository.ts'
import type { GitConfig } from './settings.ts'

/** Where the tools work, and how. */
export interface Ground {
  readonly roots: Roots
  readonly config: GitConfig
}

/** Does something in the repository that a call names, and closes it again. */
export async function inRepository<T>(
  { roots, config }: Ground,
  path: string | undefined,
  signal: AbortSignal,
  work: (repository: Repository) => Promise<T>
): Promise<T> {
  signal.throwIfAborted()
  await using repository = await openRepository(roots, path ?? '.', config, signal)
  return await work(repository)
}
