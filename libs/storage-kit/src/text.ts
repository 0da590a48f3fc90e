import { hash } from 'node:crypto'
import type { Json, TextFields } from '@svc/core/contracts'
import { prefixOf, scalarAt, stepsOf } from './sort-key.ts'

// The analysis of texts and queries for all stores, so that each finds the same. A token is a word without case, accents and
// compatibility forms: it contains letters, digits and marks only. Scripts without spaces have a token for each character, and a
// word of a query that has several tokens is a phrase.

/** A word of a text with its place. */
export interface Token {
  readonly word: string
  readonly from: number
  readonly to: number
}

/** A part of a query: words in this order, the last one as the beginning of a word if `prefix`. */
export interface Term {
  readonly words: readonly string[]
  readonly prefix: boolean
}
/** A parsed query: records that contain all of `all` and none of `none`. Without `all`, it finds nothing. */
export interface ParsedQuery {
  readonly all: readonly Term[]
  readonly none: readonly Term[]
}

const WORDS =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]\p{M}*|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]]+/gv
const NO_WORD = /[^\p{L}\p{N}\p{M}]+/gu
const ACCENTS = /[\u0300-\u036f]+/g
/** Longer words are cut. */
const LONGEST_WORD = 64
/** Further characters of a text are not searched. */
const MOST_CHARS = 1_000_000
/** Between two texts of a list: no phrase contains it. */
const GAP = '\ue000'
/** Further terms of a query are ignored. */
const MOST_TERMS = 32
/** A shorter prefix would match a good part of all words. */
const LEAST_PREFIX = 2

const PLAIN = /^[a-z0-9]+$/
function wordOf(text: string): string {
  const cut = text.slice(0, LONGEST_WORD)
  if (PLAIN.test(cut)) return cut
  const folded = cut.normalize('NFKD').replace(ACCENTS, '').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return folded.normalize('NFKD').replace(ACCENTS, '').replace(NO_WORD, '').normalize('NFC').toWellFormed()
}

/** The words of a text, in order. */
export function* tokensOf(text: string): Generator<Token> {
  for (const { 0: found, index } of text.slice(0, MOST_CHARS).matchAll(WORDS)) {
    const word = wordOf(found)
    if (word !== '') yield { word, from: index, to: index + found.length }
  }
}

const wordsOf = (text: string): string[] => Array.from(tokensOf(text), ({ word }) => word)

/** The texts at a path of a value: a text, or those of a list. */
export function textsAt(value: Json, path: string): readonly string[] {
  let here: unknown = value
  for (const step of stepsOf(path)) {
    if (typeof here !== 'object' || here === null || Array.isArray(here) || !Object.hasOwn(here, step)) return []
    here = (here as Record<string, unknown>)[step]
  }
  return (Array.isArray(here) ? here : [here]).filter(item => typeof item === 'string')
}

/** A record in a full-text index: the words of each field, and tokens that stand for the values of its filters. */
export interface TextEntry {
  readonly fields: readonly (readonly string[])[]
  readonly filters: readonly string[]
}

/** Analyzes a record. Undefined if it has no words, so that no search finds it. */
export function textEntry({ fields, filters = [] }: TextFields, value: Json): TextEntry | undefined {
  const words = fields.map(path =>
    textsAt(value, path).flatMap((text, at) => (at === 0 ? wordsOf(text) : [GAP, ...wordsOf(text)]))
  )
  if (words.every(list => list.length === 0)) return undefined
  const values = filters.map(path => scalarAt(value, path))
  return { fields: words, filters: values.map((_, at) => filterToken(values.slice(0, at + 1))) }
}

/** Stands for the values of the first filters in an index. */
export const filterToken = (values: readonly Json[]): string => hash('sha256', prefixOf(values)).slice(0, 32)

const PIECES = /(?<not>(?<![^\s])-(?=\S))?(?:"(?<phrase>[^"]*)(?:"|$)|(?<word>[^\s"]+))/g

/**
 * Parses what a person types: words, "phrases", the beginning of a word with `*`, and `-` before what must be absent. Any text is
 * a valid query; everything else is ignored.
 */
export function parseQuery(query: string): ParsedQuery {
  const parsed: { all: Term[]; none: Term[] } = { all: [], none: [] }
  for (const { groups = {} } of query.matchAll(PIECES)) {
    if (parsed.all.length + parsed.none.length >= MOST_TERMS) break
    const { not, phrase, word } = groups
    const words = wordsOf(phrase ?? word ?? '')
    if (words.length === 0) continue
    const prefix = word !== undefined && word.endsWith('*') && Array.from(words.at(-1)!).length >= LEAST_PREFIX
    const list = not === undefined ? parsed.all : parsed.none
    list.push({ words, prefix })
  }
  return parsed
}

/** The number of words from `at` on that a term matches; 0 if it does not match there. */
export function matchAt(words: readonly string[], at: number, { words: wanted, prefix }: Term): number {
  const last = wanted.length - 1
  for (let i = 0; i <= last; i++) {
    const word = words[at + i]
    if (word === undefined || !(prefix && i === last ? word.startsWith(wanted[i]!) : word === wanted[i])) return 0
  }
  return wanted.length
}
