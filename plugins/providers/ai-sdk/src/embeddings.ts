import { type CallContext, traceHeaders } from '@svc/core'
import type { EmbedReply, EmbedRequest } from '@svc/core/contracts'
import { embedReply, malformed, textsOf } from '@svc/provider-http'
import { dimensionOptions } from './features.ts'
import { type EmbeddingModel, mergeMetadata, type Metadata } from './sdk.ts'

/** The models for embeddings of an entry. */
interface Embedder {
  /** Name of the entry. */
  readonly name: string
  readonly providerOptions: Metadata | undefined
  readonly makeEmbedding: (id: string) => EmbeddingModel
}

/** Makes embeddings, in as many calls as the package needs. */
export async function embedTexts(embedder: Embedder, request: EmbedRequest, ctx: CallContext): Promise<EmbedReply> {
  const { name, makeEmbedding, providerOptions } = embedder
  const { dimensions } = request
  const texts = textsOf(name, request)
  const model = makeEmbedding(request.model)
  const own = dimensions === undefined ? undefined : dimensionOptions(dimensions, model.specificationVersion, model.provider)
  const options = mergeMetadata(own, providerOptions)
  const most = sizeOf(await model.maxEmbeddingsPerCall, texts.length)
  const vectors: unknown[] = []
  let input = 0
  for (let from = 0; from < texts.length; from += most) {
    const values = texts.slice(from, from + most)
    const { embeddings, usage } = await model.doEmbed({
      values,
      ...(dimensions === undefined || model.specificationVersion !== 'v4' ? {} : { dimensions }),
      ...(options === undefined ? {} : { providerOptions: options }),
      headers: headersOf(ctx),
      abortSignal: ctx.signal,
    })
    if (!Array.isArray(embeddings) || embeddings.length !== values.length) throw malformed(name)
    vectors.push(...(embeddings as unknown[]))
    input += Number.isSafeInteger(usage?.tokens) && Number(usage?.tokens) >= 0 ? Number(usage?.tokens) : 0
  }
  return embedReply(name, request, vectors, { input, output: 0 })
}

/** Number of texts in a call. A package can name none, or infinitely many. */
const sizeOf = (most: number | undefined, count: number): number =>
  Math.max(1, most !== undefined && most >= 1 && most < count ? Math.trunc(most) : count)

/** Headers that connect the log of the upstream with the log of svc. */
export const headersOf = (ctx: Pick<CallContext, 'requestId' | 'trace' | 'traceState'>): Record<string, string> => ({
  'x-request-id': ctx.requestId,
  ...traceHeaders(ctx),
})
