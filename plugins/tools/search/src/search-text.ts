import type { Tool, ToolResult } from '@svc/core/contracts'
import { toolOf } from '@svc/plugin-kit'
import { compileGlob, type Roots } from '@svc/safe-fs'
import { compileQuery, type FileSearch, type Match, noTally, searchPlace, type Tally } from './search-files.ts'
import type { SearchConfig } from './settings.ts'

/** What the schema lets through. */
interface Arguments {
  readonly query: string
  readonly regex?: boolean
  readonly ignore_case?: boolean
  readonly path?: string
  readonly glob?: string
  readonly context?: number
  readonly ignored?: boolean
}

/** Makes `search_text`: finds lines in the text files of the roots. */
export function createSearchText(roots: Roots, limits: SearchConfig): Tool {
  return toolOf<Arguments>({
    description: `Searches the lines of text files, in a folder and all below it or in one file. What .gitignore and .ignore leave out, binary and very large files are passed over. ${roots.words}`,
    category: 'search',
    effects: ['read'],
    parameters: PARAMETERS,
    result: RESULT,
    async call(wanted, { signal }) {
      const search = await prepare(wanted, limits, signal)
      const path = wanted.path ?? '.'
      if (roots.isAll(path))
        for (const label of roots.labels) await searchPlace(roots, await roots.find(label), `${label}/`, search)
      else await searchPlace(roots, await roots.find(path), '', search)
      signal.throwIfAborted()
      return told(path, search)
    },
  })
}

async function prepare(wanted: Arguments, limits: SearchConfig, signal: AbortSignal): Promise<FileSearch> {
  const { query, regex = false, ignore_case = false, glob, context = 0, ignored = false } = wanted
  const end = performance.now() + limits.timeout_ms
  return {
    query: await compileQuery(query, regex, ignore_case),
    fits: glob === undefined ? () => true : await compileGlob(glob),
    context,
    ignored,
    signal,
    limits,
    most: limits.max_matches,
    isLate: () => performance.now() > end,
    matches: [],
    lines: { cut: 0 },
    tally: noTally(),
  }
}

function told(path: string, { matches, lines, tally, limits }: FileSearch): ToolResult {
  const cut = lines.cut > 0 ? [`Very long lines were searched in their beginning only: ${lines.cut}.`] : []
  const note = [
    ...endOf(tally, limits),
    ...passedOver(tally),
    ...cut,
    ...(matches.length === 0 ? ['Nothing was found.'] : []),
  ].join(' ')
  const text = [...linesOf(matches), ...(note ? [`[${note}]`] : [])].join('\n')
  return {
    content: [{ type: 'text', text }],
    structured: {
      path,
      matches: matches.map(({ before, after, ...match }) => ({
        ...match,
        ...(before ? { before: [...before] } : {}),
        ...(after ? { after: [...after] } : {}),
      })),
      files_searched: tally.files,
      truncated: tally.ended !== undefined || tally.cut,
      ...(note ? { note } : {}),
    },
  }
}

function endOf({ ended, cut, entries, files }: Tally, { max_matches }: SearchConfig): string[] {
  if (ended === 'matches') return [`There are more: these are the first ${max_matches} lines.`]
  if (ended)
    return [`The search ended after ${files} files: that is as much ${ended === 'time' ? 'time' : 'text'} as one call takes.`]
  return cut ? [`Not everything was searched: it ended after ${entries} entries.`] : []
}

function passedOver({ binary, large, unreadable }: Tally): string[] {
  const kinds = [
    [binary, 'binary'],
    [large, 'too large'],
    [unreadable, 'not readable'],
  ] as const
  const words = kinds.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`)
  return words.length > 0 ? [`Passed over: ${words.join(', ')}.`] : []
}

/** As grep writes it: `path:line: text`, lines around it with `-`. */
const linesOf = (matches: readonly Match[]) =>
  matches.flatMap(({ path, line, text, before = [], after = [] }) => [
    ...before.map((one, at) => `${path}-${line - before.length + at}- ${one}`),
    `${path}:${line}: ${text}`,
    ...after.map((one, at) => `${path}-${line + 1 + at}- ${one}`),
    ...(before.length + after.length > 0 ? ['--'] : []),
  ])

const flag = (description: string) => ({ type: 'boolean', description: `${description}; default false` }) as const
const lines = { type: 'array', items: { type: 'string' } } as const

/** JSON Schema of the arguments of `search_text`. */
const PARAMETERS = {
  type: 'object',
  properties: {
    query: { type: 'string', minLength: 1, maxLength: 1000, description: 'what to find in a line, as it is written' },
    regex: flag('whether query is a regular expression (RE2: no lookaround, no back-references)'),
    ignore_case: flag('whether upper and lower case are the same'),
    path: { type: 'string', minLength: 1, maxLength: 4096, description: 'the directory or file to search; default "."' },
    glob: {
      type: 'string',
      minLength: 1,
      maxLength: 1024,
      description: 'a pattern for the files, seen from path: *.ts, src/**/*.{js,ts}; default all',
    },
    context: { type: 'integer', minimum: 0, maximum: 10, description: 'lines to show before and after each; default 0' },
    ignored: flag('whether to search what ignore files leave out, too'),
  },
  required: ['query'],
  additionalProperties: false,
} as const

/** JSON Schema of its answer. */
const RESULT = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    matches: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          path: { type: 'string' },
          line: { type: 'integer' },
          column: { type: 'integer', description: 'where it begins to fit, from 1' },
          text: { type: 'string' },
          before: lines,
          after: lines,
        },
        required: ['path', 'line', 'column', 'text'],
        additionalProperties: false,
      },
    },
    files_searched: { type: 'integer' },
    truncated: { type: 'boolean' },
    note: { type: 'string' },
  },
  required: ['path', 'matches', 'files_searched', 'truncated'],
  additionalProperties: false,
} as const
