import { defineService, type CallContext } from '@svc/core'
import type { Json, StoreRecord } from './store.ts'

/**
 * A search. `query` is what a person types: words, "phrases", `begin*` (at least two letters), and `-word` for what must be absent.
 * A record matches if its fields contain all of it. Case and accents do not matter. Any text is a valid query; one without words
 * finds nothing.
 */
export interface TextQuery {
  /** The name of the full-text index in the collection. */
  readonly index: string
  /** At most 1000 characters. */
  readonly query: string
  /** Fixes the values of the first `filters`. */
  readonly equals?: readonly Json[]
  /** Maximum number of hits, 1 to 100. A page can be shorter when values are large. Only an absent `next` marks the end. */
  readonly limit: number
  /** `next` of the previous page of the same search. */
  readonly cursor?: string
}

/** A part of a text around matches. Cut ends have an ellipsis. */
export interface TextSnippet {
  readonly path: string
  readonly text: string
  /** Begin and end of each match, as indexes of `text`. */
  readonly marks: readonly (readonly [from: number, to: number])[]
}

/** A found record. */
export interface TextHit<T = Json> {
  readonly record: StoreRecord<T>
  /** Greater is better (BM25). Compare it only with scores of the same search: it depends on all records of the index. */
  readonly score: number
  /** One for each field with a match, in the order of the fields. Large texts can have none. */
  readonly snippets: readonly TextSnippet[]
}
export interface TextPage<T = Json> {
  /** Best first; equal ones by key. */
  readonly hits: readonly TextHit<T>[]
  /** Cursor of the next page; absent at the end. */
  readonly next?: string
}

/**
 * Full-text search over collections of the store. A space declares the indexes with its collections (`text`); a batch changes
 * them together with the records. Every store can provide it. Errors: STORE_UNKNOWN (an undeclared collection or index),
 * STORE_INVALID (a call that violates this contract), STORE_UNAVAILABLE.
 */
export interface TextIndex {
  /** Finds records. With more than 10,000 matches, it can leave out the oldest. Pages are no snapshot: changes in between show. */
  search(collection: string, query: TextQuery, ctx: CallContext): Promise<TextPage>
}

export const TextIndex = defineService<TextIndex>('text_index', { api: 1, methods: { search: 'call' } })
