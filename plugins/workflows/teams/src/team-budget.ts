import type { Budget, NodeUsage, PublicError, RunUsage, TeamBudget, TeamLimit, TeamStop } from '@svc/core/contracts'
import { durationMs } from '@svc/workflow-lang'
import type { Said, Team } from './team.ts'

/** The stricter value of each kind. */
export function stricter(one: TeamBudget = {}, other: TeamBudget = {}): TeamBudget {
  const { time: oneTime, ...a } = one
  const { time: otherTime, ...b } = other
  const kinds = [...new Set([...Object.keys(a), ...Object.keys(b)])] as (keyof typeof a)[]
  const least = Object.fromEntries(kinds.map(kind => [kind, Math.min(a[kind] ?? Infinity, b[kind] ?? Infinity)]))
  const times = [oneTime, otherTime].filter(time => time !== undefined)
  const [time] = times.toSorted((x, y) => durationMs(x)! - durationMs(y)!)
  return { ...least, ...(time === undefined ? {} : { time }) }
}

/** The budget of time in milliseconds. */
export const timeOf = ({ time }: TeamBudget): number => (time === undefined ? Infinity : durationMs(time)!)

/** When a team began, and now, in Unix milliseconds. */
export interface Clock {
  readonly since: number
  readonly now: number
}

/** A timer can fire a little early. */
const EARLY_MS = 20

const isTimeOver = (budget: TeamBudget, { since, now }: Clock): boolean => now - since >= timeOf(budget) - EARLY_MS

/** The budget that stopped a member, by its error. */
export function limitOf(error: PublicError, budget: TeamBudget, clock: Clock): TeamLimit | undefined {
  if (error.code === 'BUDGET_EXHAUSTED') return error.details.unit === 'cost' ? 'cost' : 'tokens'
  return error.code !== 'CANCELLED' && isTimeOver(budget, clock) ? 'time' : undefined
}

const SPENT: Readonly<Record<TeamLimit, string>> = {
  tokens: 'the budget of tokens is used up',
  cost: 'the budget of costs is used up',
  time: 'the time of the team is over',
  rounds: 'the team has no round left',
}

const stopped = (budget: TeamLimit, reason = SPENT[budget]): TeamStop => ({ budget, reason })

/** Why a round cannot begin. `allowance`: the rest of the budget of the team and of the run around it. */
export function stopBefore(
  { budget }: Team,
  round: number,
  { tokens = Infinity, cost = Infinity }: Budget,
  clock: Clock
): TeamStop | undefined {
  if (tokens < 1) return stopped('tokens')
  // a budget of 0 allows models that are free
  if (cost <= 0 && budget.cost !== 0) return stopped('cost')
  if (isTimeOver(budget, clock)) return stopped('time')
  return round > (budget.rounds ?? Infinity) ? stopped('rounds') : undefined
}

/** Why the first of these members was stopped by a budget. */
export function stopIn(said: readonly Said[]): TeamStop | undefined {
  const first = said.find(({ stoppedBy }) => stoppedBy !== undefined)
  return first && stopped(first.stoppedBy!, `${first.member}: ${first.error?.message ?? SPENT[first.stoppedBy!]}`)
}

/**
 * The number of a round from 1, after these earlier turns, each with the members that worked at once. A round of `consensus` and
 * `reflection` has two turns; one of `hierarchical` begins when the lead is asked.
 */
export function roundOf({ formation, lead }: Team, before: readonly (readonly string[])[], now: readonly string[]): number {
  const turns = [...before, now]
  if (formation === 'hierarchical') return Math.max(1, turns.filter(([first]) => first === lead!.name).length)
  return formation === 'consensus' || formation === 'reflection' ? Math.ceil(turns.length / 2) : turns.length
}

/** The sum of what nodes used. */
export function usageOf(all: readonly (NodeUsage | undefined)[]): RunUsage {
  const known = all.filter(usage => usage !== undefined)
  const priced = known.flatMap(({ cost }) => (cost === undefined ? [] : [cost]))
  const sum = (of: (usage: NodeUsage) => number) => known.reduce((total, usage) => total + of(usage), 0)
  return {
    tokens: sum(({ tokens }) => tokens),
    toolCalls: sum(({ tool_calls: calls }) => calls),
    ...(priced.length > 0 ? { cost: priced.reduce((total, cost) => total + cost, 0) } : {}),
  }
}
