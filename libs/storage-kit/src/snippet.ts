import type { Json, TextSnippet } from '@svc/core/contracts'
import { matchAt, type ParsedQuery, textsAt, type Token, tokensOf } from './text.ts'

/** Characters of a snippet, and of a text before its first match. */
const SNIPPET = 160
const BEFORE = 40
/** Characters of texts that one search looks through for matches. */
const MOST_CHARS = 1_000_000
const MOST_MARKS = 50

/** Makes the snippets of one search. */
export interface Snippets {
  of(fields: readonly string[], value: Json): TextSnippet[]
}

/** Makes snippets of fields with matches, as long as the search has looked through a limited number of characters. */
export function createSnippets(query: ParsedQuery): Snippets {
  let left = MOST_CHARS
  const snippetOf = (path: string, text: string): TextSnippet | undefined => {
    const looked = text.slice(0, left)
    left -= looked.length
    const marks = marksIn(looked, query)
    return marks.length === 0 ? undefined : cut(path, text, marks)
  }
  return {
    of: (fields, value) =>
      fields.flatMap(path => {
        for (const text of textsAt(value, path)) {
          const snippet = left > 0 ? snippetOf(path, text) : undefined
          if (snippet) return [snippet]
        }
        return []
      }),
  }
}

type Mark = readonly [from: number, to: number]

/** The places of matches, up to a snippet's length behind the first one. */
function marksIn(text: string, { all }: ParsedQuery): Mark[] {
  const marks: Mark[] = []
  const tokens: Token[] = []
  const longest = Math.max(...all.map(({ words }) => words.length))
  const words: string[] = []
  const look = (at: number) => {
    const length = Math.max(...all.map(term => matchAt(words, at, term)))
    const last = tokens[at + length - 1]
    if (length > 0 && last && tokens[at]!.from >= (marks.at(-1)?.[1] ?? 0)) marks.push([tokens[at]!.from, last.to])
  }
  for (const token of tokensOf(text)) {
    tokens.push(token)
    words.push(token.word)
    if (tokens.length >= longest) look(tokens.length - longest)
    if (marks.length >= MOST_MARKS || (marks.length > 0 && token.from > marks[0]![0] + SNIPPET)) return marks
  }
  for (let at = Math.max(0, tokens.length - longest + 1); at < tokens.length; at++) look(at)
  return marks
}

function cut(path: string, text: string, marks: readonly Mark[]): TextSnippet {
  const first = marks[0]![0]
  const from = first <= BEFORE ? 0 : startOf(text, first - BEFORE, first)
  const to = from + SNIPPET >= text.length ? text.length : endOf(text, Math.max(from + SNIPPET, marks[0]![1]), marks[0]![1])
  const [head, tail] = [from > 0 ? '…' : '', to < text.length ? '…' : '']
  const shown = marks.filter(mark => mark[1] <= to).map(([a, b]) => [a - from + head.length, b - from + head.length] as const)
  return { path, text: `${head}${text.slice(from, to)}${tail}`, marks: shown }
}

/** The beginning of a word at or behind `at`, at most at `limit`. */
function startOf(text: string, at: number, limit: number): number {
  const space = text.slice(at, limit).search(/\s\S/)
  return safe(text, space < 0 ? at : at + space + 1)
}

/** The end of a word at or before `at`, at least at `least`. */
function endOf(text: string, at: number, least: number): number {
  const space = text.slice(least, at).search(/\s\S*$/)
  return safe(text, space < 0 ? at : least + space)
}

/** Never between the halves of a surrogate pair. */
const safe = (text: string, at: number) => (/[\udc00-\udfff]/.test(text.charAt(at)) ? at + 1 : at)
