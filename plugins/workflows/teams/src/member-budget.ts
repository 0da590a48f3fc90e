import type { Budget } from '@svc/core/contracts'
import type { Said } from './play.ts'
import type { Member } from './team.ts'

/**
 * A member's own budget for each of so many things that it is asked at once: together they spend no more than is left after all that it was asked before.
 * What it spent where it failed it did not tell: that counts as all it was given.
 */
export function budgetsOf(
  { name, budget }: Member,
  heard: readonly (readonly Said[])[],
  count: number
): readonly (Budget | undefined)[] {
  if (!budget) return Array.from({ length: count }, () => undefined)
  let left = budget
  for (const round of heard) {
    const own = round.filter(({ member }) => member === name)
    const given = sharesOf(left, own.length)
    left = own.reduce((rest, said, at) => less(rest, said.error ? given[at]! : spentOf(said)), left)
  }
  return sharesOf(left, count)
}

type Kind = keyof Budget
const spentOf = ({ tokens, toolCalls }: Said): Budget => ({ tokens, tool_calls: toolCalls })

const each = (budget: Budget, part: (left: number, kind: Kind) => number): Budget =>
  Object.fromEntries(Object.entries(budget).map(([kind, left]) => [kind, part(left, kind as Kind)]))

const less = (budget: Budget, spent: Budget): Budget => each(budget, (left, kind) => Math.max(0, left - (spent[kind] ?? 0)))

/** What does not divide goes to the first. */
const sharesOf = (budget: Budget, count: number): Budget[] =>
  Array.from({ length: count }, (_, at) => each(budget, left => Math.floor(left / count) + (at < left % count ? 1 : 0)))
