import type { ModelFeature, ModelInfo, ModelRequest, ReasoningEffort } from '@svc/core/contracts'
import type { Tree } from '@svc/provider-http'

/** What the API supports. A model can support less. */
export const SUPPORTS: readonly ModelFeature[] = [
  'stop',
  'top_p',
  'top_k',
  'seed',
  'n',
  'frequency_penalty',
  'presence_penalty',
  'logprobs',
  'reasoning_effort',
  'strict_tools',
  'tool_choice',
  'json',
  'response_schema',
  'high_temperature',
  'image_urls',
  'files',
  'audio',
]

/** Models before Gemini 3. */
const OLDER = /gemini-[12](\.|-|$)|gemma|learnlm/i
/** Models before Gemini 2.5, which do not think and do not open addresses. */
const OLDEST = /gemini-(1|2\.0)|gemma|learnlm/i

export const isOlder = (model: string): boolean => OLDER.test(model)

/** Adds to a model what its name tells. `thinking`: whether it can think, if the list tells. */
export function described(model: ModelInfo, thinking = !OLDEST.test(model.id)): ModelInfo {
  const missing: ModelFeature[] = [
    ...(thinking ? [] : ['reasoning_effort' as const]),
    ...(OLDEST.test(model.id) ? ['image_urls' as const] : []),
  ]
  if (missing.length === 0 || model.features?.supports) return model
  return { ...model, features: { ...model.features, supports: SUPPORTS.filter(feature => !missing.includes(feature)) } }
}

/** Levels of Gemini 3 and later. The first models have fewer. */
const LEVELS: Readonly<Record<ReasoningEffort, string>> = {
  none: 'minimal',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}
const PRO_LEVELS: Readonly<Record<string, string>> = { minimal: 'low', medium: 'high' }
/** The budgets that Google documents for these words in its OpenAI interface. */
const BUDGETS: Readonly<Record<ReasoningEffort, number>> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
}
/** Gemini 2.5 Pro always thinks. */
const LEAST_OF_PRO = 128

/** `thinkingConfig`, if the request asks for reasoning. https://ai.google.dev/gemini-api/docs/thinking */
export function thinkingOf({ model, reasoningEffort, reasoningTokens }: ModelRequest): Tree | undefined {
  if (reasoningEffort === undefined && reasoningTokens === undefined) return undefined
  const budget = reasoningTokens ?? BUDGETS[reasoningEffort ?? 'medium']
  if (isOlder(model)) {
    const thinkingBudget = /pro/i.test(model) ? Math.max(budget, LEAST_OF_PRO) : budget
    return { thinkingBudget, ...(thinkingBudget > LEAST_OF_PRO ? { includeThoughts: true } : {}) }
  }
  const level = LEVELS[reasoningEffort ?? nearest(budget)]
  const isFirstPro = /gemini-3-pro/i.test(model)
  return {
    thinkingLevel: isFirstPro ? (PRO_LEVELS[level] ?? level) : level,
    ...(reasoningEffort === 'none' || budget === 0 ? {} : { includeThoughts: true }),
  }
}

function nearest(tokens: number): ReasoningEffort {
  if (tokens < BUDGETS.low) return 'minimal'
  return tokens <= 4096 ? 'low' : tokens <= 16_384 ? 'medium' : 'high'
}
