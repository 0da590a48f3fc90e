import { createYielder } from '@svc/core'
import type { ContentPart, MessagePart, ModelRequest, TextPart, ToolSpec } from '@svc/core/contracts'
import { LRUCache } from 'lru-cache'
import type * as cl100k from 'gpt-tokenizer/encoding/cl100k_base'

/** A step encodes much text, so the yielder also counts steps. */
const STEPS_PER_TURN = 32

/** A text in pieces, as a model streams it. Piece i has `tokens[i]` tokens. */
interface Pieces {
  readonly parts: readonly TextPart[]
  readonly tokens: readonly number[]
  readonly total: number
}

/** Counts and splits texts by real tokens. It yields to the event loop while it works on long texts. */
export interface TextTokenizer {
  /** Counts the tokens of all `texts`. */
  count(texts: readonly string[], signal: AbortSignal): Promise<number>
  /** Splits `text` into pieces. Of a long text it returns at least the first `limit` tokens. */
  pieces(text: string, limit: number, signal: AbortSignal): Promise<Pieces>
  /** The text of token ids. Undefined if the tokenizer does not have one of them. */
  decode(ids: readonly number[]): string | undefined
}

type Encoding = Pick<typeof cl100k, 'encode' | 'countTokens' | 'decode'>

const COUNTS_KEPT = 4_000_000
const PIECES_KEPT = 500_000
/** Longer texts are not cached. */
const LONGEST_KEPT = 8_000

/** Loads the tokenizer, which costs 120 ms and 40 MiB. The first chat calls this function. */
export async function loadTokens(): Promise<TextTokenizer> {
  const encoding = await import('gpt-tokenizer/encoding/cl100k_base')
  // By default its cache keeps 100,000 words forever.
  encoding.setMergeCacheSize(1000)
  return createTokens(encoding)
}

// Text that looks like a special token is ordinary text.
const PLAIN = { disallowedSpecial: new Set<string>() }

function createTokens(encoding: Encoding): TextTokenizer {
  const counts = createTextCache<number>(COUNTS_KEPT)
  const splits = createTextCache<Pieces>(PIECES_KEPT)
  return {
    async count(texts, signal) {
      const yielder = createYielder(signal, { steps: STEPS_PER_TURN })
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
          if (yielder.isDue()) await yielder.take()
        }
        counts.set(text, sum)
        total += sum
      }
      return total
    },
    async pieces(text, limit, signal) {
      const before = splits.get(text)
      if (before) return before
      const yielder = createYielder(signal, { steps: STEPS_PER_TURN })
      const made = { parts: [] as TextPart[], tokens: [] as number[], total: 0 }
      let whole = true
      for (const slice of slices(text)) {
        // A short text is cached, so it is split completely.
        whole = made.total <= limit || text.length <= LONGEST_KEPT
        if (!whole) break
        split(encoding, slice, made)
        if (yielder.isDue()) await yielder.take()
      }
      if (whole) counts.set(text, made.total)
      if (text.length <= LONGEST_KEPT) splits.set(text, made)
      return made
    },
    decode(ids) {
      try {
        return encoding.decode(ids as number[])
      } catch {
        // The tokenizer throws for an id that it does not have.
        return undefined
      }
    },
  }
}

interface MutablePieces extends Pieces {
  parts: TextPart[]
  tokens: number[]
  total: number
}

function split(encoding: Encoding, slice: string, into: MutablePieces): void {
  const ids = encoding.encode(slice, PLAIN)
  const texts = textsOf(encoding, ids)
  into.total += ids.length
  // Half a surrogate pair does not survive encoding. Such a slice stays in one piece.
  const right = texts.map(piece => piece.text).join('') === slice
  for (const { text, tokens } of right ? texts : [{ text: slice, tokens: ids.length }]) {
    if (text === '') continue
    into.parts.push({ type: 'text', text })
    into.tokens.push(tokens)
  }
}

// Combining marks and joiners stay with the character before them.
const COMBINING = /^[\p{M}\u200d]/u

function textsOf(encoding: Encoding, ids: readonly number[]): { text: string; tokens: number }[] {
  const texts: { text: string; tokens: number }[] = []
  let open = 0
  for (const id of ids) {
    open++
    // A token can be a part of a character. The decoder then returns an empty text until the rest follows.
    const text = encoding.decode([id])
    const last = texts.at(-1)
    if (text === '') continue
    if (last && text.charCodeAt(0) >= 0x300 && COMBINING.test(text)) {
      last.text += text
      last.tokens += open
    } else texts.push({ text, tokens: open })
    open = 0
  }
  return texts
}

/** Fixed size of an entry, also for an empty text. */
const ENTRY = 32

/** A cache by text. The total length of its texts is limited. */
const createTextCache = <T extends Pieces | number>(maxCharacters: number) =>
  new LRUCache<string, T>({ maxSize: maxCharacters, sizeCalculation: (_value, text) => text.length + ENTRY })

/** Longest slice. The time of the tokenizer grows quadratically with a run without spaces. */
const LONGEST = 256
/** The search for a space, which keeps words whole, stops at this length. */
const SHORTEST = 128

/** Cuts a text into slices for the tokenizer: before a space if possible, never inside a surrogate pair. */
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

/** Tokens of a message besides its text: role and delimiters. */
const A_MESSAGE = 4
const AN_IMAGE = 85
/** A token stands for so many bytes of a document or a sound, at least one token for each. */
const BYTES_PER_TOKEN = 1000

/** Counts the input tokens of a request: messages, offered tools and reply schema. */
export async function countInput(tokens: TextTokenizer, request: ModelRequest, signal: AbortSignal): Promise<number> {
  const texts: string[] = []
  let fixed = 0
  for (const message of request.messages) {
    fixed += A_MESSAGE
    for (const part of message.parts) {
      if (part.type === 'text') texts.push(part.text)
      else if (part.type === 'image' || part.type === 'image_url') fixed += AN_IMAGE
      else if (part.type === 'file' || part.type === 'audio') fixed += Math.ceil((part.data.length + 1) / BYTES_PER_TOKEN)
      else texts.push(...textsIn(part))
    }
  }
  if (request.tools && request.tools.length > 0) fixed += await countTools(tokens, request.tools, signal)
  if (request.responseSchema !== undefined) texts.push(JSON.stringify(request.responseSchema))
  return fixed + (await tokens.count(texts, signal))
}

type WordyPart = Exclude<MessagePart, { type: 'image' | 'image_url' | 'file' | 'audio' }>

function textsIn(part: WordyPart): string[] {
  if (part.type === 'tool_call') return [part.tool, part.invalid ?? JSON.stringify(part.arguments)]
  if (part.type === 'tool_result') return [part.tool, wordsOf(part.content)]
  return [part.text]
}

// Every request carries the tools. All turns of a mode share one list, unless a caller clones it.
const toolCounts = new WeakMap<readonly ToolSpec[], number>()

async function countTools(tokens: TextTokenizer, tools: readonly ToolSpec[], signal: AbortSignal): Promise<number> {
  const cached = toolCounts.get(tools)
  if (cached !== undefined) return cached
  const texts = tools.flatMap(tool => [tool.name, tool.description, JSON.stringify(tool.parameters)])
  const count = await tokens.count(texts, signal)
  toolCounts.set(tools, count)
  return count
}

/** The content of a tool result as text. */
export const wordsOf = (content: readonly ContentPart[]): string =>
  content.map(part => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
