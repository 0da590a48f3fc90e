import type { Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

interface Arguments {
  readonly pattern: string
  readonly text: string
  readonly flags?: string
  readonly max_matches?: number
}

const MATCHES = 100
const MOST_MATCHES = 1000

const MATCH = objectOf(
  {
    match: { type: 'string' },
    index: { type: 'integer', description: 'where it begins, in UTF-16 units from 0' },
    line: { type: 'integer', description: 'the line it begins in, from 1' },
    groups: {
      type: 'array',
      items: { type: ['string', 'null'] },
      description: 'the groups in their order; null for one that took no part',
    },
    named: { type: 'object', additionalProperties: { type: ['string', 'null'] } },
  },
  ['named']
)

/** Makes `match_regex`: all matches of a regular expression, which is stopped when it takes too long. */
export function createMatchRegex(work: Work): Tool {
  return textTool<Arguments>({
    description:
      'Finds all matches of a JavaScript regular expression in a text, with their groups and lines. Patterns that take too long are stopped.',
    parameters: objectOf(
      {
        pattern: {
          type: 'string',
          minLength: 1,
          maxLength: 10_000,
          description: 'the expression without slashes, like (\\w+)@(\\w+)',
        },
        text: textOf('the text to look through'),
        flags: {
          type: 'string',
          pattern: '^[imsuv]*$',
          maxLength: 5,
          description: 'any of i m s u v; default none; all matches are found anyway',
        },
        max_matches: {
          type: 'integer',
          minimum: 1,
          maximum: MOST_MATCHES,
          description: `how many to answer; default ${MATCHES}`,
        },
      },
      ['flags', 'max_matches']
    ),
    result: objectOf({
      matches: { type: 'array', items: MATCH },
      count: { type: 'integer', description: 'how many are answered' },
      more: { type: 'boolean', description: 'whether there are more' },
    }),
    async work({ flags = '', max_matches: most = MATCHES, ...args }, ctx) {
      const data = await work.run('match_regex', { ...args, flags, most }, ctx)
      return { data, text: data.count === 0 ? '[Nothing matches.]' : JSON.stringify(data) }
    },
  })
}
