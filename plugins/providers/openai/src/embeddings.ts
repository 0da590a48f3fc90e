import type { EmbedReply, EmbedRequest } from '@svc/core/contracts'
import { countIn, embedReply, isTree, malformed, type Tree, treeIn } from '@svc/provider-http'
import type { Preset } from './presets.ts'

/** The body of `POST /embeddings`. */
export const embedBody = ({ model, input, dimensions }: EmbedRequest, preset: Preset): Tree => ({
  model,
  input,
  ...(dimensions === undefined ? {} : { [preset.dimensionsField ?? 'dimensions']: dimensions }),
  ...(preset.base64 ? { encoding_format: 'base64' } : {}),
})

/** Reads the answer of `POST /embeddings`. Throws MODEL_FAILED. */
export function readEmbeddings(provider: string, request: EmbedRequest, body: unknown): EmbedReply {
  const data: unknown = isTree(body) ? body.data : undefined
  if (!Array.isArray(data) || data.length !== request.input.length) throw malformed(provider)
  const vectors: unknown[] = []
  for (const [at, item] of (data as unknown[]).entries()) {
    const place = countIn(item, 'index') ?? at
    if (place >= data.length || vectors[place] !== undefined || !isTree(item)) throw malformed(provider)
    vectors[place] = typeof item.embedding === 'string' ? floatsOf(item.embedding) : item.embedding
  }
  const input = countIn(treeIn(body, 'usage'), 'prompt_tokens') ?? 0
  return embedReply(provider, request, vectors, { input, output: 0 })
}

const FLOAT = 4

/** The numbers of base64: 32-bit floats, little-endian. Undefined for another length. */
function floatsOf(base64: string): number[] | undefined {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.length % FLOAT !== 0) return undefined
  return Array.from({ length: bytes.length / FLOAT }, (_, at) => bytes.readFloatLE(at * FLOAT))
}
