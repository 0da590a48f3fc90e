import type {
  Budget,
  ChildOutcome,
  ChildSpec,
  Graph,
  Json,
  NodeDefinition,
  NodeTask,
  PublicError,
  TeamDefinition,
  WorkflowNode,
} from '@svc/core/contracts'
import { formProblems } from './definition.ts'
import { teamInvalid } from './errors.ts'
import { FORMATIONS, systemOf, taskText } from './formations.ts'
import { type MemberPrompt, type Ending, type Member, type Said, replay, type Team, teamOf } from './team.ts'

/** State between calls: all replies, and the members that are being asked. */
interface TeamState {
  readonly heard: readonly (readonly Said[])[]
  readonly asked: readonly string[]
}

const RESULT = {
  type: 'object',
  properties: {
    team: { type: 'string' },
    formation: { type: 'string' },
    answer: { type: ['string', 'null'], description: 'Null without an agreement' },
    members: { type: 'object', description: 'By name: `status` completed, failed or idle (not asked), and the last `error`' },
    rounds: { type: 'integer' },
    agreed: { type: 'boolean' },
    approved: { type: 'boolean' },
    reasons: { type: 'array', items: { type: 'string' } },
    positions: { type: 'object' },
    votes: { type: 'object' },
    spent: { type: 'object', properties: { tokens: { type: 'integer' }, tool_calls: { type: 'integer' } } },
  },
  required: ['team', 'formation', 'answer', 'members', 'spent'],
}

/** The node type of a team. Members run as children, so each is a step of the run. */
export const teamNode: WorkflowNode = {
  description: 'Runs a team on a task. `Teams.body` creates this node; use `team` in workflows.',
  settings: {
    type: 'object',
    properties: {
      team: { type: 'object', description: 'Definition of the team' },
      task: { description: 'Task of the team' },
    },
    required: ['team', 'task'],
    additionalProperties: false,
  },
  output: RESULT,
  repeatable: true,
  async *run({ settings, state, children = {} }: NodeTask) {
    const team = teamIn(settings.team)
    const kept = state as unknown as TeamState | undefined
    const heard = kept ? [...kept.heard, saidBy(kept.asked, children)] : []
    const at = replay(FORMATIONS[team.formation](team, taskText(settings.task)), heard)
    if (at.done) yield { type: 'output', output: resultOf(team, heard, at.value) }
    else yield { type: 'fork', join: 'all', children: childrenOf(team, at.value, heard), state: keptOf(heard, at.value) }
  },
}

/** The team as it was when the body was created. Checks it, because a person can have written the node. Throws TEAM_INVALID. */
function teamIn(definition: Json | undefined): Team {
  const problems = formProblems(definition)
  if (problems.length > 0) throw teamInvalid('team', problems)
  return teamOf(definition as unknown as TeamDefinition)
}

const keptOf = (heard: TeamState['heard'], asks: readonly MemberPrompt[]): Json =>
  ({ heard, asked: asks.map(({ member }) => member) }) as unknown as Json

/** The replies in the order of the prompts. */
function saidBy(asked: readonly string[], children: Readonly<Record<string, ChildOutcome>>): Said[] {
  const outcomes = Object.values(children)
  return asked.map((member, at) => saidOf(member, outcomes[at]))
}

function childrenOf(team: Team, asks: readonly MemberPrompt[], heard: TeamState['heard']): ChildSpec[] {
  const before = heard.flat().length
  const asked = new Map(asks.map(({ member }) => [member, asks.filter(ask => ask.member === member)]))
  return asks.map((ask, at) => {
    const member = team.members.find(({ name }) => name === ask.member)!
    const own = asked.get(ask.member)!
    const vars = { system: systemOf(team, member), prompt: ask.prompt }
    const budget = budgetsOf(member, heard, own.length)[own.indexOf(ask)]
    return { key: `${before + at + 1}-${member.name}`, body: memberBody(member, ask, budget), vars }
  })
}

/** The body that asks a member once, with its share of the member's budget. */
function memberBody(member: Member, { schema, judges }: MemberPrompt, budget: Budget | undefined): Graph {
  const tools = judges ? [] : member.tools
  const agent: NodeDefinition = {
    type: 'agent',
    system: '${{ system }}',
    prompt: '${{ prompt }}',
    ...(member.profile === undefined ? {} : { profile: member.profile }),
    ...(member.mode === undefined ? {} : { mode: member.mode }),
    ...(tools === undefined ? {} : { tools }),
    ...(schema === undefined ? {} : { output: schema }),
  }
  return { nodes: { [member.name]: agent }, ...(budget ? { budget } : {}) }
}

/** Divides the remaining budget of a member among prompts that run at once. A failed reply reports no usage, so its whole share counts as spent. */
function budgetsOf(
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

/** The first shares get the remainder. */
const sharesOf = (budget: Budget, count: number): Budget[] =>
  Array.from({ length: count }, (_, at) => each(budget, left => Math.floor(left / count) + (at < left % count ? 1 : 0)))

/** Output of a node `agent`. */
interface AgentOutput {
  readonly text: string
  readonly data?: Json
  readonly tokens: number
  readonly tools_used: readonly Json[]
}

/** Status of a member after its last reply, and its last error. */
interface MemberOutcome {
  readonly status: 'completed' | 'failed' | 'idle'
  readonly error?: PublicError
}

/** Output of a team. */
export interface TeamResult extends Ending {
  readonly team: string
  readonly formation: Team['formation']
  readonly members: { readonly [name: string]: MemberOutcome }
  /** Usage that the members reported. Only the metrics of the run include failed members. */
  readonly spent: { readonly tokens: number; readonly tool_calls: number }
}

const CANCELLED: PublicError = { code: 'CANCELLED', message: 'cancelled', details: {} }

/** The reply of a member, from the outcome of its child. */
function saidOf(member: string, outcome: ChildOutcome | undefined): Said {
  if (outcome?.status !== 'completed')
    return { member, text: '', error: outcome?.status === 'failed' ? outcome.error : CANCELLED, tokens: 0, toolCalls: 0 }
  const { text, data, tokens, tools_used: tools } = outcome.output as unknown as AgentOutput
  return { member, text, ...(data === undefined ? {} : { data }), tokens, toolCalls: tools.length }
}

function resultOf(team: Team, heard: readonly (readonly Said[])[], ending: Ending): Json {
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
  const error = said.findLast(item => item.error)?.error
  return { status: last.error ? 'failed' : 'completed', ...(error ? { error } : {}) }
}
