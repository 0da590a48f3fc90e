import { svcError } from '@svc/core'
import { fieldInvalid } from './fields.ts'

// Conditional requests (RFC 9110, 13): a change names the version that the client has read.

/** The headers of a version. */
export const etag = (version: string) => ({ etag: `"${version}"`, 'cache-control': 'no-cache' })

export const IF_MATCH_HINT = 'Send the ETag of the answer that was read'

/**
 * The version that a change expects; `*` for any, undefined without the header. Throws INVALID_VALUE, and PRECONDITION_FAILED for a
 * weak version.
 */
export function ifMatchOf({ headers }: { readonly headers: Readonly<Record<string, string>> }): string | undefined {
  const given = headers['if-match']?.trim()
  if (given === undefined || given === '') return undefined
  if (given === '*') return given
  const [, weak, version] = /^(W\/)?"([\x21\x23-\x7e]{0,200})"$/.exec(given) ?? []
  if (version === undefined) throw fieldInvalid('If-Match', 'must be one ETag or *')
  if (weak === undefined) return version
  throw svcError('PRECONDITION_FAILED', 'If-Match needs a strong ETag', {
    details: { field: 'If-Match', hint: IF_MATCH_HINT },
    hint: IF_MATCH_HINT,
  })
}
