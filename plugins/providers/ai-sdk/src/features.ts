import type { ModelFeature, ModelRequest, ReasoningEffort } from '@svc/core/contracts'
import type { LanguageModel, Metadata, Version, Warning } from './sdk.ts'

/** What the interface of the SDK can carry. */
const ALL: readonly ModelFeature[] = [
  'stop',
  'top_p',
  'top_k',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'strict_tools',
  'tool_choice',
  'json',
  'response_schema',
  'high_temperature',
  'image_urls',
  'files',
  'audio',
  'tool_call_deltas',
]

/** What known packages warn of, or do not read. Other packages get the benefit of the doubt: what they warn of fails the call. */
const LACKS: Readonly<Record<string, readonly ModelFeature[]>> = {
  'openai.chat': ['top_k'],
  'azure.chat': ['top_k'],
  'openai.responses': ['stop', 'top_k', 'seed', 'frequency_penalty', 'presence_penalty', 'audio'],
  'azure.responses': ['stop', 'top_k', 'seed', 'frequency_penalty', 'presence_penalty', 'audio'],
  // Strict tools depend on the model, and the package says nothing.
  'anthropic.messages': ['strict_tools', 'seed', 'frequency_penalty', 'presence_penalty', 'json', 'high_temperature', 'audio'],
}

type Options = Metadata[string]

/** The options for reasoning of packages before version 4, by the name of their provider. */
const EFFORTS: Readonly<Record<string, (effort: ReasoningEffort) => Options>> = {
  openai: effort => ({ reasoningEffort: effort }),
  azure: effort => ({ reasoningEffort: effort }),
  groq: effort => ({ reasoningEffort: effort }),
  xai: effort => ({ reasoningEffort: effort }),
  anthropic: effort => ({
    thinking: effort === 'none' ? { type: 'disabled' } : { type: 'enabled', budgetTokens: BUDGETS[effort] },
  }),
  google: effort => ({ thinkingConfig: { thinkingBudget: BUDGETS[effort] } }),
}
const BUDGETS: Readonly<Record<ReasoningEffort, number>> = {
  none: 0,
  minimal: 1024,
  low: 4096,
  medium: 10_000,
  high: 24_000,
  xhigh: 32_000,
  max: 64_000,
}

/** The option that forbids parallel tool calls. */
const SINGLE: Readonly<Record<string, Options>> = {
  openai: { parallelToolCalls: false },
  azure: { parallelToolCalls: false },
  groq: { parallelToolCalls: false },
  mistral: { parallelToolCalls: false },
  anthropic: { disableParallelToolUse: true },
}

/** The option for the length of vectors, of packages before version 4. */
const DIMENSIONS: Readonly<Record<string, string>> = { openai: 'dimensions', azure: 'dimensions', google: 'outputDimensionality' }

/** The name of the options of a provider: `openai` of `openai.chat`. Azure reads those of OpenAI, too. */
const nameOf = (provider: string | undefined): string => provider?.split('.')[0] ?? ''
const keyOf = (name: string): string => (name === 'azure' ? 'openai' : name)

const inTable = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

/** Version 2 of OpenAI's package forgets the log probabilities of all chunks but the last one. */
const tellsLogprobs = (provider: string, version: Version) =>
  provider === 'openai.responses' || (provider === 'openai.chat' && version !== 'v2')

/** What a package supports, as far as its name and version tell. */
export function supportsOf(trial: LanguageModel | undefined, embeds: boolean): readonly ModelFeature[] {
  const { provider = '', specificationVersion = 'v2' } = trial ?? {}
  const lacks = inTable(LACKS, provider) ?? []
  const name = nameOf(provider)
  const more: readonly (readonly [boolean, ModelFeature])[] = [
    [name === 'anthropic', 'cache_hints'],
    [provider === 'openai.chat', 'logit_bias'],
    [tellsLogprobs(provider, specificationVersion), 'logprobs'],
    [specificationVersion === 'v4' || inTable(EFFORTS, name) !== undefined, 'reasoning_effort'],
    [inTable(SINGLE, name) !== undefined, 'parallel_tool_calls'],
    [embeds, 'embeddings'],
  ]
  const kept = ALL.filter(feature => !lacks.includes(feature) && !(feature === 'strict_tools' && specificationVersion === 'v2'))
  return [...kept, ...more.flatMap(([isThere, feature]) => (isThere ? feature : []))]
}

/** `reasoning` of version 4, and the options for what the interface has no field for. */
export function optionsOf(
  request: ModelRequest,
  { specificationVersion, provider }: Pick<LanguageModel, 'specificationVersion' | 'provider'>
): { readonly reasoning?: ReasoningEffort; readonly providerOptions?: Metadata } {
  const name = nameOf(provider)
  const effort = effortOf(request)
  const isNew = specificationVersion === 'v4'
  const old = effort === undefined || isNew ? undefined : inTable(EFFORTS, name)?.(effort)
  // OpenAI's package leaves the effort out in silence, unless it knows the name of a reasoning model.
  const forced = effort !== undefined && isNew && keyOf(name) === 'openai' ? { forceReasoning: true } : undefined
  const single = request.parallelToolCalls === false ? inTable(SINGLE, name) : undefined
  const own = { ...old, ...single, ...forced, ...tokenOptions(request, provider) }
  return {
    ...(effort !== undefined && isNew ? { reasoning: effort } : {}),
    ...(Object.keys(own).length > 0 ? { providerOptions: { [keyOf(name)]: own } } : {}),
  }
}

/** The options of OpenAI's package for single tokens. */
function tokenOptions({ logitBias, logprobs }: ModelRequest, provider: string | undefined): Options {
  if (nameOf(provider) !== 'openai') return {}
  // for the Responses API, `true` asks for 20 alternatives
  const alternatives = provider === 'openai.responses' ? Math.max(1, logprobs ?? 0) : logprobs
  return {
    ...(logitBias === undefined ? {} : { logitBias }),
    ...(logprobs === undefined ? {} : { logprobs: alternatives }),
  }
}

function effortOf({ reasoningEffort, reasoningTokens }: ModelRequest): ReasoningEffort | undefined {
  if (reasoningEffort !== undefined || reasoningTokens === undefined) return reasoningEffort
  const levels = Object.entries(BUDGETS) as [ReasoningEffort, number][]
  return levels.toSorted(([, a], [, b]) => Math.abs(a - reasoningTokens) - Math.abs(b - reasoningTokens))[0]![0]
}

/** The option for the length of vectors, for packages before version 4. */
export function dimensionOptions(dimensions: number, version: Version, provider: string | undefined): Metadata | undefined {
  const name = nameOf(provider)
  const option = version === 'v4' ? undefined : inTable(DIMENSIONS, name)
  return option === undefined ? undefined : { [keyOf(name)]: { [option]: dimensions } }
}

/** Names of settings in warnings, and the field of a request that they stand for. */
const SETTINGS: Readonly<Record<string, readonly (keyof ModelRequest)[]>> = {
  stopSequences: ['stop'],
  topP: ['topP'],
  topK: ['topK'],
  seed: ['seed'],
  frequencyPenalty: ['frequencyPenalty'],
  presencePenalty: ['presencePenalty'],
  responseFormat: ['responseFormat', 'responseSchema'],
  reasoning: ['reasoningEffort', 'reasoningTokens'],
  reasoningEffort: ['reasoningEffort', 'reasoningTokens'],
  logprobs: ['logprobs'],
  topLogprobs: ['logprobs'],
  logitBias: ['logitBias'],
}

/** A warning of OpenAI's package about an option of its own. */
const OWN_OPTION = /^(logprobs|topLogprobs|logitBias) is not supported/

/** The field of a request that a warning says is not applied. A temperature may be left out: svc does so, too. */
export function ignoredField(
  request: ModelRequest,
  { type, feature, setting, message }: Warning
): keyof ModelRequest | undefined {
  const own = type === 'other' && typeof message === 'string' ? OWN_OPTION.exec(message)?.[1] : undefined
  const name = own ?? (typeof feature === 'string' ? feature : setting)
  if ((own === undefined && !type.startsWith('unsupported')) || typeof name !== 'string') return undefined
  return inTable(SETTINGS, name)?.find(field => request[field] !== undefined)
}
