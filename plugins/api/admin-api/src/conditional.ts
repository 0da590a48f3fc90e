import { svcError } from '@svc/core'
import type { RouteRequest } from '@svc/core/contracts'

// Conditional requests (RFC 9110, 13): a change names the version that the client has read.

/** The header of a version. */
export const etag = (version: string) => ({ etag: `"${version}"`, 'cache-control': 'no-cache' })

/**
 * The version that a change expects; undefined for `*`, any. Without the header, the change of another would be lost. Throws
 * MISSING_FIELD, INVALID_VALUE, PRECONDITION_FAILED.
 */
export function expectedVersion({ headers }: Pick<RouteRequest, 'headers'>): string | undefined {
  const given = headers['if-match']?.trim()
  if (given === undefined || given === '') throw headerMissing()
  if (given === '*') return undefined
  const [, weak, version] = /^(W\/)?"([\x21\x23-\x7e]{0,200})"$/.exec(given) ?? []
  if (version === undefined) throw headerInvalid()
  if (weak !== undefined) throw weakVersion()
  return version
}

const HINT = 'Send the ETag of the answer that was read'

const headerMissing = () =>
  svcError('MISSING_FIELD', 'Missing required header: If-Match', {
    details: { required_fields: ['If-Match'], provided_fields: [] },
    hint: HINT,
  })

const headerInvalid = () =>
  svcError('INVALID_VALUE', 'If-Match must be one ETag or *', {
    details: { field: 'If-Match', reason: 'must be one ETag or *' },
    hint: HINT,
  })

const weakVersion = () =>
  svcError('PRECONDITION_FAILED', 'If-Match needs a strong ETag', { details: { field: 'If-Match' }, hint: HINT })
