import { svcError } from '@svc/core'

export const fileUnknown = (path: string) => svcError('NOT_FOUND', `the page has no file ${path.slice(0, 200)}`)

export const methodNotAllowed = (method: string, allowed: readonly string[]) =>
  svcError('METHOD_NOT_ALLOWED', `${method} is not allowed here`, { details: { allowed } })
