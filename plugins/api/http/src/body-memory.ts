import { getHeapStatistics } from 'node:v8'
import type { RequestState } from './context.ts'
import { payloadTooLarge, tooManyBodies, tooManyValues } from './errors.ts'

/**
 * Limits the memory of the bodies of all open requests together. It is estimated from bytes and values: a list of empty lists takes ten times as much memory as
 * its text.
 */
export interface BodyMemory {
  /**
   * Counts the body of a request, until the request ends. `declared`: the `Content-Length`. Throws PAYLOAD_TOO_LARGE for a body that never fits, and UNAVAILABLE
   * while other bodies take the memory.
   */
  open(state: RequestState, declared: number | undefined, separators: Separators): TakeChunk
}

/** Counts a chunk before it is kept. Throws PAYLOAD_TOO_LARGE, UNAVAILABLE. */
export type TakeChunk = (chunk: Uint8Array) => void

/** What separates the values of a body. */
export type Separators = 'json' | 'form' | 'none'

/** Estimated bytes of memory for each byte of a body, which exists as text too while it is parsed. */
const PER_BYTE = 2
/** The same for each value. */
const PER_VALUE = 64
/** Limit of the values in one body. */
const MOST_VALUES = 2_000_000
/** Bodies up to this size are always accepted, so that large bodies do not block all others. */
const SMALL = 16_384
/** The part of the heap that bodies can take by default. */
const HEAP_PART = 3

/** `most`: estimated bytes. Default: a third of the largest possible heap. */
export function createBodyMemory(most: number = Math.floor(getHeapStatistics().heap_size_limit / HEAP_PART)): BodyMemory {
  let held = 0
  return {
    open(state, declared, separators) {
      const expected = (declared ?? 0) * PER_BYTE
      if (expected > most) throw payloadTooLarge(Math.floor(most / PER_BYTE))
      if (declared !== undefined && declared > SMALL && held + expected > most) throw tooManyBodies()
      const valuesIn = createValueCounter(separators)
      let mine = 0
      let values = 0
      state.freeBody = () => {
        held -= mine
        mine = 0
      }
      return chunk => {
        if (state.gone) return
        const more = valuesIn(chunk)
        values += more
        if (values > MOST_VALUES) throw tooManyValues(MOST_VALUES)
        const size = chunk.length * PER_BYTE + more * PER_VALUE
        mine += size
        held += size
        if (mine > most) throw payloadTooLarge(Math.floor(most / PER_BYTE))
        if (mine > SMALL * PER_BYTE && held > most) throw tooManyBodies()
      }
    },
  }
}

const [QUOTE, BACKSLASH, COMMA, LIST, OBJECT, AND] = [...Buffer.from('"\\,[{&')] as [
  number,
  number,
  number,
  number,
  number,
  number,
]

/** Counts the values of a body, chunk by chunk: not exactly, but never far too few. */
function createValueCounter(separators: Separators): (chunk: Uint8Array) => number {
  if (separators === 'json') return createJsonCounter()
  return separators === 'form' ? chunk => chunk.reduce((count, byte) => (byte === AND ? count + 1 : count), 0) : () => 0
}

/** Characters of a string without a quote or backslash after which a native search for the next quote is faster. */
const PLAIN = 64

/** Whether an odd number of backslashes is before this index. */
function isOddRun(chunk: Uint8Array, end: number): boolean {
  let first = end
  while (first > 0 && chunk[first - 1] === BACKSLASH) first--
  return (end - first) % 2 === 1
}

/** Counts commas and opening brackets outside of strings. */
function createJsonCounter(): (chunk: Uint8Array) => number {
  let isInString = false
  /** The next character is escaped. */
  let isEscaped = false

  /** Returns the index after the string, or the length of the chunk. Local variables are several times faster than those of the closure. */
  const skipString = (chunk: Uint8Array, start: number): number => {
    const { length } = chunk
    let escaped = isEscaped
    let plain = 0
    let at = start
    for (; isInString && at < length; at++) {
      const byte = chunk[at]
      if (escaped) escaped = false
      else if (byte === BACKSLASH) escaped = true
      else if (byte === QUOTE) isInString = false
      else if (++plain === PLAIN) {
        plain = 0
        const quote = chunk.indexOf(QUOTE, at)
        const end = quote < 0 ? length : quote
        escaped = isOddRun(chunk, end)
        at = end - 1
      }
    }
    isEscaped = escaped
    return at
  }
  return chunk => {
    let count = 0
    for (let at = 0; at < chunk.length; ) {
      if (isInString) {
        at = skipString(chunk, at)
        continue
      }
      const byte = chunk[at++]
      if (byte === QUOTE) isInString = true
      else if (byte === COMMA || byte === LIST || byte === OBJECT) count++
    }
    return count
  }
}
