import type { ModelInfo } from '@svc/core/contracts'
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
  /embed|whisper|transcribe|(^|[-/])tts|dall-e|gpt-image|sora|moderation|realtime|(^|[-/])audio|-audio|rerank|guard|^(babbage|davinci)|turbo-instruct|(^|-)ocr/i
const OTHER_TYPES = new Set<unknown>(['embedding', 'embeddings', 'image', 'rerank', 'moderation', 'audio', 'transcribe', 'video'])

/** The chat models of a server's list with their limits and features; the preferred model first. */
export function modelsOf(list: unknown, preset: Preset): ModelInfo[] {
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
