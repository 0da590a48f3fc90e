import type { CallContext } from '@svc/core'
import type { EmbedReply, EmbedRequest } from '@svc/core/contracts'
import {
  countIn,
  EMBED_LIMITS,
  embedReply,
  estimateTokens,
  isTree,
  malformed,
  textsOf,
  treeIn,
  type Upstream,
} from '@svc/provider-http'
import { modelPath } from './request.ts'

/** The API takes at most so many texts in a request. */
const MOST = 100

/** The server of a provider. */
interface Server {
  readonly provider: string
  readonly upstream: Pick<Upstream, 'json'>
  /** The version in its paths. */
  readonly version: string
}

/** Makes embeddings with `batchEmbedContents`, in as many requests as the API needs. Throws MODEL_FAILED. */
export async function embedTexts(server: Server, request: EmbedRequest, ctx: CallContext): Promise<EmbedReply> {
  const { provider, upstream, version } = server
  const texts = textsOf(provider, request)
  const model = modelPath(request.model)
  const vectors: unknown[] = []
  let counted = 0
  for (let from = 0; from < texts.length; from += MOST) {
    const batch = texts.slice(from, from + MOST)
    const requests = batch.map(text => requestOf(model, text, request.dimensions))
    const body = await upstream.json('POST', `${version}/${model}:batchEmbedContents`, { requests }, ctx, EMBED_LIMITS)
    const made = isTree(body) && Array.isArray(body.embeddings) ? (body.embeddings as unknown[]) : []
    if (made.length !== batch.length) throw malformed(provider)
    vectors.push(...made.map(one => (isTree(one) ? one.values : undefined)))
    counted += countIn(treeIn(body, 'usageMetadata'), 'promptTokenCount') ?? estimateOf(request.model, batch)
  }
  return embedReply(provider, request, vectors, { input: counted, output: 0 })
}

const requestOf = (model: string, text: string, dimensions: number | undefined) => ({
  model,
  content: { parts: [{ text }] },
  ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
})

/** Most models do not report what they read. */
const estimateOf = (model: string, texts: readonly string[]): number =>
  estimateTokens({ model, messages: [{ role: 'user', parts: texts.map(text => ({ type: 'text', text })) }] })
