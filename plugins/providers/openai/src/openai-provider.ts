import { codeOf } from '@svc/core'
import type { ModelFailure, Provider } from '@svc/core/contracts'
import { createUpstream, entryProblems, estimateTokens, modelList } from '@svc/provider-http'
import { bodyOf } from './body.ts'
import { ChunkReader } from './chunk-reader.ts'
import { failureOf } from './failure.ts'
import { modelsOf } from './models.ts'
import { type OpenAiConfig, serverOf } from './server.ts'

/** What is wrong with an entry beyond its form: its key above all. */
export const checkEntry = (name: string, config: OpenAiConfig) => entryProblems(serverOf(name, config))

/** Opens the provider of one entry: reads its key, connects to nothing. Throws PROVIDER_CONFIG, PROVIDER_KEY. */
export async function openProvider(
  name: string,
  config: OpenAiConfig,
  signal: AbortSignal
): Promise<{ readonly provider: Provider; readonly close: () => Promise<void> }> {
  const { preset, query, ...server } = await serverOf(name, config)
  const upstream = createUpstream({ provider: name, ...server, failureOf })
  const models = modelList({
    configured: config.models,
    load: async ctx => modelsOf(await upstream.json('GET', `/models${query}`, undefined, ctx), preset),
    open: true,
    signal,
  })
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: preset.vision },
    models,
    countTokens: async request => estimateTokens(request),
    chat: (request, ctx) => {
      const reader = new ChunkReader(name, preset, upstream)
      const way = request.gathered ? 'whole' : 'stream'
      return upstream[way](`/chat/completions${query}`, bodyOf(request, name, preset), reader, ctx)
    },
    async probe(ctx) {
      try {
        await upstream.json('GET', `${preset.probe}${query}`, undefined, ctx)
      } catch (error) {
        // it has answered, it only has no such list
        if (!NO_LIST.has(statusOf(error))) throw error
      }
    },
  }
  return { provider, close: () => upstream.close() }
}

const NO_LIST = new Set<number | undefined>([404, 405, 501])

function statusOf(error: unknown): number | undefined {
  return codeOf(error) === 'MODEL_FAILED' ? (error as { details: ModelFailure }).details.upstreamStatus : undefined
}
