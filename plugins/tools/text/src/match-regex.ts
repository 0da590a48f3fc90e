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
    index: { type: 'integer', description: 'start of the match in UTF-16 units, from 0' },
    line: { type: 'integer', description: 'line of the start, from 1' },
    groups: {
      type: 'array',
      items: { type: ['string', 'null'] },
      description: 'groups in order; null for a group that did not match',
    },
    named: { type: 'object', additionalProperties: { type: ['string', 'null'] } },
  },
  ['named']
)

/** Creates `match_regex`, which finds the matches of a regular expression and stops slow ones. */
export function createMatchRegex(work: Work): Tool {
  return textTool<Arguments>({
    description:
      'Finds all matches of a JavaScript regular expression in a text, with their groups and lines. Stops patterns that take too long.',
    parameters: objectOf(
      {
        pattern: {
          type: 'string',
          minLength: 1,
          maxLength: 10_000,
          description: 'expression without slashes, such as (\\w+)@(\\w+)',
        },
        text: textOf('text to search'),
        flags: {
          type: 'string',
          pattern: '^[imsuv]*$',
          maxLength: 5,
          description: 'any of i m s u v; default: none; g is always set',
        },
        max_matches: {
          type: 'integer',
          minimum: 1,
          maximum: MOST_MATCHES,
          description: `maximum number of matches; default ${MATCHES}`,
        },
      },
      ['flags', 'max_matches']
    ),
    result: objectOf({
      matches: { type: 'array', items: MATCH },
      count: { type: 'integer', description: 'number of returned matches' },
      more: { type: 'boolean', description: 'whether there are more matches' },
    }),
    async work({ flags = '', max_matches: most = MATCHES, ...args }, ctx) {
      const data = await work.run('match_regex', { ...args, flags, most }, ctx)
      return { data, text: data.count === 0 ? '[Nothing matches.]' : JSON.stringify(data) }
    },
  })
}
