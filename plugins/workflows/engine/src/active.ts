import type { RunClaim } from '@svc/core/contracts'
import type { Drive } from './drive.ts'
import { Opening } from './opening.ts'
import type { RunRecord } from './space.ts'
import type { Made } from './worker-parts.ts'

/** A run that is worked on here. */
export interface Active {
  readonly id: string
  /** What it is held by. Throws where it could not be stored, or taken. */
  readonly claim: () => Promise<RunClaim>
  /** Of one that begins here, its first write. */
  readonly opening: Opening | undefined
  readonly record: RunRecord | undefined
  readonly ended: PromiseWithResolvers<void>
  drive: Drive | undefined
  /** News came before the run was read. */
  hasNews: boolean
  /** It is being given back: news that comes now is the queue's. */
  isLeft: boolean
}

export const newActive = (held: RunClaim | Opening, made: Made | undefined): Active => ({
  id: held.id,
  claim: held instanceof Opening ? () => held.claim() : async () => held,
  opening: held instanceof Opening ? held : undefined,
  record: made?.record,
  ended: Promise.withResolvers(),
  drive: undefined,
  hasNews: false,
  isLeft: false,
})
