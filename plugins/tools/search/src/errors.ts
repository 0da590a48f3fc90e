import { type SvcError, svcError } from '@svc/core'

export const queryInvalid = (query: string, why: string): SvcError =>
  svcError('QUERY_INVALID', `"${query.length > 200 ? `${query.slice(0, 200)}…` : query}" is not a valid query: ${why}`, {
    hint: 'Write a regular expression of RE2, without lookaround and back-references, or omit regex to search for plain text',
  })
