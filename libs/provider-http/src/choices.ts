import type { ModelEvent } from '@svc/core/contracts'
import { modelFailure } from './failure.ts'

type Emit = (event: ModelEvent) => void

/** Emits events as those of answer number `choice`, from 1, of a request with `n`. */
export const ofChoice =
  (choice: number, emit: Emit): Emit =>
  event =>
    emit({ ...event, choice } as ModelEvent)

/** The upstream returned fewer answers than `n`. */
export const tooFewAnswers = (provider: string, n: number) =>
  modelFailure(
    provider,
    { kind: 'bad_request' },
    `the upstream gave fewer answers than the ${n} that were requested`,
    'Request one answer, and repeat the call for more'
  )
