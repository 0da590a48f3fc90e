import { messageOf } from '@svc/core'
import { queryInvalid } from './errors.ts'

/** What is searched for. */
export interface Query {
  readonly isRegex: boolean
  /** Where a line begins to fit, from 0; -1 where it does not. */
  find(line: string): number
}

/**
 * Makes the test of a line. Regular expressions are those of RE2, whose time grows with the text and not with the pattern's tricks: they come
 * from models and callers, and the loop that serves everybody else must not stand still. Throws QUERY_INVALID.
 */
export async function compileQuery(query: string, regex: boolean, ignoreCase: boolean): Promise<Query> {
  if (/[\n\r]/.test(query)) throw queryInvalid(query, 'a match lies within one line')
  if (!regex && !ignoreCase) return { isRegex: false, find: line => line.indexOf(query) }
  const { RE2JS } = await import('re2js')
  try {
    const compiled = RE2JS.compile(regex ? query : RE2JS.quote(query), ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    const find = (line: string) => {
      if (!compiled.test(line)) return -1
      const matcher = compiled.matcher(line)
      return matcher.find() ? matcher.start() : -1
    }
    return { isRegex: regex, find }
  } catch (error) {
    throw queryInvalid(query, messageOf(error))
  }
}
