import { type SvcError, svcError } from '@svc/core'

export const queryInvalid = (query: string, why: string): SvcError =>
  svcError('QUERY_INVALID', `"${query.length > 200 ? `${query.slice(0, 200)}…` : query}" is not a valid query: ${why}`, {
    hint: 'Write an RE2 regular expression (no lookaround, no back-references). To search for plain text, omit the parameter "regex"',
  })
