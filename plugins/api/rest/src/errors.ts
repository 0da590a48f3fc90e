import { svcError } from '@svc/core'

/** A header that cannot be meant. */
export const headerInvalid = (field: string, value: string, reason: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, value: value.slice(0, 200), reason } })

export const checkInvalid = (check: string) =>
  svcError('CHECK_INVALID', `the check ${check} returned something that is not a report`, {
    details: { check },
    hint: 'return { status } with healthy, degraded or unhealthy, and perhaps reason and detail',
  })
