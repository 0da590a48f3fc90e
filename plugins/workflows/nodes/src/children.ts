import type { ChildOutcome, Json } from '@svc/core/contracts'
import { raised } from './errors.ts'

/** What the only child of a node answered. Throws its failure. */
export function outputOf(outcome: ChildOutcome | undefined): Json {
  if (outcome?.status === 'failed') throw raised(outcome.error)
  return outcome?.status === 'completed' ? outcome.output : null
}
