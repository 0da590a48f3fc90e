import type { Usage } from '@svc/core/contracts'
import type { SdkUsage } from './sdk.ts'

/** The tokens of a call, from the form of any version; `undefined` where the upstream counted none. */
export function toUsage(usage: SdkUsage | undefined): Usage | undefined {
  const { input, output, cached, reasoning } = flat(usage ?? { inputTokens: undefined, outputTokens: undefined })
  if (count(input) === undefined && count(output) === undefined) return undefined
  const [whole, said] = [count(input) ?? 0, count(output) ?? 0]
  return { input: whole, output: said, ...part('cached', cached, whole), ...part('reasoning', reasoning, said) }
}

function flat(usage: SdkUsage) {
  const { inputTokens, outputTokens } = usage
  const input = typeof inputTokens === 'object' ? inputTokens : undefined
  const output = typeof outputTokens === 'object' ? outputTokens : undefined
  const old = 'cachedInputTokens' in usage || 'reasoningTokens' in usage ? usage : undefined
  return {
    input: input ? input.total : inputTokens,
    output: output ? output.total : outputTokens,
    cached: input ? input.cacheRead : old?.cachedInputTokens,
    reasoning: output ? output.reasoning : old?.reasoningTokens,
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined

/** A part is never more than the whole, whatever an upstream counts. */
function part<N extends 'cached' | 'reasoning'>(name: N, value: unknown, whole: number): { readonly [K in N]?: number } {
  const tokens = count(value)
  return tokens === undefined ? {} : ({ [name]: Math.min(tokens, whole) } as { readonly [K in N]?: number })
}
