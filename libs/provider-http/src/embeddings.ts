import type { EmbedReply, EmbedRequest, Usage } from '@svc/core/contracts'
import { malformed, modelFailure } from './failure.ts'

/** Limits of a call for embeddings: the signal limits its time, and the vectors of a large input are long. */
export const EMBED_LIMITS = { ms: 0, bytes: 128 * 1024 * 1024 } as const

/** The longest vector of a model that is known has a tenth of it. */
const MOST_DIMENSIONS = 65_536

/**
 * Checks vectors of an upstream: one for each input, all numbers, and all of one length. Throws MODEL_FAILED for anything else, and
 * for vectors without the requested length.
 */
export function embedReply(provider: string, request: EmbedRequest, vectors: readonly unknown[], usage: Usage): EmbedReply {
  const length = Array.isArray(vectors[0]) ? vectors[0].length : 0
  const isRight = vectors.length === request.input.length && vectors.every(vector => isVector(vector, length))
  if (!isRight) throw malformed(provider)
  if (request.dimensions !== undefined && length !== request.dimensions) throw otherLength(provider, request.dimensions, length)
  return { vectors: vectors as number[][], usage }
}

const isVector = (value: unknown, length: number): value is number[] =>
  Array.isArray(value) &&
  value.length === length &&
  length > 0 &&
  length <= MOST_DIMENSIONS &&
  value.every(number => typeof number === 'number' && Number.isFinite(number))

const otherLength = (provider: string, wanted: number, length: number) =>
  modelFailure(
    provider,
    { kind: 'bad_request', requestOnly: true },
    `the model does not shorten its vectors to ${wanted} dimensions; they have ${length}`,
    'Leave out the dimensions, or use a model that can shorten its vectors'
  )

/** The failure of a request with token ids, for servers that take texts only. */
const needsTexts = (provider: string) =>
  modelFailure(
    provider,
    { kind: 'bad_request', requestOnly: true },
    'this provider makes embeddings of texts, not of token ids',
    'Send the input as text'
  )

/** The texts of a request. Throws MODEL_FAILED for token ids. */
export function textsOf(provider: string, { input }: EmbedRequest): readonly string[] {
  if (!input.every(item => typeof item === 'string')) throw needsTexts(provider)
  return input
}
