import type { Usage } from '@svc/core/contracts'

/** Usage as servers write it: OpenAI's form, and DeepSeek's for what was cached. */
export interface WireUsage {
  readonly prompt_tokens?: number | null
  readonly completion_tokens?: number | null
  readonly prompt_tokens_details?: { readonly cached_tokens?: number | null } | null
  readonly prompt_cache_hit_tokens?: number | null
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number | null } | null
}

export function usageOf(wire: WireUsage): Usage {
  const [input, output] = [count(wire.prompt_tokens) ?? 0, count(wire.completion_tokens) ?? 0]
  const cached = count(wire.prompt_tokens_details?.cached_tokens ?? wire.prompt_cache_hit_tokens)
  const reasoning = count(wire.completion_tokens_details?.reasoning_tokens)
  return {
    input,
    output,
    ...(cached === undefined ? {} : { cached: Math.min(cached, input) }),
    ...(reasoning === undefined ? {} : { reasoning: Math.min(reasoning, output) }),
  }
}

const count = (value: unknown): number | undefined => (typeof value === 'number' && value >= 0 ? Math.trunc(value) : undefined)
