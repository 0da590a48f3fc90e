import { nearest, svcError } from '@svc/core'

/** A request header has an invalid value. */
export const headerInvalid = (field: string, value: string, reason: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, value: value.slice(0, 200), reason } })

const LONGEST = 100

/** `GET /api/v1/tools?category=` names a category that does not exist. */
export const categoryUnknown = (category: string, allowed: readonly string[]) => {
  const near = nearest(category.slice(0, LONGEST), allowed)
  const reason = `is not a known category${near === undefined ? '' : `; did you mean "${near}"?`}`
  return svcError('INVALID_VALUE', `category ${reason}`, {
    details: { field: 'category', value: category.slice(0, LONGEST), allowed, reason },
  })
}

export const checkInvalid = (check: string) =>
  svcError('CHECK_INVALID', `the check ${check} returned something that is not a report`, {
    details: { check },
    hint: 'Return { status } with healthy, degraded or unhealthy; reason and detail are optional',
  })
