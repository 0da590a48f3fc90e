import type { ChildOutcome, PublicError, Json } from '@svc/core/contracts'
import type { Ending, Said } from './play.ts'
import type { Team } from './team.ts'

/** What a node `agent` answers. */
interface AgentOutput {
  readonly text: string
  readonly data?: Json
  readonly tokens: number
  readonly tools_used: readonly Json[]
}

/** How a member came out of it: what its last word was, and the last error it had. */
interface MemberOutcome {
  readonly status: 'completed' | 'failed' | 'idle'
  readonly error?: PublicError
}

/** What a team answers. */
export interface TeamResult extends Ending {
  readonly team: string
  readonly formation: Team['formation']
  readonly members: { readonly [name: string]: MemberOutcome }
  /** What the members told; what one spent that failed is in the figures of the run alone. */
  readonly spent: { readonly tokens: number; readonly tool_calls: number }
}

const CANCELLED: PublicError = { code: 'CANCELLED', message: 'cancelled', details: {} }

/** What a member said, from what became of its child. */
export function saidOf(member: string, outcome: ChildOutcome | undefined): Said {
  if (outcome?.status !== 'completed')
    return { member, text: '', error: outcome?.status === 'failed' ? outcome.error : CANCELLED, tokens: 0, toolCalls: 0 }
  const { text, data, tokens, tools_used: tools } = outcome.output as unknown as AgentOutput
  return { member, text, ...(data === undefined ? {} : { data }), tokens, toolCalls: tools.length }
}

export function resultOf(team: Team, heard: readonly (readonly Said[])[], ending: Ending): Json {
  const all = heard.flat()
  const sum = (of: (said: Said) => number) => all.reduce((total, said) => total + of(said), 0)
  const result: TeamResult = {
    team: team.name,
    formation: team.formation,
    ...ending,
    members: Object.fromEntries(team.members.map(({ name }) => [name, outcomeOf(all.filter(({ member }) => member === name))])),
    spent: { tokens: sum(({ tokens }) => tokens), tool_calls: sum(({ toolCalls }) => toolCalls) },
  }
  return result as unknown as Json
}

function outcomeOf(said: readonly Said[]): MemberOutcome {
  const last = said.at(-1)
  if (!last) return { status: 'idle' }
  const error = said.findLast(one => one.error)?.error
  return { status: last.error ? 'failed' : 'completed', ...(error ? { error } : {}) }
}
