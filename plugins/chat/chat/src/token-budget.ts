import type { Use } from '@svc/core'
import type { ModelRequest } from '@svc/core/contracts'
import type { Candidate, Turn } from './turn.ts'
import { budgetExhausted } from './errors.ts'
import { tokensOf } from './context-window.ts'

/** The request with no more output than what is left of the turn's tokens. Throws BUDGET_EXHAUSTED where nothing would be left for an answer. */
export async function fitTokenBudget(
  request: ModelRequest,
  budget: number,
  { usage }: Turn,
  at: Candidate,
  use: Use
): Promise<ModelRequest> {
  const spent = usage.input + usage.output
  const needed = await tokensOf(request, at, use)
  const left = budget - spent - needed
  if (left < 1) throw budgetExhausted(budget, spent, needed)
  return { ...request, maxTokens: Math.min(left, request.maxTokens ?? at.info?.output ?? left) }
}
