import { svcError } from '@svc/core'

/** A header that cannot be meant. */
export const headerInvalid = (field: string, value: string, reason: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, value: value.slice(0, 200), reason } })
