import type { Vertical, VerticalPattern } from '@svc/core/contracts'
import { phraseWords, shareOf, type Task } from './words.ts'

/** A team or workflow that may be what a task needs. */
export interface Candidate {
  readonly kind: 'team' | 'workflow'
  readonly name: string
  /** 0 to 1. */
  readonly confidence: number
  readonly reason: string
  readonly trigger: string | null
}

/** How sure a pattern makes that says one word of many: the rest comes with the share of the task that it matched. */
const SURE = 0.6

/** What the patterns of a vertical name for a task, in their order. */
export const byPatterns = ({ patterns }: Vertical, task: Task): readonly Candidate[] =>
  patterns.flatMap(pattern => candidatesOf(pattern, hitOf(pattern, task)))

interface Hit {
  readonly trigger: string
  readonly share: number
}

/** The phrase of a pattern that says the most of a task. */
function hitOf({ words }: VerticalPattern, task: Task): Hit | undefined {
  const hits = words.map(trigger => ({ trigger, found: phraseWords(trigger, task) })).filter(({ found }) => found.length > 0)
  return hits.map(({ trigger, found }) => ({ trigger, share: shareOf(found, task) })).toSorted((a, b) => b.share - a.share)[0]
}

function candidatesOf({ weight = 1, team, workflow }: VerticalPattern, hit: Hit | undefined): Candidate[] {
  if (!hit) return []
  const confidence = rounded(weight * (SURE + (1 - SURE) * hit.share))
  const told = { confidence, reason: `the task matches the pattern "${hit.trigger}"`, trigger: hit.trigger }
  return [
    ...(team === undefined ? [] : [{ kind: 'team', name: team, ...told } as const]),
    ...(workflow === undefined ? [] : [{ kind: 'workflow', name: workflow, ...told } as const]),
  ]
}

export const rounded = (share: number): number => Math.round(share * 100) / 100
