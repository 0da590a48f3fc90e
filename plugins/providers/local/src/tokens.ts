import { createYielder } from '@svc/core'
import type { ContentPart, MessagePart, ModelRequest, TextPart, ToolSpec } from '@svc/core/contracts'
import type * as cl100k from 'gpt-tokenizer/encoding/cl100k_base'

/** A step encodes so much text that the clock alone would be asked too late. */
const STEPS_PER_TURN = 32

/** A text as the pieces a model would say it in; piece i is worth `tokens[i]`. */
interface Pieces {
  readonly parts: readonly TextPart[]
  readonly tokens: readonly number[]
  readonly total: number
}

/** Counts and splits texts by real tokens. Long texts are worked through in short spells, so that others are served in between. */
export interface Tokens {
  /** The sum over `texts`. */
  count(texts: readonly string[], signal: AbortSignal): Promise<number>
  /** The pieces of `text`; of a long text at least the first `limit` tokens' worth. */
  pieces(text: string, limit: number, signal: AbortSignal): Promise<Pieces>
}

type Encoding = Pick<typeof cl100k, 'encode' | 'countTokens' | 'decode'>

const COUNTS_KEPT = 4_000_000
const PIECES_KEPT = 500_000
/** Longer texts are split anew each time. */
const LONGEST_KEPT = 8_000

/** Loads the tokenizer: 120 ms and 40 MiB, so only when somebody chats. */
export async function loadTokens(): Promise<Tokens> {
  const encoding = await import('gpt-tokenizer/encoding/cl100k_base')
  // Its own cache would keep 100,000 odd words for ever.
  encoding.setMergeCacheSize(1000)
  return createTokens(encoding)
}

// What looks like a token of the protocol is text to us.
const PLAIN = { disallowedSpecial: new Set<string>() }

function createTokens(encoding: Encoding): Tokens {
  const counts = createLruCache<number>(COUNTS_KEPT)
  const known = createLruCache<Pieces>(PIECES_KEPT)
  return {
    async count(texts, signal) {
      const breath = createYielder(signal, { steps: STEPS_PER_TURN })
      let total = 0
      for (const text of texts) {
        const before = counts.get(text)
        if (before !== undefined) {
          total += before
          continue
        }
        let sum = 0
        for (const slice of slices(text)) {
          sum += encoding.countTokens(slice, PLAIN)
          if (breath.isDue()) await breath.take()
        }
        counts.set(text, sum)
        total += sum
      }
      return total
    },
    async pieces(text, limit, signal) {
      const before = known.get(text)
      if (before) return before
      const breath = createYielder(signal, { steps: STEPS_PER_TURN })
      const made = { parts: [] as TextPart[], tokens: [] as number[], total: 0 }
      let whole = true
      for (const slice of slices(text)) {
        // What is short is kept, so it is worth splitting whole.
        whole = made.total <= limit || text.length <= LONGEST_KEPT
        if (!whole) break
        split(encoding, slice, made)
        if (breath.isDue()) await breath.take()
      }
      if (whole) counts.set(text, made.total)
      if (text.length <= LONGEST_KEPT) known.set(text, made)
      return made
    },
  }
}

interface Growing extends Pieces {
  parts: TextPart[]
  tokens: number[]
  total: number
}

function split(encoding: Encoding, slice: string, into: Growing): void {
  const ids = encoding.encode(slice, PLAIN)
  const texts = textsOf(encoding, ids)
  into.total += ids.length
  // Half a surrogate pair has no bytes of its own: such a slice stays in one piece.
  const right = texts.map(one => one.text).join('') === slice
  for (const { text, tokens } of right ? texts : [{ text: slice, tokens: ids.length }]) {
    if (text === '') continue
    into.parts.push({ type: 'text', text })
    into.tokens.push(tokens)
  }
}

// What changes the sign before it stays with it.
const CLINGS = /^[\p{M}\u200d]/u

function textsOf(encoding: Encoding, ids: readonly number[]): { text: string; tokens: number }[] {
  const texts: { text: string; tokens: number }[] = []
  let open = 0
  for (const id of ids) {
    open++
    // A token may be a part of a character: the decoder then answers with nothing and waits for the rest.
    const text = encoding.decode([id])
    const last = texts.at(-1)
    if (text === '') continue
    if (last && text.charCodeAt(0) >= 0x300 && CLINGS.test(text)) {
      last.text += text
      last.tokens += open
    } else texts.push({ text, tokens: open })
    open = 0
  }
  return texts
}

/** Remembers what was worked out for texts of late, bounded by the characters of the texts it holds. */
interface LruCache<T> {
  get(text: string): T | undefined
  set(text: string, value: T): void
}

/**
 * Two generations instead of a list of last uses: a hit costs one look-up and changes nothing. When the young one is full it becomes the old one,
 * and entries without a hit since are dropped.
 */
function createLruCache<T>(maxCharacters: number): LruCache<T> {
  let young = new Map<string, T>()
  let old = new Map<string, T>()
  let room = maxCharacters / 2
  const set = (text: string, value: T) => {
    // The empty text has weight too, and each entry costs some characters' worth.
    room -= text.length + 32
    if (room < 0) {
      old = young
      young = new Map()
      room = maxCharacters / 2 - text.length - 32
    }
    young.set(text, value)
  }
  return {
    get(text) {
      const value = young.get(text)
      if (value !== undefined) return value
      const older = old.get(text)
      if (older !== undefined) set(text, older)
      return older
    },
    set,
  }
}

/** The tokenizer is quadratic in a run without blanks: no slice is longer than this. */
const LONGEST = 256
/** Where a blank is looked for, so that words stay whole. */
const SHORTEST = 128

/** Cuts a text into slices the tokenizer can take: before a blank where there is one, never inside a surrogate pair. */
function* slices(text: string): Generator<string, void> {
  let from = 0
  while (text.length - from > LONGEST) {
    const to = cutBefore(text, from)
    yield text.slice(from, to)
    from = to
  }
  yield text.slice(from)
}

function cutBefore(text: string, from: number): number {
  const end = from + LONGEST
  for (let at = end; at > from + SHORTEST; at--) if (text.charCodeAt(at) === 32) return at
  return isLow(text.charCodeAt(end)) && isHigh(text.charCodeAt(end - 1)) ? end - 1 : end
}

const isHigh = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff

/** What a message costs besides its text: role and borders. */
const A_MESSAGE = 4
const AN_IMAGE = 85

/** Counts the tokens of a request as input: its messages, the tools it offers, the schema it asks for. */
export async function countInput(tokens: Tokens, request: ModelRequest, signal: AbortSignal): Promise<number> {
  const texts: string[] = []
  let fixed = 0
  for (const message of request.messages) {
    fixed += A_MESSAGE
    for (const part of message.parts) {
      if (part.type === 'text') texts.push(part.text)
      else if (part.type === 'image') fixed += AN_IMAGE
      else texts.push(...textsIn(part))
    }
  }
  if (request.tools && request.tools.length > 0) fixed += await countTools(tokens, request.tools, signal)
  if (request.responseSchema !== undefined) texts.push(JSON.stringify(request.responseSchema))
  return fixed + (await tokens.count(texts, signal))
}

function textsIn(part: Exclude<MessagePart, { type: 'image' }>): string[] {
  if (part.type === 'tool_call') return [part.tool, part.invalid ?? JSON.stringify(part.arguments)]
  if (part.type === 'tool_result') return [part.tool, wordsOf(part.content)]
  return [part.text]
}

// Tools come with every request, and the list of a mode is the same for all its turns as long as nothing is cloned on the way.
const counted = new WeakMap<readonly ToolSpec[], number>()

async function countTools(tokens: Tokens, tools: readonly ToolSpec[], signal: AbortSignal): Promise<number> {
  const known = counted.get(tools)
  if (known !== undefined) return known
  const texts = tools.flatMap(tool => [tool.name, tool.description, JSON.stringify(tool.parameters)])
  const count = await tokens.count(texts, signal)
  counted.set(tools, count)
  return count
}

/** What a tool answered, as text. */
export const wordsOf = (content: readonly ContentPart[]): string =>
  content.map(part => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
