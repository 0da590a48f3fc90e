import type { ModelFeature, ModelInfo } from '@svc/core/contracts'
import { embeddingModel } from '@svc/provider-http'

/** What a server says about the features of its models. */
export interface ServerFeatures {
  /** What its models support, if it does not list that. */
  readonly supports: readonly ModelFeature[]
  /** True if its models have OpenAI's names, which tell whether they reason and so refuse some fields. */
  readonly reasoningModels?: boolean
  /** The API of the server that the provider uses. Default: chat completions. */
  readonly api?: 'responses'
}

/** What chat completions of OpenAI support. */
export const CHAT: readonly ModelFeature[] = [
  'stop',
  'top_p',
  'seed',
  'n',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'parallel_tool_calls',
  'strict_tools',
  'tool_choice',
  'json',
  'response_schema',
  'high_temperature',
  'image_urls',
  'files',
  'tool_call_deltas',
]

/** What reasoning models refuse. https://platform.openai.com/docs/guides/reasoning */
const NOT_REASONING: readonly ModelFeature[] = [
  'stop',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'high_temperature',
]

const REASONING_MODELS = /^(o\d|gpt-[5-9](?!.*chat))/

/** The reasoning models of OpenAI, by their names. */
export const isReasoningModel = (model: string): boolean => REASONING_MODELS.test(model)

/** What the reasoning models of OpenAI support. */
const REASONING: readonly ModelFeature[] = [...CHAT.filter(feature => !NOT_REASONING.includes(feature)), 'reasoning_effort']

/** What the Responses API has. https://platform.openai.com/docs/api-reference/responses/create */
const RESPONSES: ReadonlySet<ModelFeature> = new Set([
  // svc ends the answer itself
  'stop',
  'top_p',
  'logprobs',
  'reasoning_effort',
  'parallel_tool_calls',
  'strict_tools',
  'tool_choice',
  'json',
  'response_schema',
  'high_temperature',
  'image_urls',
  'files',
  'tool_call_deltas',
])

/** Those of the features that the Responses API has. */
export const inResponses = (features: readonly ModelFeature[]): readonly ModelFeature[] =>
  features.filter(feature => RESPONSES.has(feature))

/** Names of models that make embeddings. */
const EMBEDS = /embed|minilm|(^|[-/])(bge|gte|e5)([-_.:]|$)/i

export const embedsByName = (id: string): boolean => EMBEDS.test(id)

/** Adds to a model what its name tells. The fields of the model come first. */
export function described(model: ModelInfo, server: ServerFeatures): ModelInfo {
  if (model.features?.supports) return model
  if (embedsByName(model.id)) return embeddingModel(model)
  const supports = supportsOf(model.id, server)
  return supports === undefined ? model : { ...model, features: { ...model.features, supports } }
}

/** The features of a model, if they differ from those of its server. */
function supportsOf(id: string, { reasoningModels, supports, api }: ServerFeatures): readonly ModelFeature[] | undefined {
  if (reasoningModels !== true) return undefined
  if (isReasoningModel(id)) return api === 'responses' ? inResponses([...REASONING, 'stop']) : REASONING
  return api === undefined && /(^|-)audio(-|$)/.test(id) ? [...supports, 'audio'] : undefined
}

/** The features that a server names in `supported_parameters` of a model. */
const PARAMETERS: Readonly<Record<string, readonly ModelFeature[]>> = {
  stop: ['stop'],
  top_p: ['top_p'],
  top_k: ['top_k'],
  seed: ['seed'],
  frequency_penalty: ['frequency_penalty'],
  presence_penalty: ['presence_penalty'],
  logit_bias: ['logit_bias'],
  logprobs: ['logprobs'],
  reasoning: ['reasoning_effort'],
  reasoning_effort: ['reasoning_effort'],
  parallel_tool_calls: ['parallel_tool_calls'],
  tools: ['tool_call_deltas'],
  tool_choice: ['tool_choice'],
  response_format: ['json'],
  structured_outputs: ['response_schema'],
  temperature: ['high_temperature'],
}
const MODALITIES: Readonly<Record<string, readonly ModelFeature[]>> = { image: ['image_urls'], file: ['files'], audio: ['audio'] }

/** The features of a model by the lists of its server. Features that the lists cannot name are those of the server. */
export function listedFeatures(
  parameters: readonly unknown[],
  modalities: readonly unknown[],
  { supports }: ServerFeatures
): ModelFeature[] {
  const named = [...namedIn(PARAMETERS, parameters), ...namedIn(MODALITIES, modalities)]
  const nameable = new Set([...Object.values(PARAMETERS), ...Object.values(MODALITIES)].flat())
  return [
    ...new Set([...supports.filter(feature => !nameable.has(feature)), ...named.filter(feature => supports.includes(feature))]),
  ]
}

const namedIn = (table: Readonly<Record<string, readonly ModelFeature[]>>, words: readonly unknown[]): readonly ModelFeature[] =>
  words.flatMap(word => (typeof word === 'string' && Object.hasOwn(table, word) ? table[word]! : []))

/** True if a model of this server refuses a temperature. */
export const refusesTemperature = (model: string, { reasoningModels }: ServerFeatures): boolean =>
  reasoningModels === true && isReasoningModel(model)
