import type { ModelRequest, ReasoningEffort } from '@svc/core/contracts'
import type { Tree } from '@svc/provider-http'
import type { ModelTraits } from './traits.ts'

/** The fields `thinking` and `output_config.effort` of a request. */
export interface Thinking {
  readonly thinking?: Tree
  readonly effort?: ReasoningEffort
}

/** The API takes no smaller budget. */
const LEAST = 1024
/** Budgets of the levels, for models that have budgets only. */
const BUDGETS: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: LEAST,
  low: 4096,
  medium: 10_000,
  high: 24_000,
  xhigh: 32_000,
  max: 64_000,
}

/** True if a request asks the model to think. */
export const thinks = ({ reasoningEffort, reasoningTokens }: ModelRequest): boolean =>
  reasoningEffort === undefined ? (reasoningTokens ?? 0) > 0 : reasoningEffort !== 'none'

/** Converts the reasoning of a request. `maxTokens`: the output limit of the request, which includes its reasoning. */
export function thinkingOf(request: ModelRequest, traits: ModelTraits, maxTokens: number): Thinking {
  const { reasoningEffort, reasoningTokens } = request
  if (reasoningEffort === undefined && reasoningTokens === undefined) return {}
  if (!thinks(request)) return withoutThinking(traits)
  const level = levelOf(reasoningEffort ?? nearestLevel(reasoningTokens ?? 0), traits)
  if (traits.adaptive && !(reasoningTokens !== undefined && traits.budget))
    return { thinking: { type: 'adaptive', display: 'summarized' }, ...(level === undefined ? {} : { effort: level }) }
  const budget = reasoningTokens ?? BUDGETS[(reasoningEffort ?? 'medium') as keyof typeof BUDGETS] ?? BUDGETS.medium
  // The budget is a part of the output limit. Where the limit leaves no room, the API says so.
  const budget_tokens = Math.max(LEAST, Math.min(budget, maxTokens - LEAST))
  return { thinking: { type: 'enabled', budget_tokens }, ...(level === undefined ? {} : { effort: level }) }
}

/** The least thinking that a model can do. */
function withoutThinking({ rests, adaptive, efforts }: ModelTraits): Thinking {
  if (!rests) return efforts.includes('low') ? { effort: 'low' } : {}
  return adaptive ? { thinking: { type: 'disabled' } } : {}
}

const ORDER: readonly ReasoningEffort[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The level of a model that is nearest to the wanted one; undefined if it has no levels. */
function levelOf(wanted: ReasoningEffort, { efforts }: ModelTraits): ReasoningEffort | undefined {
  const distance = (level: ReasoningEffort) => Math.abs(ORDER.indexOf(level) - ORDER.indexOf(wanted))
  return efforts.toSorted((a, b) => distance(a) - distance(b))[0]
}

const nearestLevel = (tokens: number): ReasoningEffort =>
  Object.entries(BUDGETS).toSorted(([, a], [, b]) => Math.abs(a - tokens) - Math.abs(b - tokens))[0]![0] as ReasoningEffort
