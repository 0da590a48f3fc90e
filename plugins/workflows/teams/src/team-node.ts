import type {
  Budget,
  ChildOutcome,
  ChildSpec,
  Graph,
  Json,
  NodeDefinition,
  NodeTask,
  TeamDefinition,
  WorkflowNode,
} from '@svc/core/contracts'
import { formProblems } from './definition.ts'
import { teamInvalid } from './errors.ts'
import { FORMATIONS } from './formations/index.ts'
import { type Ask, type Said, standing } from './play.ts'
import { resultOf, saidOf } from './result.ts'
import { type Member, type Team, teamOf } from './team.ts'
import { systemOf, taskText } from './words.ts'

/** What it keeps between its calls: all that was said, and who is being asked. */
interface Kept {
  readonly heard: readonly (readonly Said[])[]
  readonly asked: readonly string[]
}

const RESULT = {
  type: 'object',
  properties: {
    team: { type: 'string' },
    formation: { type: 'string' },
    answer: { type: ['string', 'null'], description: 'Null where they did not agree' },
    members: { type: 'object', description: 'By name: `status` completed, failed or idle (was not asked), and the last `error`' },
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

/** A team at work. Its members are asked as children, so each of them is a step of the run. */
export const teamNode: WorkflowNode = {
  description: 'Has a team work on a task: what `Teams.body` makes, use `team` in workflows.',
  settings: {
    type: 'object',
    properties: {
      team: { type: 'object', description: 'The definition of the team' },
      task: { description: 'What it is to do' },
    },
    required: ['team', 'task'],
    additionalProperties: false,
  },
  output: RESULT,
  repeatable: true,
  async *run({ settings, state, children = {} }: NodeTask) {
    const team = teamIn(settings.team)
    const kept = state as unknown as Kept | undefined
    const heard = kept ? [...kept.heard, saidBy(kept.asked, children)] : []
    const at = standing(FORMATIONS[team.formation](team, taskText(settings.task)), heard)
    if (at.done) yield { type: 'output', output: resultOf(team, heard, at.value) }
    else yield { type: 'fork', join: 'all', children: childrenOf(team, at.value, heard), state: keptOf(heard, at.value) }
  },
}

/** The team as it was when the body was made; a person may have written the node. Throws TEAM_INVALID. */
function teamIn(definition: Json | undefined): Team {
  const problems = formProblems(definition)
  if (problems.length > 0) throw teamInvalid('team', problems)
  return teamOf(definition as unknown as TeamDefinition)
}

const keptOf = (heard: Kept['heard'], asks: readonly Ask[]): Json =>
  ({ heard, asked: asks.map(({ member }) => member) }) as unknown as Json

/** Children come back in the order they were asked in. */
function saidBy(asked: readonly string[], children: Readonly<Record<string, ChildOutcome>>): Said[] {
  const outcomes = Object.values(children)
  return asked.map((member, at) => saidOf(member, outcomes[at]))
}

function childrenOf(team: Team, asks: readonly Ask[], heard: Kept['heard']): ChildSpec[] {
  const before = heard.flat().length
  const asked = new Map(asks.map(({ member }) => [member, asks.filter(one => one.member === member)]))
  return asks.map((ask, at) => {
    const member = team.members.find(({ name }) => name === ask.member)!
    const own = asked.get(ask.member)!
    const vars = { system: systemOf(team, member), prompt: ask.prompt }
    const budget = budgetsOf(member, heard, own.length)[own.indexOf(ask)]
    return { key: `${before + at + 1}-${member.name}`, body: memberBody(member, ask, budget), vars }
  })
}

/** A member at one thing it is asked, within what it may spend on that of its own budget. */
function memberBody(member: Member, { schema, judges }: Ask, budget: Budget | undefined): Graph {
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

/**
 * A member's own budget for each of so many things that it is asked at once: together they spend no more than is left after all that it was asked before.
 * What it spent where it failed it did not tell: that counts as all it was given.
 */
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

/** What does not divide goes to the first. */
const sharesOf = (budget: Budget, count: number): Budget[] =>
  Array.from({ length: count }, (_, at) => each(budget, left => Math.floor(left / count) + (at < left % count ? 1 : 0)))
