import type { SvcError } from '@svc/core'

/** The error a promise fails with; fails itself when there is none. */
export async function failureOf(work: Promise<unknown>): Promise<SvcError> {
  const [outcome] = await Promise.allSettled([work])
  if (outcome.status === 'rejected') return outcome.reason as SvcError
  throw new Error('it did not fail')
}
