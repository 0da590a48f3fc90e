import type { JsonSchema } from '@svc/core'
import type { Json, NodeUsage, PublicError, TeamBudget, TeamDefinition, TeamLimit, TeamMember } from '@svc/core/contracts'

/** A prompt for a member. */
export interface MemberPrompt {
  readonly member: string
  readonly prompt: string
  /** JSON Schema of an answer that must be data. */
  readonly schema?: JsonSchema
  /** Whether the member only judges, without tools. */
  readonly judges?: true
}

/** The reply of a member, or its error. */
export interface Said {
  readonly member: string
  readonly text: string
  /** The answer as data, if the prompt has a schema. */
  readonly data?: Json
  readonly error?: PublicError
  /** The budget that stopped it, with an `error`. */
  readonly stoppedBy?: TeamLimit
  /** Absent if it is unknown. */
  readonly usage?: NodeUsage
}

/** The result of a formation. */
export interface Ending {
  /** Null without an agreement. */
  readonly answer: string | null
  readonly rounds?: number
  readonly agreed?: boolean
  readonly approved?: boolean
  /** The critic's last reasons. */
  readonly reasons?: readonly string[]
  /** The last proposal of each member, without an agreement. */
  readonly positions?: { readonly [member: string]: string }
  /** The last vote of each member. */
  readonly votes?: { readonly [member: string]: string }
}

/**
 * A formation as a generator. It yields prompts that run at once, receives the replies in the same order, and returns the result.
 * It is replayed from the start with the earlier replies, so it must depend on nothing else.
 */
export type FormationScript = Generator<readonly MemberPrompt[], Ending, readonly Said[]>

/** Replays a formation with the replies so far. */
export function replay(
  play: FormationScript,
  heard: readonly (readonly Said[])[]
): IteratorResult<readonly MemberPrompt[], Ending> {
  let at = play.next([])
  for (const said of heard) if (!at.done) at = play.next(said)
  return at
}

/** A member and its name. */
export interface Member extends TeamMember {
  readonly name: string
}

/** A team with defaults filled in. */
export interface Team {
  readonly name: string
  readonly formation: TeamDefinition['formation']
  /** In working order. */
  readonly members: readonly Member[]
  /** The member that leads or judges; in `parallel` only if the definition sets it. */
  readonly lead: Member | undefined
  /** The members without the lead. */
  readonly others: readonly Member[]
  readonly rounds: number
  /** Number of votes for an agreement. */
  readonly needed: number
  readonly budget: TeamBudget
}

const ROUNDS = 3

export function teamOf({ name, formation, members, rounds = ROUNDS, agreement, budget = {} }: TeamDefinition): Team {
  const all = Object.entries(members).map(([member, item]) => ({ ...item, name: member }))
  const lead = leadOf(formation, all)
  const needed = agreement === undefined ? Math.floor(all.length / 2) + 1 : Math.ceil(agreement * all.length)
  return { name, formation, members: all, lead, others: all.filter(item => item !== lead), rounds, needed, budget }
}

function leadOf(formation: Team['formation'], members: readonly Member[]): Member | undefined {
  const named = members.find(({ lead }) => lead)
  if (formation === 'hierarchical') return named ?? members[0]
  return formation === 'reflection' ? (named ?? members.at(-1)) : named
}
