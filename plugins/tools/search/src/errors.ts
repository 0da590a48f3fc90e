import { type SvcError, svcError } from '@svc/core'

export const queryInvalid = (query: string, why: string): SvcError =>
  svcError('QUERY_INVALID', `"${query.length > 200 ? `${query.slice(0, 200)}…` : query}" cannot be searched for: ${why}`, {
    hint: 'a regular expression is one of RE2: no lookaround and no back-references; to find it as it is written leave regex out',
  })
