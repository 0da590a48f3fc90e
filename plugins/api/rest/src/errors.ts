import { svcError } from '@svc/core'

/** A request header has an invalid value. */
export const headerInvalid = (field: string, value: string, reason: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, value: value.slice(0, 200), reason } })

export const checkInvalid = (check: string) =>
  svcError('CHECK_INVALID', `the check ${check} returned something that is not a report`, {
    details: { check },
    hint: 'Return { status } with healthy, degraded or unhealthy; reason and detail are optional',
  })
