import { type SchemaProblem, nearest, schema } from '@svc/core'
import type { TeamBudget, TeamDefinition, WorkflowProblem } from '@svc/core/contracts'
import { nameHint } from '@svc/plugin-kit'
import { DURATION_PATTERN } from '@svc/workflow-lang'

/** Names that members can use. */
export interface AvailableNames {
  readonly tools: () => readonly string[]
  readonly modes: () => readonly string[]
}

const text = (description: string, more: object = {}) => ({ type: 'string', minLength: 1, description, ...more })
const count = (description: string, more: object = {}) => ({ type: 'integer', minimum: 0, description, ...more })
const closed = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})

const MOST_MEMBERS = 20
const MOST_ROUNDS = 10
const TEAM_NAME = '^[a-z][a-z0-9_-]{0,49}$'
const MEMBER_NAME = '^(?!end$)[a-z][a-z0-9_]{0,39}$'

const SHARED = {
  tool_calls: count('Tool calls'),
  tokens: count('Tokens'),
  cost: { type: 'number', minimum: 0, description: 'Cost, in the currency of models.prices' },
}
const BUDGET = closed(SHARED)
const TEAM_BUDGET = closed({
  ...SHARED,
  time: {
    type: 'string',
    pattern: DURATION_PATTERN,
    patternHint: 'must be a duration such as 30s, 5m',
    description: 'Time from the start of the team',
  },
  rounds: count('Rounds', { minimum: 1, maximum: 1_000 }),
})
const MEMBER = closed(
  {
    role: text('Role of the member'),
    goal: text('Goal of the member, part of its system prompt'),
    lead: { type: 'boolean', description: 'Whether the member leads, judges or merges' },
    profile: text('Profile'),
    mode: text('Mode'),
    tools: {
      type: 'array',
      items: text('Tool'),
      uniqueItems: true,
      description: 'Names of tools; default: those of its mode; an empty list allows none',
    },
    budget: BUDGET,
  },
  ['role', 'goal']
)
const FORMATIONS = ['sequential', 'parallel', 'hierarchical', 'pipeline', 'consensus', 'reflection'] as const

const TEAM = schema<TeamDefinition>(
  closed(
    {
      name: text('Name of the team', {
        pattern: TEAM_NAME,
        patternHint: 'must be at most 50 characters of a-z, 0-9, _ and -, and start with a letter',
      }),
      description: { type: 'string' },
      formation: { enum: FORMATIONS },
      members: {
        type: 'object',
        minProperties: 2,
        maxProperties: MOST_MEMBERS,
        propertyNames: {
          pattern: MEMBER_NAME,
          patternHint: 'must be at most 40 characters of a-z, 0-9 and _, start with a letter, and not be "end"',
        },
        additionalProperties: MEMBER,
      },
      budget: TEAM_BUDGET,
      rounds: count('Maximum number of rounds', { minimum: 1, maximum: MOST_ROUNDS }),
      agreement: { type: 'number', exclusiveMinimum: 0.5, maximum: 1 },
    },
    ['name', 'formation', 'members']
  )
)

const ORDERED = schema<TeamBudget>(TEAM_BUDGET)

/** The problems of a budget that a caller sent. */
export const budgetProblems = (budget: unknown): WorkflowProblem[] => ORDERED.check(structuredClone(budget)).map(problemOf)

/** All problems of the form of a definition, and of the keys that do not fit its formation. */
export function formProblems(definition: unknown): WorkflowProblem[] {
  // the pattern reports a wrong member name
  const problems = TEAM.check(structuredClone(definition)).filter(({ keyword }) => keyword !== 'propertyNames')
  return problems.length > 0
    ? problems.map(problemOf)
    : [...leadProblems(definition as TeamDefinition), ...keyProblems(definition as TeamDefinition)]
}

function problemOf(problem: SchemaProblem): WorkflowProblem {
  const hint = hintOf(problem)
  return { message: problem.message, path: problem.path, ...(hint === undefined ? {} : { hint }) }
}

function hintOf({ keyword, allowed = [], value, nearest: near }: SchemaProblem): string | undefined {
  if (keyword === 'unknown') return near ? `did you mean "${near}"?` : `Use one of: ${allowed.join(', ')}`
  const meant = keyword === 'enum' ? nearest(String(value), allowed as string[]) : undefined
  return meant && `did you mean "${meant}"?`
}

type Form = TeamDefinition['formation']
const LEADS: ReadonlySet<Form> = new Set(['hierarchical', 'reflection', 'parallel'])
const ROUNDS: ReadonlySet<Form> = new Set(['hierarchical', 'reflection', 'consensus'])

function leadProblems({ formation, members }: TeamDefinition): WorkflowProblem[] {
  const leads = Object.keys(members).filter(name => members[name]!.lead)
  const [, second] = leads
  return [
    ...(second === undefined
      ? []
      : [{ message: 'is a second lead', path: `members.${second}.lead`, hint: 'Keep only one lead' }]),
    ...(leads[0] === undefined || LEADS.has(formation)
      ? []
      : [
          {
            message: `has no effect in the formation ${formation}`,
            path: `members.${leads[0]}.lead`,
            hint: `Remove it; only ${[...LEADS].join(', ')} have a lead`,
          },
        ]),
    ...(formation !== 'reflection' || Object.keys(members).length === 2
      ? []
      : [{ message: 'must be two in the formation reflection', path: 'members', hint: 'Define a writer and a critic' }]),
  ]
}

function keyProblems({ formation, rounds, agreement }: TeamDefinition): WorkflowProblem[] {
  const without = (path: string) => ({ message: `has no effect in the formation ${formation}`, path, hint: 'Remove it' })
  return [
    ...(rounds === undefined || ROUNDS.has(formation) ? [] : [without('rounds')]),
    ...(agreement === undefined || formation === 'consensus' ? [] : [without('agreement')]),
  ]
}

/** Tools of MCP servers, which can be disconnected at the moment. */
const BRIDGED = /__/

/** Unknown names. Profiles come from a file and are checked at use. */
export function nameProblems({ members }: TeamDefinition, known: AvailableNames): WorkflowProblem[] {
  return Object.entries(members).flatMap(([name, { mode, tools = [] }]) => [
    ...(mode === undefined || known.modes().includes(mode) ? [] : [strange('mode', mode, `members.${name}.mode`, known.modes())]),
    ...tools.flatMap((tool, at) =>
      known.tools().includes(tool) || BRIDGED.test(tool)
        ? []
        : [strange('tool', tool, `members.${name}.tools[${at}]`, known.tools())]
    ),
  ])
}

function strange(kind: string, name: string, path: string, known: readonly string[]): WorkflowProblem {
  const hint = nameHint(name, known, 'Use one of: none', 30)
  return { message: `is the ${kind} "${name.slice(0, 60)}", which does not exist`, path, hint }
}
