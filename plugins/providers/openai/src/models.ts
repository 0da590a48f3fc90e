import type { ModelInfo } from '@svc/core/contracts'
import { embeddingModel } from '@svc/provider-http'
import { described, embedsByName, listedFeatures, refusesTemperature } from './features.ts'
import type { Preset } from './presets.ts'

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
  /whisper|transcribe|(^|[-/])tts|dall-e|gpt-image|sora|moderation|realtime|(^|[-/])audio|-audio|rerank|guard|^(babbage|davinci)|turbo-instruct|(^|-)ocr/i
const EMBEDDING_TYPES = new Set<unknown>(['embedding', 'embeddings'])
const OTHER_TYPES = new Set<unknown>(['image', 'rerank', 'moderation', 'audio', 'transcribe', 'video'])

/** The models of a server's list with their limits and features; the preferred model first, and models for embeddings last. */
export function modelsOf(list: unknown, preset: Preset): ModelInfo[] {
  const data: unknown = Array.isArray(list) ? list : (list as { data?: unknown } | null)?.data
  const known = (Array.isArray(data) ? (data as (WireModel | null)[]) : []).filter(model => hasName(model))
  const vectors = known.filter(embeds)
  const all = known.filter(model => !embeds(model) && chats(model)).map(model => infoOf(model, preset))
  const first = preset.prefer?.map(id => all.find(model => model.id === id)).find(model => model !== undefined)
  const chatting = first ? [first, ...all.filter(model => model !== first)] : all
  return [...chatting, ...vectors.map(model => embeddingModel({ id: String(model.id), ...limitsOf(model) }))]
}

const hasName = (model: WireModel | null): model is WireModel => typeof model?.id === 'string' && model.id !== ''

const embeds = ({ id, type, architecture }: WireModel): boolean =>
  EMBEDDING_TYPES.has(type) || includes(architecture?.output_modalities, 'embeddings') === true || embedsByName(String(id))

const chats = ({ id, type, capabilities, architecture }: WireModel): boolean =>
  !NO_CHAT.test(String(id)) &&
  !OTHER_TYPES.has(type) &&
  capabilities?.completion_chat !== false &&
  includes(architecture?.output_modalities, 'text') !== false

function infoOf(model: WireModel, preset: Preset): ModelInfo {
  const id = String(model.id)
  const features = featuresOf(model, preset)
  const takesNone = refusesTemperature(id, preset) || includes(model.supported_parameters, 'temperature') === false
  const info = {
    id,
    ...limitsOf(model),
    ...(Object.keys(features).length === 0 ? {} : { features }),
    ...(takesNone ? { temperature: false } : {}),
  }
  return described(info, preset)
}

function limitsOf(model: WireModel): Pick<ModelInfo, 'context' | 'output'> {
  const context = limit(model.context_length, model.context_window, model.max_model_len, model.max_context_length)
  const output = limit(model.max_completion_tokens, model.top_provider?.max_completion_tokens)
  return { ...(context === undefined ? {} : { context }), ...(output === undefined ? {} : { output }) }
}

function featuresOf(model: WireModel, preset: Preset): NonNullable<ModelInfo['features']> {
  const { capabilities, supported_parameters: parameters, architecture } = model
  const tools = flag(capabilities?.function_calling) ?? includes(parameters, 'tools')
  const vision = flag(capabilities?.vision) ?? includes(architecture?.input_modalities, 'image')
  const modalities = Array.isArray(architecture?.input_modalities) ? architecture.input_modalities : undefined
  const supports =
    Array.isArray(parameters) && modalities !== undefined ? listedFeatures(parameters, modalities, preset) : undefined
  return {
    ...(tools === undefined ? {} : { tool_calling: tools }),
    ...(vision === undefined ? {} : { vision }),
    ...(supports === undefined ? {} : { supports }),
  }
}

const flag = (value: unknown) => (typeof value === 'boolean' ? value : undefined)
const includes = (list: unknown, word: string) => (Array.isArray(list) ? list.includes(word) : undefined)
const limit = (...values: readonly unknown[]) =>
  values.find((value): value is number => Number.isInteger(value) && (value as number) > 0)
