import type { Json } from '@svc/core/contracts'
import { type CheckedSearch, type ParsedQuery, type Term, textEntry } from '@svc/storage-kit'
import type { StoredTextIndex } from '@svc/storage-kit/stored-catalog'
import type { Statement } from './line.ts'

// svc analyzes texts and queries itself, as in the other stores: PostgreSQL gets lexemes only, without its dictionaries. A GIN index
// finds the candidates. Phrases and scores (BM25) need the places of words, of which a tsvector holds too few, so they come from
// the words in `body`: each is between two spaces, and fields are separated by a line break.

/** A row of `texts`. */
export type TextRow = readonly [idx: number, record: number, words: number, body: string, lexemes: string]

/** Bytes of lexemes in a row; a tsvector holds a MiB. Further different words of one record are not found. */
const MOST_BYTES = 900_000

/** The lexeme of a word, or of a filter, in an index: all indexes share a table. */
const wordLexeme = (idx: number, word: string) => `${idx}:${word}`
const filterLexeme = (idx: number, token: string) => `${idx}/${token}`
const quote = (lexeme: string) => `'${lexeme}'`

/** A record in a full-text index; undefined if it has no words. */
export function textRow({ id, fields }: StoredTextIndex, record: number, value: Json): TextRow | undefined {
  const entry = textEntry(fields, value)
  if (!entry) return undefined
  const all = entry.fields.flat()
  const lexemes: string[] = []
  let bytes = 0
  for (const lexeme of new Set([
    ...entry.filters.map(token => filterLexeme(id, token)),
    ...all.map(word => wordLexeme(id, word)),
  ])) {
    bytes += Buffer.byteLength(lexeme)
    if (bytes > MOST_BYTES) break
    lexemes.push(quote(lexeme))
  }
  const body = entry.fields.map(words => words.map(word => ` ${word} `).join('')).join('\n')
  return [id, record, all.length, body, lexemes.join(' ')]
}

/** The query for the GIN index; undefined if it finds nothing. Words contain letters, digits and marks only. */
function candidates(idx: number, { all, none }: ParsedQuery, filter: string | undefined): string | undefined {
  if (all.length === 0) return undefined
  const excluded = none.filter(({ words }) => words.length === 1)
  return [
    ...(filter === undefined ? [] : [quote(filterLexeme(idx, filter))]),
    ...all.map(term => termQuery(idx, term)),
    ...excluded.map(term => `!${termQuery(idx, term)}`),
  ].join(' & ')
}

const termQuery = (idx: number, { words, prefix }: Term) =>
  words.map((word, at) => `${quote(wordLexeme(idx, word))}${prefix && at === words.length - 1 ? ':*' : ''}`).join(' & ')

/** What stands in a body where the term matches. */
const needleOf = ({ words, prefix }: Term) =>
  words.map((word, at) => (prefix && at === words.length - 1 ? ` ${word}` : ` ${word} `)).join('')

const [K1, B] = [1.2, 0.75]
const LEAST_IDF = 1e-6

/** The numbers of an index that scores need. */
export interface TextStats {
  readonly entries: number
  readonly words: number
}
export const statsOf = (s: string): Statement => ({
  name: 'text_stats',
  text: `SELECT count(*) AS entries, coalesce(sum(words), 0)::bigint AS words FROM ${s}.texts WHERE idx = $1`,
})

/** A statement that finds a page of hits, with its values; undefined if nothing is found. */
export function searchStep(
  s: string,
  { id }: StoredTextIndex,
  { parsed, filter, after }: CheckedSearch,
  { limit, matches, stats }: { readonly limit: number; readonly matches: number; readonly stats: TextStats }
): readonly [Statement, unknown[]] | undefined {
  const query = candidates(id, parsed, filter)
  if (query === undefined) return undefined
  const values: unknown[] = [query, after?.score ?? null, after?.key ?? '', Math.max(1, stats.words / Math.max(1, stats.entries))]
  const value = (item: unknown) => `$${values.push(item)}`
  const times = (term: Term) => {
    const needle = value(needleOf(term))
    return `((length(body) - length(replace(body, ${needle}::text, '')))::float8 / length(${needle}::text))`
  }
  const counted = parsed.all.map((term, at) => `${times(term)} AS t${at}`)
  const absent = parsed.none.filter(({ words }) => words.length > 1).map(term => `${times(term)} = 0`)
  const found = parsed.all.map(
    (term, at) =>
      `f${at} AS (SELECT count(*) AS n FROM (SELECT FROM ${s}.texts WHERE lexemes @@ ${value(termQuery(id, term))}::tsquery LIMIT ${matches}) AS x)`
  )
  const idf = (at: number) =>
    `greatest(${LEAST_IDF}, ln((greatest(${value(stats.entries)}::float8, n${at}) - n${at} + 0.5) / (n${at} + 0.5)))`
  const score = parsed.all.map(
    (_, at) => `${idf(at)} * t${at} * ${K1 + 1} / (t${at} + ${K1} * (${1 - B} + ${B} * words / $4::float8))`
  )
  const text = `WITH found AS MATERIALIZED (SELECT record, words, body FROM ${s}.texts WHERE lexemes @@ $1::tsquery ORDER BY record DESC LIMIT ${matches}),
    ${found.join(', ')},
    counted AS (SELECT record, words, ${counted.join(', ')} FROM found${absent.length > 0 ? ` WHERE ${absent.join(' AND ')}` : ''}),
    scored AS MATERIALIZED (SELECT record, ${score.join(' + ')} AS score FROM counted, ${parsed.all.map((_, at) => `(SELECT n AS n${at} FROM f${at}) AS s${at}`).join(', ')}
      WHERE ${parsed.all.map((_, at) => `t${at} > 0`).join(' AND ')})
    SELECT r.key, r.version, r.value, scored.score FROM scored JOIN ${s}.records r ON r.id = scored.record
    WHERE $2::float8 IS NULL OR scored.score < $2::float8 OR (scored.score = $2::float8 AND r.key > $3)
    ORDER BY scored.score DESC, r.key LIMIT ${limit}`
  return [{ text }, values]
}
