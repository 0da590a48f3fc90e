import type { SlotView } from '@svc/core'
import type { ModelCall, ModelRef, Provider, Selected, TurnDone } from '@svc/core/contracts'
import type { Breakers } from './breakers.ts'
import { chainOf, has, isSame, plainRef } from './chain.ts'

export interface CandidatesParts {
  readonly breakers: Breakers
  readonly turns: Turns
  readonly providers: Pick<SlotView<Provider>, 'has'>
  /** From 0 up to 1. */
  readonly random: () => number
}

/** Who else may answer a turn. */
export interface Candidates {
  /** Another model that is to answer from the start, by the weights of the profile. */
  drawn(call: ModelCall): ModelRef | undefined
  /** The next that may answer in place of this one: well, and not given up in this turn. */
  next(call: ModelCall): ModelRef | undefined
}

/** Chooses among models that are there and whose breakers let them be asked. */
export function createCandidates({ breakers, turns, providers, random }: CandidatesParts): Candidates {
  const isWell = (ref: ModelRef) => providers.has(ref.provider) && breakers.waitMs(ref) === 0
  return {
    drawn(call) {
      const own = turns.own(call.turn)
      // the one that was drawn comes by as a call of its own
      if (!isToDraw(call) || (own && !isSame(own, call.selected))) return undefined
      turns.keep(call.turn, plainRef(call.selected))
      const one = draw(call.selected, isWell, random())
      return one && !isSame(one, call.selected) ? one : undefined
    },
    next({ turn, selected, tried }) {
      const own = turns.own(turn)
      const chain = own ? [...chainOf(selected), own] : chainOf(selected)
      return chain.find(ref => !isSame(ref, selected) && !has(tried, ref) && isWell(ref))
    },
  }
}

interface Share {
  readonly ref: ModelRef
  readonly weight: number
}

/** Whether the model of this turn is to be drawn: only for the first call, if the request names no model and the profile has weights. */
function isToDraw({ selected: { source, fallback }, round, attempt, tried }: ModelCall): boolean {
  const isFree = source.model === 'profile' || source.model === 'default'
  return isFree && round === 1 && attempt === 1 && tried.length === 0 && fallback.some(isWeighted)
}

/**
 * Draws who answers, of those that may be asked: the entries with a weight, and the selected model with the weight of its entry, else 1. `random` is from 0 up to 1.
 */
function draw(selected: Selected, mayAsk: (ref: ModelRef) => boolean, random: number): ModelRef | undefined {
  const weighted = selected.fallback.filter(isWeighted).map((entry): Share => ({ ref: plainRef(entry), weight: entry.weight }))
  const isIn = weighted.some(({ ref }) => isSame(ref, selected))
  const shares = (isIn ? weighted : [{ ref: plainRef(selected), weight: 1 }, ...weighted]).filter(({ ref }) => mayAsk(ref))
  let left = random * shares.reduce((sum, { weight }) => sum + weight, 0)
  return (shares.find(({ weight }) => (left -= weight) < 0) ?? shares.at(-1))?.ref
}

type Entry = Selected['fallback'][number]
const isWeighted = (entry: Entry): entry is Entry & { readonly weight: number } => entry.weight !== undefined

/** The models that turns would have had without the draw; forgotten at their end. */
interface Turns {
  own(turn: string): ModelRef | undefined
  keep(turn: string, own: ModelRef): void
  /** For a tap of `Chat.hooks.end`. */
  readonly ended: (done: TurnDone) => void
}

/** Limits the memory for turns whose end is never reported. */
const MOST = 10_000

/** Makes an empty one. */
export function createTurns(): Turns {
  const turns = new Map<string, ModelRef>()
  return {
    own: turn => turns.get(turn),
    keep(turn, own) {
      if (turns.size >= MOST) turns.delete(turns.keys().next().value ?? '')
      turns.set(turn, own)
    },
    ended: ({ turn }) => void turns.delete(turn),
  }
}
