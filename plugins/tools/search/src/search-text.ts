import type { Tool, ToolResult } from '@svc/core/contracts'
import { toolOf } from '@svc/plugin-kit'
import { compileGlob, type Roots } from '@svc/safe-fs'
import { compileQuery, type FileSearch, type Match, newSearchStats, searchPlace, type SearchStats } from './search-files.ts'
import type { FileSearchConfig } from './settings.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly query: string
  readonly regex?: boolean
  readonly ignore_case?: boolean
  readonly path?: string
  readonly glob?: string
  readonly context?: number
  readonly ignored?: boolean
}

/** Creates `search_text`, which finds lines in the text files of the roots. */
export function createSearchText(roots: Roots, limits: FileSearchConfig): Tool {
  return toolOf<Arguments>({
    description: `Searches the lines of text files, in a folder recursively or in a file. Skips binary and very large files, and files that .gitignore and .ignore exclude. ${roots.words}`,
    category: 'search',
    effects: ['read'],
    workplace: true,
    parameters: PARAMETERS,
    result: RESULT,
    async call(wanted, { signal }) {
      const search = await prepare(wanted, limits, signal)
      const path = wanted.path ?? '.'
      if (roots.isAll(path))
        for (const label of roots.labels) await searchPlace(roots, await roots.find(label), `${label}/`, search)
      else await searchPlace(roots, await roots.find(path), '', search)
      signal.throwIfAborted()
      return toResult(path, search)
    },
  })
}

async function prepare(wanted: Arguments, limits: FileSearchConfig, signal: AbortSignal): Promise<FileSearch> {
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
    tally: newSearchStats(),
  }
}

function toResult(path: string, { matches, lines, tally, limits }: FileSearch): ToolResult {
  const cut = lines.cut > 0 ? [`Very long lines of which only the start was searched: ${lines.cut}.`] : []
  const note = [...endOf(tally, limits), ...passedOver(tally), ...cut, ...(matches.length === 0 ? ['No matches.'] : [])].join(' ')
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

function endOf({ ended, cut, entries, files }: SearchStats, { max_matches }: FileSearchConfig): string[] {
  if (ended === 'matches') return [`More lines match; these are the first ${max_matches}.`]
  if (ended) return [`The search ended after ${files} files, at the ${ended === 'time' ? 'time' : 'size'} limit of a call.`]
  return cut ? [`The search is incomplete: it ended after ${entries} entries.`] : []
}

function passedOver({ binary, large, unreadable }: SearchStats): string[] {
  const kinds = [
    [binary, 'binary'],
    [large, 'too large'],
    [unreadable, 'unreadable'],
  ] as const
  const words = kinds.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`)
  return words.length > 0 ? [`Skipped files: ${words.join(', ')}.`] : []
}

/** The format of grep: `path:line: text`, and context lines with `-`. */
const linesOf = (matches: readonly Match[]) =>
  matches.flatMap(({ path, line, text, before = [], after = [] }) => [
    ...before.map((item, at) => `${path}-${line - before.length + at}- ${item}`),
    `${path}:${line}: ${text}`,
    ...after.map((item, at) => `${path}-${line + 1 + at}- ${item}`),
    ...(before.length + after.length > 0 ? ['--'] : []),
  ])

const flag = (description: string) => ({ type: 'boolean', description: `${description}; default false` }) as const
const lines = { type: 'array', items: { type: 'string' } } as const

/** JSON Schema of the arguments of `search_text`. */
const PARAMETERS = {
  type: 'object',
  properties: {
    query: { type: 'string', minLength: 1, maxLength: 1000, description: 'text to find in a line' },
    regex: flag('whether query is a regular expression (RE2: no lookaround, no back-references)'),
    ignore_case: flag('whether to ignore upper and lower case'),
    path: { type: 'string', minLength: 1, maxLength: 4096, description: 'directory or file to search; default "."' },
    glob: {
      type: 'string',
      minLength: 1,
      maxLength: 1024,
      description: 'pattern for files, relative to path: *.ts, src/**/*.{js,ts}; default: all',
    },
    context: { type: 'integer', minimum: 0, maximum: 10, description: 'lines to show before and after each match; default 0' },
    ignored: flag('whether to include ignored files'),
  },
  required: ['query'],
  additionalProperties: false,
} as const

/** JSON Schema of its result. */
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
          column: { type: 'integer', description: 'start of the match, counted from 1' },
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
