import type { ModelFeature, ModelInfo, ReasoningEffort } from '@svc/core/contracts'
import { type Tree, treeIn } from '@svc/provider-http'

/** What distinguishes the models of the API. */
export interface ModelTraits {
  /** `thinking: {type: 'adaptive'}`: the model decides how much it thinks. */
  readonly adaptive: boolean
  /** `thinking: {type: 'enabled', budget_tokens}`. */
  readonly budget: boolean
  /** `output_config.effort`, with the levels that it has. */
  readonly efforts: readonly ReasoningEffort[]
  /** False: the model always thinks. */
  readonly rests: boolean
  /** `temperature`, `top_p` and `top_k`. */
  readonly sampling: boolean
  /** A tool choice that forces a call. */
  readonly forced: boolean
  /** Reply schemas and strict tools. */
  readonly structured: boolean
  /** PDF documents. */
  readonly documents: boolean
}

const LEVELS: readonly ReasoningEffort[] = ['low', 'medium', 'high']

/** Other servers with this API, of which nothing is known. */
const OTHER: ModelTraits = {
  adaptive: false,
  budget: true,
  efforts: [],
  rests: true,
  sampling: true,
  forced: true,
  structured: true,
  documents: true,
}
const OLDEST: ModelTraits = { ...OTHER, budget: false, structured: false }
const BUDGET: ModelTraits = { ...OTHER, structured: false }
const ADAPTIVE: ModelTraits = { ...OTHER, adaptive: true, efforts: [...LEVELS, 'max'] }
const NO_SAMPLING: ModelTraits = { ...ADAPTIVE, efforts: [...LEVELS, 'xhigh', 'max'], sampling: false }
const ALWAYS: ModelTraits = { ...NO_SAMPLING, budget: false, rests: false }

/** The traits by name: the first that fits. https://platform.claude.com/docs/en/build-with-claude/effort and /adaptive-thinking */
const NAMES: readonly (readonly [RegExp, ModelTraits])[] = [
  [/claude-(sonnet|opus)-5-5|claude-fable-5-[1-9]/, { ...ALWAYS, forced: false }],
  [/claude-haiku-5-5/, { ...NO_SAMPLING, budget: false }],
  [/claude-fable-5/, ALWAYS],
  [/claude-(opus|sonnet)-4-6/, ADAPTIVE],
  [/claude-opus-4-5/, { ...OTHER, efforts: LEVELS }],
  [/claude-(sonnet|haiku)-4-5|claude-opus-4-1/, OTHER],
  [/claude-(sonnet|opus)-4(-0|[-@]\d{8}|@|$)|claude-3-7/, BUDGET],
  [/claude-(3|2|instant|v2)/, OLDEST],
  [/claude-/, NO_SAMPLING],
]

export const traitsByName = (model: string): ModelTraits => NAMES.find(([name]) => name.test(model))?.[1] ?? OTHER

/** The traits of a listed model: its capabilities, else its name. */
export function traitsOf(model: string, capabilities: Tree): ModelTraits {
  const named = traitsByName(model)
  const types = treeIn(treeIn(capabilities, 'thinking'), 'types')
  const effort = treeIn(capabilities, 'effort')
  const listed = [...LEVELS, 'xhigh', 'max'] as const
  const efforts = listed.filter(level => supports(effort, level) === true)
  const adaptive = supports(types, 'adaptive') ?? named.adaptive
  const budget = supports(types, 'enabled') ?? named.budget
  return {
    ...named,
    adaptive,
    budget,
    efforts: effort.supported === false ? [] : efforts.length > 0 ? efforts : named.efforts,
    // Models with only adaptive thinking refuse a temperature.
    sampling: named.sampling && !(supports(types, 'adaptive') === true && supports(types, 'enabled') === false),
    structured: supports(capabilities, 'structured_outputs') ?? named.structured,
    documents: supports(capabilities, 'pdf_input') ?? named.documents,
  }
}

export const supports = (from: Tree, capability: string): boolean | undefined => {
  const { supported } = treeIn(from, capability)
  return typeof supported === 'boolean' ? supported : undefined
}

/** What the API supports. A model can support less. */
export const SUPPORTS: readonly ModelFeature[] = [
  'stop',
  'top_p',
  'top_k',
  'reasoning_effort',
  'parallel_tool_calls',
  'strict_tools',
  'tool_choice',
  'response_schema',
  'cache_hints',
  'image_urls',
  'files',
  'tool_call_deltas',
]

/** What a model does not support. */
function missingFeatures({ sampling, forced, structured, documents, adaptive, budget, efforts }: ModelTraits): ModelFeature[] {
  const thinks = adaptive || budget || efforts.length > 0
  const missing: readonly [boolean, readonly ModelFeature[]][] = [
    [!sampling, ['top_p', 'top_k']],
    [!forced, ['tool_choice']],
    [!structured, ['response_schema', 'strict_tools']],
    [!documents, ['files']],
    [!thinks, ['reasoning_effort']],
  ]
  return missing.flatMap(([isMissing, features]) => (isMissing ? features : []))
}

/** Adds the features of a model to its description, where they differ from those of the API. */
export function described(info: ModelInfo, traits: ModelTraits): ModelInfo {
  const missing = missingFeatures(traits)
  return {
    ...info,
    ...(missing.length === 0
      ? {}
      : { features: { ...info.features, supports: SUPPORTS.filter(feature => !missing.includes(feature)) } }),
    ...(traits.sampling || info.temperature !== undefined ? {} : { temperature: false }),
  }
}
