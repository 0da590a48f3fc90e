import { type JsonSchema, schema } from '@svc/core'
import type { Formation, TeamDefinition, VerticalPattern, WorkflowDefinition } from '@svc/core/contracts'

/** A vertical file, with definitions by name. */
export interface VerticalFile {
  readonly name: string
  readonly description: string
  readonly patterns: readonly VerticalPattern[]
  readonly teams: Readonly<Record<string, Omit<TeamDefinition, 'name'>>>
  readonly workflows: Readonly<Record<string, Omit<WorkflowDefinition, 'name'>>>
}

const NAME = '^[a-z][a-z0-9_-]{0,63}$'
const SMALL_LETTERS = 'must be at most 64 lower-case letters, digits, _ and -, and start with a letter'
const FORMATIONS = ['sequential', 'parallel', 'hierarchical', 'pipeline', 'consensus', 'reflection'] satisfies Formation[]

const closed = (properties: Readonly<Record<string, JsonSchema>>, required: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const nonBlank: JsonSchema = { type: 'string', pattern: '\\S', patternHint: 'must be non-blank text' }
const name: JsonSchema = { type: 'string', pattern: NAME, patternHint: SMALL_LETTERS }
const texts = (most: number): JsonSchema => ({ type: 'array', items: nonBlank, minItems: 1, maxItems: most })
const byName = (of: JsonSchema, more: object = {}): JsonSchema => ({
  type: 'object',
  propertyNames: name,
  additionalProperties: of,
  ...more,
})
const budget = closed({ tool_calls: { type: 'integer', minimum: 0 }, tokens: { type: 'integer', minimum: 1 } })

const pattern = closed(
  {
    words: texts(100),
    team: name,
    workflow: name,
    weight: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
  },
  ['words']
)

const member = closed(
  {
    role: nonBlank,
    goal: nonBlank,
    lead: { type: 'boolean' },
    profile: nonBlank,
    mode: nonBlank,
    tools: { type: 'array', items: nonBlank },
    budget,
  },
  ['role', 'goal']
)

const team = closed(
  {
    description: nonBlank,
    formation: { enum: FORMATIONS },
    members: byName(member),
    budget,
    rounds: { type: 'integer', minimum: 1 },
    agreement: { type: 'number', exclusiveMinimum: 0.5, maximum: 1 },
  },
  ['description', 'formation', 'members']
)

/** Only the outer keys. The workflow engine checks the nodes, because it knows their types. */
const workflow = closed(
  {
    description: nonBlank,
    version: nonBlank,
    inputs: { type: 'object' },
    parameters: { type: 'object' },
    outputs: { type: 'object' },
    secrets: texts(100),
    concurrency: { type: 'integer', minimum: 1 },
    timeout: nonBlank,
    budget,
    start: nonBlank,
    nodes: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { type: nonBlank }, required: ['type'] },
    },
    result: {},
  },
  ['description', 'nodes']
)

/** Maximum number of patterns. */
const PATTERNS = 200

// Uses only keywords that the fast schema check supports, so that a valid file starts without the slow one
export const VERTICAL = schema<VerticalFile>(
  closed(
    {
      name,
      description: nonBlank,
      patterns: { type: 'array', items: pattern, default: [], maxItems: PATTERNS },
      teams: byName(team, { default: {} }),
      workflows: byName(workflow, { default: {} }),
    },
    ['name', 'description']
  )
)
