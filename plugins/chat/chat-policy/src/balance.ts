import type { ModelCall, ModelRef, Selected } from '@svc/core/contracts'
import { isSame, plainRef } from './chain.ts'

interface Share {
  readonly ref: ModelRef
  readonly weight: number
}

/** Whether the model of this turn is to be drawn: before anything is asked, where nobody has asked for one, and the profile has weights. */
export function isToDraw({ selected: { source, fallback }, round, attempt, tried }: ModelCall): boolean {
  const isFree = source.model === 'profile' || source.model === 'default'
  return isFree && round === 1 && attempt === 1 && tried.length === 0 && fallback.some(isWeighted)
}

/**
 * Draws who answers, of those that may be asked: the entries with a weight, and the selected model with the weight of its entry, else 1. `random` is from 0 up to 1.
 */
export function draw(selected: Selected, mayAsk: (ref: ModelRef) => boolean, random: number): ModelRef | undefined {
  const weighted = selected.fallback.filter(isWeighted).map((entry): Share => ({ ref: plainRef(entry), weight: entry.weight }))
  const isIn = weighted.some(({ ref }) => isSame(ref, selected))
  const shares = (isIn ? weighted : [{ ref: plainRef(selected), weight: 1 }, ...weighted]).filter(({ ref }) => mayAsk(ref))
  let left = random * shares.reduce((sum, { weight }) => sum + weight, 0)
  return (shares.find(({ weight }) => (left -= weight) < 0) ?? shares.at(-1))?.ref
}

type Entry = Selected['fallback'][number]
const isWeighted = (entry: Entry): entry is Entry & { readonly weight: number } => entry.weight !== undefined
