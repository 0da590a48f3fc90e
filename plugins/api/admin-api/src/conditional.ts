import { IF_MATCH_HINT, ifMatchOf } from '@svc/api-types'
import { svcError } from '@svc/core'
import type { RouteRequest } from '@svc/core/contracts'

/**
 * The version that a change expects; undefined for `*`, any. Without the header, the change of another would be lost. Throws
 * MISSING_FIELD, INVALID_VALUE, PRECONDITION_FAILED.
 */
export function expectedVersion(request: Pick<RouteRequest, 'headers'>): string | undefined {
  const version = ifMatchOf(request)
  if (version === undefined)
    throw svcError('MISSING_FIELD', 'Missing required header: If-Match', {
      details: { required_fields: ['If-Match'], provided_fields: [] },
      hint: IF_MATCH_HINT,
    })
  return version === '*' ? undefined : version
}
