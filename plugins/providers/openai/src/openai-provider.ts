import { codeOf, svcError } from '@svc/core'
import type { ModelFailure, Provider, ModelInfo } from '@svc/core/contracts'
import { createUpstream, entryProblems, estimateTokens, modelList, readKey, type ReadFailure } from '@svc/provider-http'
import type { UpstreamEntry } from '@svc/provider-http/entry'
import { bodyOf } from './request.ts'
import { ChunkReader } from './chunk-reader.ts'
import { type Preset, type PresetName, PRESETS } from './presets.ts'

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
    signal,
  })
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: preset.vision },
    models,
    countTokens: async request => estimateTokens(request),
    chat: (request, ctx) => {
      const reader = new ChunkReader(name, preset, upstream)
      const method = request.gathered ? 'whole' : 'stream'
      return upstream[method](`/chat/completions${query}`, bodyOf(request, name, preset), reader, ctx)
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

const NO_LIST = new Set<number | undefined>([404, 405, 501])

function statusOf(error: unknown): number | undefined {
  return codeOf(error) === 'MODEL_FAILED' ? (error as { details: ModelFailure }).details.upstreamStatus : undefined
}

/** An entry of `providers` of type `openai`. */
export interface OpenAiConfig extends UpstreamEntry {
  readonly preset?: PresetName
  readonly api_version?: string
  readonly prompt_cache?: boolean
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
  const base: Preset = PRESETS[presetOf(name, config)]
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

const noVersion = (name: string) =>
  svcError('PROVIDER_CONFIG', `providers.${name}.api_version is for the preset azure only`, {
    where: `providers.${name}.api_version`,
    hint: 'Remove api_version, or set preset: azure',
  })

/** A model in the list of a server. Each server reports some of these fields. */
interface WireModel {
  readonly id?: unknown
  readonly type?: unknown
  readonly context_length?: unknown
  readonly context_window?: unknown
  readonly max_model_len?: unknown
  readonly max_context_length?: unknown
  readonly max_completion_tokens?: unknown
  readonly top_provider?: { readonly max_completion_tokens?: unknown } | null
  readonly capabilities?: Readonly<Record<string, unknown>> | null
  readonly supported_parameters?: unknown
  readonly architecture?: { readonly input_modalities?: unknown; readonly output_modalities?: unknown } | null
}

/** Ids of models that do not chat. */
const NO_CHAT =
  /embed|whisper|transcribe|(^|[-/])tts|dall-e|gpt-image|sora|moderation|realtime|(^|[-/])audio|-audio|rerank|guard|^(babbage|davinci)|turbo-instruct|(^|-)ocr/i
const OTHER_TYPES = new Set<unknown>(['embedding', 'embeddings', 'image', 'rerank', 'moderation', 'audio', 'transcribe', 'video'])

/** The chat models of a server's list with their limits and features; the preferred model first. */
function modelsOf(list: unknown, preset: Preset): ModelInfo[] {
  const data: unknown = Array.isArray(list) ? list : (list as { data?: unknown } | null)?.data
  const all = (Array.isArray(data) ? (data as (WireModel | null)[]) : []).flatMap(model =>
    model && chats(model) ? infoOf(model, preset) : []
  )
  const first = preset.prefer?.map(id => all.find(model => model.id === id)).find(model => model !== undefined)
  return first ? [first, ...all.filter(model => model !== first)] : all
}

const chats = ({ id, type, capabilities, architecture }: WireModel): boolean =>
  typeof id === 'string' &&
  id !== '' &&
  !NO_CHAT.test(id) &&
  !OTHER_TYPES.has(type) &&
  capabilities?.completion_chat !== false &&
  includes(architecture?.output_modalities, 'text') !== false

function infoOf(model: WireModel, preset: Preset): ModelInfo {
  const id = String(model.id)
  const context = limit(model.context_length, model.context_window, model.max_model_len, model.max_context_length)
  const output = limit(model.max_completion_tokens, model.top_provider?.max_completion_tokens)
  const features = featuresOf(model)
  const takesNone = preset.noTemperature?.test(id) || includes(model.supported_parameters, 'temperature') === false
  return {
    id,
    ...(context === undefined ? {} : { context }),
    ...(output === undefined ? {} : { output }),
    ...(Object.keys(features).length === 0 ? {} : { features }),
    ...(takesNone ? { temperature: false } : {}),
  }
}

function featuresOf({ capabilities, supported_parameters, architecture }: WireModel): NonNullable<ModelInfo['features']> {
  const tools = flag(capabilities?.function_calling) ?? includes(supported_parameters, 'tools')
  const vision = flag(capabilities?.vision) ?? includes(architecture?.input_modalities, 'image')
  return { ...(tools === undefined ? {} : { tool_calling: tools }), ...(vision === undefined ? {} : { vision }) }
}

const flag = (value: unknown) => (typeof value === 'boolean' ? value : undefined)
const includes = (list: unknown, word: string) => (Array.isArray(list) ? list.includes(word) : undefined)
const limit = (...values: readonly unknown[]) =>
  values.find((value): value is number => Number.isInteger(value) && (value as number) > 0)

type Failure = ReturnType<ReadFailure>

interface WireError {
  readonly message?: unknown
  readonly code?: unknown
  readonly type?: unknown
  readonly innererror?: { readonly code?: unknown }
}

/** The failure by the code or type of an error. */
const CODES: Readonly<Record<string, Failure>> = {
  context_length_exceeded: { kind: 'context_too_long' },
  string_above_max_length: { kind: 'context_too_long' },
  exceed_context_size_error: { kind: 'context_too_long' },
  content_filter: { kind: 'content_refused' },
  content_policy_violation: { kind: 'content_refused' },
  ResponsibleAIPolicyViolation: { kind: 'content_refused' },
  invalid_prompt: { kind: 'content_refused' },
  moderation: { kind: 'content_refused' },
  // A retry cannot succeed.
  insufficient_quota: { kind: 'rate_limited', retryable: false },
  rate_limit_exceeded: { kind: 'rate_limited' },
  invalid_api_key: { kind: 'authentication' },
  model_not_found: { kind: 'bad_request' },
  server_error: { kind: 'overloaded' },
}

/** The failure by a status inside the body: some servers answer 200 and send the error in the stream. */
const STATUSES: Readonly<Record<number, Failure>> = {
  400: { kind: 'bad_request' },
  401: { kind: 'authentication' },
  402: { kind: 'authentication' },
  408: { kind: 'timeout' },
  413: { kind: 'context_too_long' },
  429: { kind: 'rate_limited' },
  504: { kind: 'timeout' },
}

/** Reads the error body of a chat completions server. */
const failureOf: ReadFailure = (status, body) => {
  const error = errorIn(body)
  const message = wordsOf(error?.message)
  const byCode = [error?.innererror?.code, error?.code, error?.type].map(failureByCode).find(failure => failure !== undefined)
  const inside = status < 400 && byCode === undefined ? STATUSES[Number(error?.code)] : undefined
  // OpenRouter: the moderation of the model refused the request.
  const moderated = status === 403 && /moderation|flagged/i.test(message ?? '') ? CODES.moderation : undefined
  return { ...inside, ...byCode, ...moderated, ...(message === undefined ? {} : { message }) }
}

function errorIn(body: unknown): WireError | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { error = body } = body as { error?: unknown }
  if (typeof error === 'string') return { ...body, message: error }
  return typeof error === 'object' && error !== null ? error : undefined
}

const failureByCode = (code: unknown): Failure | undefined =>
  typeof code === 'string' && Object.hasOwn(CODES, code) ? CODES[code] : undefined

/** Mistral reports the problems of a request as a list. */
function wordsOf(message: unknown): string | undefined {
  if (typeof message === 'string') return message
  return typeof message === 'object' && message !== null ? JSON.stringify(message) : undefined
}
