import { createYielder } from '@svc/core'
import type { Query } from './query.ts'

/** A line that fits, and those around it. */
export interface Match {
  readonly path: string
  /** From 1. */
  readonly line: number
  readonly column: number
  readonly text: string
  readonly before?: readonly string[]
  readonly after?: readonly string[]
}

/** How far a search may go, and where it stands. */
export interface Search {
  readonly query: Query
  readonly context: number
  readonly signal: AbortSignal
  readonly most: number
  /** Whether the time is up. */
  isLate(): boolean
  readonly matches: Match[]
  readonly lines: {
    /** Lines that were searched in their first part only. */
    cut: number
  }
}

/** Characters of a line that are searched by an expression: at 1,000 states a slice takes a tenth of a second. */
const SEARCHED = 5000
/** Characters of a line that are shown. */
const SHOWN = 400

/** Searches the lines of a text, and lets others work in between. True when there are more lines than `most`, or the time is up. */
export async function searchLines(path: string, text: string, search: Search): Promise<boolean> {
  const lines = text.split('\n')
  const breath = createYielder(search.signal)
  for (let at = 0; at < lines.length; at++) {
    if (breath.isDue()) {
      await breath.take()
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

/** A line without its end; of a long one the part around the match. */
function shorten(line: string, column = 0): string {
  const text = line.replace(/\r$/, '')
  if (text.length <= SHOWN) return text.toWellFormed()
  const from = Math.max(0, Math.min(column - SHOWN / 4, text.length - SHOWN))
  return `${from > 0 ? '…' : ''}${text.slice(from, from + SHOWN)}${from + SHOWN < text.length ? '…' : ''}`.toWellFormed()
}
