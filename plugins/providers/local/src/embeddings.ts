import { createYielder } from '@svc/core'
import type { EmbedReply, EmbedRequest } from '@svc/core/contracts'
import { wrongInput } from './errors.ts'
import type { TextTokenizer } from './tokens.ts'

const DIMENSIONS = 256
const MOST_DIMENSIONS = 4096
/** Words weigh more than the pieces that they consist of. */
const A_WORD = 2
const GRAM = 3

/**
 * Embeddings without a model: words and pieces of words, hashed to the dimensions of a vector of length 1. Texts with common words have near
 * vectors. The same text always has the same vector. Throws MODEL_FAILED for wrong token ids and dimensions.
 */
export async function embedTexts(tokens: TextTokenizer, request: EmbedRequest, signal: AbortSignal): Promise<EmbedReply> {
  const { input, dimensions = DIMENSIONS } = request
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > MOST_DIMENSIONS)
    throw wrongInput(`dimensions must be an integer from 1 to ${MOST_DIMENSIONS}`)
  const texts = input.map(item => textOf(tokens, item))
  const yielder = createYielder(signal)
  const vectors: number[][] = []
  for (const text of texts) {
    const vector = new Float64Array(dimensions)
    for (const word of wordsOf(text)) {
      addWord(word, vector)
      if (yielder.isDue()) await yielder.take()
    }
    vectors.push(normalized(vector))
  }
  return { vectors, usage: { input: await tokens.count(texts, signal), output: 0 } }
}

function textOf(tokens: TextTokenizer, item: string | readonly number[]): string {
  const text = typeof item === 'string' ? item : tokens.decode(item)
  if (text === undefined) throw wrongInput('the input has an id that is no token of the tokenizer cl100k_base')
  return text
}

const LONGEST_WORD = 64

/** The words of a text in lower case. A long run of letters counts as several words. */
function* wordsOf(text: string): Generator<string, void> {
  for (const [word] of text.matchAll(/[\p{L}\p{N}]{1,64}/gu)) yield word.normalize('NFKC').toLowerCase().slice(0, LONGEST_WORD)
}

function addWord(word: string, vector: Float64Array): void {
  add(word, A_WORD, vector)
  const framed = `<${word}>`
  for (let at = 0; at + GRAM <= framed.length; at++) add(framed.slice(at, at + GRAM), 1, vector)
}

function add(feature: string, weight: number, vector: Float64Array): void {
  const hash = mixed(feature)
  vector[hash % vector.length]! += hash & 0x80000000 ? -weight : weight
}

/** FNV-1a with a final mix, so that the low bits depend on all characters. */
function mixed(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** A vector of length 1. A text without words points along the first axis. */
function normalized(vector: Float64Array): number[] {
  const length = Math.hypot(...vector)
  if (length === 0) return Array.from(vector, (_, at) => (at === 0 ? 1 : 0))
  return Array.from(vector, value => value / length)
}
