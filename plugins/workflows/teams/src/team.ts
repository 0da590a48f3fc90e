import type { TeamDefinition, TeamMember } from '@svc/core/contracts'

/** A member with its name. */
export interface Member extends TeamMember {
  readonly name: string
}

/** A team as its formation takes it: defaults are filled in. */
export interface Team {
  readonly name: string
  readonly formation: TeamDefinition['formation']
  /** In the order they work in. */
  readonly members: readonly Member[]
  /** Who leads or judges; in `parallel` only where one is named. */
  readonly lead: Member | undefined
  /** The others. */
  readonly others: readonly Member[]
  readonly rounds: number
  /** So many members must agree. */
  readonly needed: number
}

const ROUNDS = 3

export function teamOf({ name, formation, members, rounds = ROUNDS, agreement }: TeamDefinition): Team {
  const all = Object.entries(members).map(([member, one]) => ({ ...one, name: member }))
  const lead = leadOf(formation, all)
  const needed = agreement === undefined ? Math.floor(all.length / 2) + 1 : Math.ceil(agreement * all.length)
  return { name, formation, members: all, lead, others: all.filter(one => one !== lead), rounds, needed }
}

function leadOf(formation: Team['formation'], members: readonly Member[]): Member | undefined {
  const named = members.find(({ lead }) => lead)
  if (formation === 'hierarchical') return named ?? members[0]
  return formation === 'reflection' ? (named ?? members.at(-1)) : named
}
