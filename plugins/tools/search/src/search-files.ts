import { lstat } from 'node:fs/promises'
import { createYielder, messageOf } from '@svc/core'
import {
  withPathErrors,
  isPathError,
  newWalkStats,
  type Opened,
  openFileIn,
  openPlace,
  type ResolvedPath,
  readWhole,
  type Roots,
  type Visit,
  walk,
  type WalkStats,
} from '@svc/safe-fs'
import { queryInvalid } from './errors.ts'
import type { FileSearchConfig } from './settings.ts'

/** Counters of a search. */
export interface SearchStats extends WalkStats {
  files: number
  bytes: number
  binary: number
  large: number
  /** Why the search is incomplete. */
  ended?: 'matches' | 'time' | 'bytes'
}

/** A search in files: its options and counters. */
export interface FileSearch extends Search {
  readonly limits: FileSearchConfig
  readonly ignored: boolean
  /** Whether to search a file, by its path relative to the start. */
  fits(path: string): boolean
  readonly tally: SearchStats
}

export const newSearchStats = (): SearchStats => ({ ...newWalkStats(), files: 0, bytes: 0, binary: 0, large: 0 })

/** Searches a file, or a directory recursively. */
export async function searchPlace(roots: Roots, start: ResolvedPath, inner: string, search: FileSearch): Promise<void> {
  const { signal } = search
  await withPathErrors(start.shown, signal, async () => {
    if ((await lstat(start.real)).isDirectory()) return searchBelow(roots, start, inner, search)
    await using opened = await openPlace(roots, start, 'file')
    await searchOpened(opened, start.shown, search)
  })
}

async function searchBelow(roots: Roots, start: ResolvedPath, inner: string, search: FileSearch): Promise<void> {
  const { signal, ignored, limits, tally } = search
  for await (const visit of walk(roots, start, { signal, ignored, entries: limits.max_entries }, tally)) {
    if (search.isLate()) tally.ended ??= 'time'
    if (tally.ended) return
    if (visit.type === 'file' && search.fits(inner + visit.path)) await searchVisit(visit, search)
  }
}

async function searchVisit({ folder, name, shown }: Visit, search: FileSearch): Promise<void> {
  try {
    await using opened = await openFileIn(folder, name, shown)
    await searchOpened(opened, shown, search)
  } catch (error) {
    search.signal.throwIfAborted()
    // deleted meanwhile, or unreadable: continue with the others
    if (!isPathError(error)) throw error
    search.tally.unreadable++
  }
}

const LOOKED_AT = 8192

async function searchOpened(opened: Opened, shown: string, search: FileSearch): Promise<void> {
  const { tally, limits, signal } = search
  const bytes = await readWhole(opened, limits.max_file_bytes, signal)
  if (!bytes) return void tally.large++
  tally.files++
  tally.bytes += bytes.length
  if (tally.bytes > limits.max_bytes) tally.ended ??= 'bytes'
  if (bytes.subarray(0, LOOKED_AT).includes(0)) return void tally.binary++
  if (await searchLines(shown, decoder.decode(bytes), search))
    tally.ended ??= search.matches.length === search.most ? 'matches' : 'time'
}

const decoder = new TextDecoder()

/** A matching line with its context. */
export interface Match {
  readonly path: string
  /** Counted from 1. */
  readonly line: number
  readonly column: number
  readonly text: string
  readonly before?: readonly string[]
  readonly after?: readonly string[]
}

/** Options, limits and results of a search. */
interface Search {
  readonly query: Query
  readonly context: number
  readonly signal: AbortSignal
  readonly most: number
  /** Whether the time limit is over. */
  isLate(): boolean
  readonly matches: Match[]
  readonly lines: {
    /** Lines of which only the start was searched. */
    cut: number
  }
}

/** Searched characters of a line: at 1,000 states, a slice takes a tenth of a second. */
const SEARCHED = 5000
/** Displayed characters of a line. */
const SHOWN = 400

/** Searches the lines of a text, and yields to other work. Returns true if there are more matches than `most`, or the time is over. */
async function searchLines(path: string, text: string, search: Search): Promise<boolean> {
  const lines = text.split('\n')
  const yielder = createYielder(search.signal)
  for (let at = 0; at < lines.length; at++) {
    if (yielder.isDue()) {
      await yielder.take()
      if (search.isLate()) return true
    }
    const isCut = search.query.isRegex && lines[at]!.length > SEARCHED
    if (isCut) search.lines.cut++
    const column = search.query.find(isCut ? lines[at]!.slice(0, SEARCHED) : lines[at]!)
    if (column === -1) continue
    if (search.matches.length === search.most) return true
    search.matches.push(matchAt(path, lines, at, column, search.context))
  }
  return false
}

function matchAt(path: string, lines: readonly string[], at: number, column: number, context: number): Match {
  const around = context > 0
  return {
    path,
    line: at + 1,
    column: column + 1,
    text: shorten(lines[at]!, column),
    ...(around ? { before: lines.slice(Math.max(0, at - context), at).map(line => shorten(line)) } : {}),
    ...(around ? { after: lines.slice(at + 1, at + 1 + context).map(line => shorten(line)) } : {}),
  }
}

/** A line without its end, shortened around the match. */
function shorten(line: string, column = 0): string {
  const text = line.replace(/\r$/, '')
  if (text.length <= SHOWN) return text.toWellFormed()
  const from = Math.max(0, Math.min(column - SHOWN / 4, text.length - SHOWN))
  return `${from > 0 ? '…' : ''}${text.slice(from, from + SHOWN)}${from + SHOWN < text.length ? '…' : ''}`.toWellFormed()
}

/** A compiled query. */
interface Query {
  readonly isRegex: boolean
  /** The position of the first match, from 0; -1 without a match. */
  find(line: string): number
}

/**
 * Compiles a query. Regular expressions are those of RE2, which take linear time: they come from models and callers, and must not
 * block the event loop. Throws QUERY_INVALID.
 */
export async function compileQuery(query: string, regex: boolean, ignoreCase: boolean): Promise<Query> {
  if (/[\n\r]/.test(query)) throw queryInvalid(query, 'it contains a line break, and matches are within a line')
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
