import { codeOf, svcError } from '@svc/core'
import type { ModelFailure, Provider, ProviderFeatures, EmbedReply, EmbedRequest } from '@svc/core/contracts'
import {
  createUpstream,
  EMBED_LIMITS,
  entryProblems,
  estimateTokens,
  modelList,
  nativeHeaders,
  nativeOf,
  readKey,
  countIn,
  embedReply,
  isTree,
  malformed,
  type Tree,
  treeIn,
} from '@svc/provider-http'
import type { UpstreamEntry } from '@svc/provider-http/entry'
import { ChunkReader } from './chunk-reader.ts'
import { described, inResponses } from './features.ts'
import { failureOf } from './failure.ts'
import { modelsOf } from './models.ts'
import { type Preset, type PresetName, PRESETS } from './presets.ts'
import { bodyOf } from './request.ts'
import { ResponseReader } from './response-reader.ts'
import { responsesBody } from './responses-request.ts'

/** The problems of an entry that its schema cannot find, such as a missing key. */
export const checkEntry = (name: string, config: OpenAiConfig) => entryProblems(serverOf(name, config))

/** Opens the provider of an entry: reads its key, opens no connection. Throws PROVIDER_CONFIG, PROVIDER_KEY. */
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
    describe: model => described(model, preset),
    signal,
  })
  const provider: Provider = {
    features: featuresOf(preset),
    models,
    countTokens: async request => estimateTokens(request),
    chat: (request, ctx) => {
      const method = request.gathered ? 'whole' : 'stream'
      if (preset.api === 'responses') {
        const body = responsesBody(request, name, preset, { summary: config.reasoning_summary })
        return upstream[method](`/responses${query}`, body, new ResponseReader(name, upstream, request), ctx)
      }
      const reader = new ChunkReader(name, preset, upstream, request)
      const native = nativeOf(request, preset.protocol)
      const options = native && { headers: nativeHeaders(native, NATIVE_HEADERS) }
      return upstream[method](`/chat/completions${query}`, bodyOf(request, name, preset), reader, ctx, options)
    },
    async embed(request, ctx) {
      const body = embedBody(request, preset)
      return readEmbeddings(name, request, await upstream.json('POST', `/embeddings${query}`, body, ctx, EMBED_LIMITS))
    },
    async probe(ctx) {
      try {
        await upstream.json('GET', `${preset.probe}${query}`, undefined, ctx)
      } catch (error) {
        // The server answers; it only has no such list.
        if (!NO_LIST.has(statusOf(error))) throw error
      }
    },
  }
  return { provider, close: () => upstream.close() }
}

/** Headers of a client that its server may see. Others select accounts, or belong to the connection. */
const NATIVE_HEADERS = ['openai-beta', 'x-title', 'http-referer']

const featuresOf = ({ vision, supports, protocol }: Preset): ProviderFeatures => ({
  tool_calling: true,
  streaming: true,
  vision,
  supports,
  ...(protocol === undefined ? {} : { protocol }),
})

const NO_LIST = new Set<number | undefined>([404, 405, 501])

function statusOf(error: unknown): number | undefined {
  return codeOf(error) === 'MODEL_FAILED' ? (error as { details: ModelFailure }).details.upstreamStatus : undefined
}

/** An entry of `providers` of type `openai`. */
export interface OpenAiConfig extends UpstreamEntry {
  readonly preset?: PresetName
  readonly api_version?: string
  readonly prompt_cache?: boolean
  readonly api?: 'chat_completions' | 'responses'
  readonly reasoning_summary?: 'auto' | 'concise' | 'detailed'
}

/** The server of an entry: its address, dialect and credentials. */
interface Server {
  readonly preset: Preset
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
  /** Query after each path: `?api-version=…`, or empty. */
  readonly query: string
}

/** Resolves the server of an entry and reads its key. Throws PROVIDER_CONFIG, PROVIDER_KEY. */
async function serverOf(name: string, config: OpenAiConfig): Promise<Server> {
  const base = withApi(PRESETS[presetOf(name, config)], name, config)
  const preset: Preset = config.prompt_cache === undefined ? base : { ...base, cacheKey: config.prompt_cache }
  const baseUrl = config.base_url ?? preset.baseUrl
  if (baseUrl === undefined) throw noBaseUrl(name)
  if (config.api_version !== undefined && preset.apiVersion !== true) throw noVersion(name)
  // The default key is for the server of the preset. Another server gets it only if the entry names the preset.
  const isOwn = config.base_url === undefined || config.preset !== undefined
  const key = await readKey(config, {
    provider: name,
    ...(isOwn && preset.keyEnv !== undefined ? { defaultEnv: preset.keyEnv } : {}),
    required: preset.keyRequired,
  })
  return {
    preset,
    baseUrl,
    headers: { ...(key === undefined ? {} : keyHeader(preset, key)), ...config.headers },
    secrets: key === undefined ? [] : [key],
    query: config.api_version === undefined ? '' : `?api-version=${encodeURIComponent(config.api_version)}`,
  }
}

/** A server as the API of the entry shows it. Original requests are those of chat completions. */
function withApi(preset: Preset, name: string, { api, reasoning_summary }: OpenAiConfig): Preset {
  if (api === 'responses') {
    const { protocol: _, ...rest } = preset
    return { ...rest, api, supports: inResponses(preset.supports) }
  }
  if (reasoning_summary !== undefined) throw noSummary(name)
  return preset
}

function presetOf(name: string, { preset, base_url }: OpenAiConfig): PresetName {
  if (preset !== undefined) return preset
  if (name !== 'openai' && isPreset(name)) return name
  return base_url === undefined ? 'openai' : 'compatible'
}

const isPreset = (name: string): name is PresetName => Object.hasOwn(PRESETS, name)

const keyHeader = ({ keyHeader: header }: Preset, key: string): Record<string, string> =>
  header === 'bearer' ? { authorization: `Bearer ${key}` } : { [header]: key }

const noBaseUrl = (name: string) =>
  svcError('PROVIDER_CONFIG', `providers.${name} needs a base_url`, {
    where: `providers.${name}`,
    hint: `Write for example base_url: https://<resource>.openai.azure.com/openai/v1`,
  })

const noSummary = (name: string) =>
  svcError('PROVIDER_CONFIG', `providers.${name}.reasoning_summary is for the Responses API only`, {
    where: `providers.${name}.reasoning_summary`,
    hint: 'Remove reasoning_summary, or set api: responses',
  })

const noVersion = (name: string) =>
  svcError('PROVIDER_CONFIG', `providers.${name}.api_version is for the preset azure only`, {
    where: `providers.${name}.api_version`,
    hint: 'Remove api_version, or set preset: azure',
  })

/** The body of `POST /embeddings`. */
const embedBody = ({ model, input, dimensions }: EmbedRequest, preset: Preset): Tree => ({
  model,
  input,
  ...(dimensions === undefined ? {} : { [preset.dimensionsField ?? 'dimensions']: dimensions }),
  ...(preset.base64 ? { encoding_format: 'base64' } : {}),
})

/** Reads the answer of `POST /embeddings`. Throws MODEL_FAILED. */
function readEmbeddings(provider: string, request: EmbedRequest, body: unknown): EmbedReply {
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
