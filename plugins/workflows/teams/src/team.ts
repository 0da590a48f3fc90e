import type { JsonSchema } from '@svc/core'
import type { Json, PublicError, TeamDefinition, TeamMember } from '@svc/core/contracts'

/** Something that a member is asked. */
export interface Ask {
  readonly member: string
  readonly prompt: string
  /** JSON Schema of the answer, where it is to be data. */
  readonly schema?: JsonSchema
  /** It only judges what it is shown: without tools. */
  readonly judges?: true
}

/** What a member said, or why it did not. */
export interface Said {
  readonly member: string
  readonly text: string
  /** The answer as data, where a schema was given. */
  readonly data?: Json
  readonly error?: PublicError
  readonly tokens: number
  readonly toolCalls: number
}

/** How the work of a team ends. */
export interface Ending {
  /** Null where they did not come to one. */
  readonly answer: string | null
  readonly rounds?: number
  readonly agreed?: boolean
  readonly approved?: boolean
  /** The critic's last reasons. */
  readonly reasons?: readonly string[]
  /** What each proposed last, where they did not agree. */
  readonly positions?: { readonly [member: string]: string }
  /** Whose proposal each voted for last. */
  readonly votes?: { readonly [member: string]: string }
}

/**
 * A formation, told as it happens: it yields who is asked at once, is given what they said, in that order, and returns how it ends. It is told again from
 * the beginning with what was said before, so it depends on nothing else.
 */
export type Play = Generator<readonly Ask[], Ending, readonly Said[]>

/** Where a play stands after all that was said. */
export function standing(play: Play, heard: readonly (readonly Said[])[]): IteratorResult<readonly Ask[], Ending> {
  let at = play.next([])
  for (const said of heard) if (!at.done) at = play.next(said)
  return at
}

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
