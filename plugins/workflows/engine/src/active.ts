import type { RunClaim } from '@svc/core/contracts'
import type { RunExecutor } from './run-executor.ts'
import { InitialCommit } from './initial-commit.ts'
import type { RunRecord } from './space.ts'
import type { Made } from './worker-parts.ts'

/** A run that is worked on here. */
export interface Active {
  readonly id: string
  /** What it is held by. Throws where it could not be stored, or taken. */
  readonly claim: () => Promise<RunClaim>
  /** Of one that begins here, its first write. */
  readonly opening: InitialCommit | undefined
  readonly record: RunRecord | undefined
  readonly ended: PromiseWithResolvers<void>
  drive: RunExecutor | undefined
  /** News came before the run was read. */
  hasNews: boolean
  /** It is being given back: news that comes now is the queue's. */
  isLeft: boolean
}

export const newActive = (held: RunClaim | InitialCommit, made: Made | undefined): Active => ({
  id: held.id,
  claim: held instanceof InitialCommit ? () => held.claim() : async () => held,
  opening: held instanceof InitialCommit ? held : undefined,
  record: made?.record,
  ended: Promise.withResolvers(),
  drive: undefined,
  hasNews: false,
  isLeft: false,
})
