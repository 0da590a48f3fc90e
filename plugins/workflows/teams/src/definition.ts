import { type SchemaProblem, nearest, schema } from '@svc/core'
import type { TeamDefinition, WorkflowProblem } from '@svc/core/contracts'

/** What members may name. */
export interface Known {
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

const BUDGET = closed({ tool_calls: count('Tool calls'), tokens: count('Tokens') })
const MEMBER = closed(
  {
    role: text('What it is'),
    goal: text('What it is to reach; told to the model'),
    lead: { type: 'boolean', description: 'It leads, judges, or merges' },
    profile: text('A profile'),
    mode: text('A mode'),
    tools: {
      type: 'array',
      items: text('A tool'),
      uniqueItems: true,
      description: 'Names of tools; absent: as its mode has it; empty: none',
    },
    budget: BUDGET,
  },
  ['role', 'goal']
)
const FORMATIONS = ['sequential', 'parallel', 'hierarchical', 'pipeline', 'consensus', 'reflection'] as const

const TEAM = schema<TeamDefinition>(
  closed(
    {
      name: text('Its name', {
        pattern: TEAM_NAME,
        patternHint: 'must be a-z, 0-9, _ or -, beginning with a letter, at most 50 of them',
      }),
      description: { type: 'string' },
      formation: { enum: FORMATIONS },
      members: {
        type: 'object',
        minProperties: 2,
        maxProperties: MOST_MEMBERS,
        propertyNames: {
          pattern: MEMBER_NAME,
          patternHint: 'must be a-z, 0-9 or _, beginning with a letter, at most 40 of them, and not "end"',
        },
        additionalProperties: MEMBER,
      },
      budget: BUDGET,
      rounds: count('At most so many', { minimum: 1, maximum: MOST_ROUNDS }),
      agreement: { type: 'number', exclusiveMinimum: 0.5, maximum: 1 },
    },
    ['name', 'formation', 'members']
  )
)

/** Everything wrong with the form of a definition, and with what it says of its formation. */
export function formProblems(definition: unknown): WorkflowProblem[] {
  // a wrong name of a member is told by its pattern
  const faults = TEAM.check(structuredClone(definition)).filter(({ keyword }) => keyword !== 'propertyNames')
  return faults.length > 0
    ? faults.map(problemOf)
    : [...leadProblems(definition as TeamDefinition), ...keyProblems(definition as TeamDefinition)]
}

function problemOf(fault: SchemaProblem): WorkflowProblem {
  const hint = hintOf(fault)
  return { message: fault.message, path: fault.path, ...(hint === undefined ? {} : { hint }) }
}

function hintOf({ keyword, allowed = [], value, nearest: near }: SchemaProblem): string | undefined {
  if (keyword === 'unknown') return near ? `did you mean "${near}"?` : `known here: ${allowed.join(', ')}`
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
    ...(second === undefined ? [] : [{ message: 'is a second lead', path: `members.${second}.lead`, hint: 'a team has one' }]),
    ...(leads[0] === undefined || LEADS.has(formation)
      ? []
      : [
          {
            message: `means nothing in the formation ${formation}`,
            path: `members.${leads[0]}.lead`,
            hint: `leave it out; ${[...LEADS].join(', ')} have a lead`,
          },
        ]),
    ...(formation !== 'reflection' || Object.keys(members).length === 2
      ? []
      : [{ message: 'must be two in the formation reflection', path: 'members', hint: 'one writes, one judges' }]),
  ]
}

function keyProblems({ formation, rounds, agreement }: TeamDefinition): WorkflowProblem[] {
  const without = (path: string) => ({ message: `means nothing in the formation ${formation}`, path, hint: 'leave it out' })
  return [
    ...(rounds === undefined || ROUNDS.has(formation) ? [] : [without('rounds')]),
    ...(agreement === undefined || formation === 'consensus' ? [] : [without('agreement')]),
  ]
}

/** Tools of servers that are not connected just now may come back. */
const BRIDGED = /__/

/** What it names that is not there. Profiles are a file's, and are looked up when they are used. */
export function nameProblems({ members }: TeamDefinition, known: Known): WorkflowProblem[] {
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
  const near = nearest(name, known)
  const hint = near ? `did you mean "${near}"?` : `known: ${known.slice(0, 30).join(', ') || 'none'}`
  return { message: `names the ${kind} "${name.slice(0, 60)}", which is not there`, path, hint }
}
