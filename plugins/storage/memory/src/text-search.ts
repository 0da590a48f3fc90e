import { createYielder } from '@svc/core'
import type { Json, TextFields } from '@svc/core/contracts'
import { type HitPlace, matchAt, type ParsedQuery, type Term, type TextEntry, textEntry } from '@svc/storage-kit'

/** A full-text index in memory: the words of each record, and the records of each word. */
export interface MemoryText {
  readonly fields: TextFields
  put(key: string, value: Json): void
  remove(key: string): void
  /** Reads the words of all records that were put since the last search. Rejects when the signal aborts. */
  catchUp(signal: AbortSignal): Promise<void>
  /** All records that match, best first, among those that it has caught up with. */
  search(query: ParsedQuery, filter: string | undefined): HitPlace[]
}

interface Entry extends TextEntry {
  readonly words: number
}

// the constants of BM25, as FTS5 has them
const [K1, B] = [1.2, 0.75]
const LEAST_IDF = 1e-6

/** The contents of an index. */
interface Held {
  readonly entries: Map<string, Entry>
  readonly keysOfWord: Map<string, Set<string>>
  /** Number of words of all entries. */
  words: number
}

/**
 * Creates an empty index. A search reads the words of the records that were put before it, not the put: most servers search
 * seldom, and indexing each turn of a conversation would be an eighth of the cost of a chat.
 */
export function createMemoryText(fields: TextFields): MemoryText {
  const held: Held = { entries: new Map(), keysOfWord: new Map(), words: 0 }
  const unread = new Map<string, Json>()
  return {
    fields,
    put: (key, value) => void unread.set(key, value),
    remove(key) {
      unread.delete(key)
      forget(held, key)
    },
    async catchUp(signal) {
      const yielder = createYielder(signal)
      // a record that is put meanwhile is added at the end of the map, so this loop reaches it
      for (const [key, value] of unread) {
        unread.delete(key)
        forget(held, key)
        readWords(held, key, textEntry(fields, value))
        if (yielder.isDue()) await yielder.take()
      }
    },
    search: (query, filter) => search(held, query, filter),
  }
}

function readWords(held: Held, key: string, entry: TextEntry | undefined): void {
  if (!entry) return
  const { entries, keysOfWord } = held
  const all = entry.fields.flat()
  entries.set(key, { ...entry, words: all.length })
  held.words += all.length
  for (const word of all) (keysOfWord.get(word) ?? keysOfWord.set(word, new Set()).get(word)!).add(key)
}

function forget(held: Held, key: string): void {
  const { entries, keysOfWord } = held
  const entry = entries.get(key)
  if (!entry) return
  entries.delete(key)
  held.words -= entry.words
  for (const word of new Set(entry.fields.flat())) {
    const keys = keysOfWord.get(word)!
    keys.delete(key)
    if (keys.size === 0) keysOfWord.delete(word)
  }
}

function search(held: Held, { all, none }: ParsedQuery, filter: string | undefined): HitPlace[] {
  if (all.length === 0) return []
  const counts = all.map(term => countsOf(held, term))
  const excluded = none.map(term => countsOf(held, term))
  const isFound = (key: string) =>
    counts.every(of => of.has(key)) &&
    !excluded.some(of => of.has(key)) &&
    (filter === undefined || held.entries.get(key)!.filters.includes(filter))
  const keys = [...counts[0]!.keys()].filter(isFound)
  return keys
    .map(key => ({ score: scoreOf(held, key, counts), key }))
    .sort((a, b) => b.score - a.score || compareKeys(a.key, b.key))
}

/** How often each record has a term. */
function countsOf(held: Held, term: Term): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keysOf(held, term)) {
    const times = held.entries.get(key)!.fields.reduce((sum, list) => sum + timesIn(list, term), 0)
    if (times > 0) counts.set(key, times)
  }
  return counts
}

/** The records that can have a term: those with its first word. */
function keysOf({ keysOfWord }: Held, { words: [first, ...rest], prefix }: Term): Iterable<string> {
  if (!prefix || rest.length > 0) return keysOfWord.get(first!) ?? []
  return new Set([...keysOfWord].filter(([word]) => word.startsWith(first!)).flatMap(([, keys]) => [...keys]))
}

function scoreOf({ entries, words }: Held, key: string, counts: readonly Map<string, number>[]): number {
  const long = K1 * (1 - B + (B * entries.get(key)!.words) / (words / entries.size))
  return counts.reduce((sum, of) => {
    const times = of.get(key)!
    const idf = Math.max(LEAST_IDF, Math.log((entries.size - of.size + 0.5) / (of.size + 0.5)))
    return sum + (idf * (times * (K1 + 1))) / (times + long)
  }, 0)
}

const timesIn = (words: readonly string[], term: Term) =>
  words.reduce((sum, _, at) => sum + (matchAt(words, at, term) > 0 ? 1 : 0), 0)

/** The order of keys: by their bytes. */
export const compareKeys = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
