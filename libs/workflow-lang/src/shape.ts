import { isTree, type JsonSchema, type Schema, schema } from '@svc/core'
import type { WorkflowNode } from '@svc/core/contracts'
import { DURATION_PATTERN } from './graph.ts'

type Properties = Readonly<Record<string, JsonSchema>>

/** Names that expressions can write after `nodes.`. */
export const NODE_NAME = '^(?!(?:__proto__|constructor|prototype)$)[A-Za-z_][A-Za-z0-9_]{0,63}$'
export const WORKFLOW_NAME = '^[a-z][a-z0-9_-]{0,63}$'

const duration = (description: string): JsonSchema => ({
  type: 'string',
  pattern: DURATION_PATTERN,
  patternHint: 'must be a length of time such as 30s, 5m, 2h, 7d',
  description,
})
const text = (description: string): JsonSchema => ({ type: 'string', description })
const count = (minimum: number, description: string): JsonSchema => ({ type: 'integer', minimum, description })
const closed = (properties: Properties, rest: object = {}): JsonSchema & object => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...rest,
})

const RETRY = closed(
  {
    attempts: { type: 'integer', minimum: 1, maximum: 100, description: 'Tries in all, the first among them' },
    delay: duration('How long it waits before the second try; default 1s'),
    factor: { type: 'number', minimum: 1, description: 'By what the wait grows each time; default 2' },
    max_delay: duration('The longest wait; default 1m'),
    on: {
      type: 'array',
      items: { type: 'string' },
      description: 'Codes of errors that are worth another try; default: all but those of a broken definition or input',
    },
  },
  { required: ['attempts'], description: 'What is done again after a failure' }
)

const BUDGET = closed(
  { tool_calls: count(0, 'Calls of tools'), tokens: count(0, 'Tokens, of input and output together') },
  { description: 'What all nodes of the graph may spend together; absent: without a limit' }
)

const BODY = { type: 'object', description: 'A node, or a graph of nodes' } as const
const bodies = (description: string): JsonSchema => ({
  type: 'object',
  additionalProperties: BODY,
  minProperties: 1,
  description,
})

/** Keys that every node may have. */
export const NODE_PROPERTIES: Properties = {
  type: text('What kind of node it is'),
  description: text('What it is for'),
  next: text('The node that follows; absent, or `end`: this way ends here'),
  branches: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'The node that follows, by the branch that this one answers; keys may be plain true and false',
  },
  retry: RETRY,
  timeout: duration('How long one try may take'),
  catch: text('The node that follows a failure; expressions from there on have `error`'),
  compensate: {
    ...BODY,
    description: 'A node or graph that undoes it when the run fails after it was done; its expressions have `output` and `error`',
  },
  repeatable: {
    type: 'boolean',
    description: 'Whether it may be run again when nobody knows whether it ran to its end; default: as its type says',
  },
  max_visits: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    description: 'How often a way may pass here in one graph; default 100',
  },
  do: { ...BODY, description: 'What is done inside, by a node that has one body: a node, or a graph of nodes' },
  bodies: bodies('The same, by name, of a node that has several'),
}

/** Keys of a graph. */
const GRAPH_PROPERTIES: Properties = {
  description: text('What it is for'),
  start: text('The first node; default: the one that is written first'),
  nodes: { type: 'object', additionalProperties: { type: 'object' }, minProperties: 1, description: 'The nodes, by name' },
  result: { description: 'What it answers, with expressions in it; absent: the output of its last node' },
  budget: BUDGET,
}

/** Keys of a workflow. */
const WORKFLOW_PROPERTIES: Properties = {
  name: {
    type: 'string',
    pattern: WORKFLOW_NAME,
    patternHint: 'must be small letters, digits, _ and -, at most 64',
    description: 'What it is called',
  },
  version: text('Its version, in words of its own'),
  ...GRAPH_PROPERTIES,
  inputs: { type: 'object', description: 'JSON Schema of the input: of an object' },
  parameters: {
    type: 'object',
    additionalProperties: { type: ['object', 'boolean'] },
    description: 'JSON Schemas of parameters, by name; one without `default` has to be given',
  },
  outputs: { type: ['object', 'boolean'], description: 'JSON Schema of the result' },
  secrets: {
    type: 'array',
    items: { type: 'string' },
    uniqueItems: true,
    description: 'Names of the secrets it uses, as `workflows.secrets` has them',
  },
  concurrency: count(1, 'So many runs of it work at a time; others wait'),
  timeout: duration('How long a run may work, waiting for people, events and time aside'),
}

export const WORKFLOW_SHAPE = schema(closed(WORKFLOW_PROPERTIES, { required: ['name', 'nodes'] }))
export const GRAPH_SHAPE = schema(closed(GRAPH_PROPERTIES, { required: ['nodes'] }))
/** Of a node whose type is not known: its settings are not either. */
export const NODE_SHAPE = schema({ type: 'object', properties: NODE_PROPERTIES, required: ['type'] })

const shapes = new WeakMap<WorkflowNode, Schema>()

/** What a node of a type looks like. */
export function nodeShape(type: WorkflowNode): Schema {
  const made = shapes.get(type) ?? schema(nodeSchema(type))
  shapes.set(type, made)
  return made
}

/** The settings of a type, by name. */
export const settingsOfType = ({ settings }: WorkflowNode): Properties =>
  typeof settings === 'object' && isTree(settings.properties) ? (settings.properties as Properties) : {}

function nodeSchema(type: WorkflowNode): JsonSchema & object {
  const settings = typeof type.settings === 'object' ? type.settings : {}
  const required = Array.isArray(settings.required) ? (settings.required as string[]) : []
  return {
    ...settings,
    type: 'object',
    properties: { ...NODE_PROPERTIES, ...settingsOfType(type) },
    required: ['type', ...required],
  }
}

const TEMPLATE = { type: 'string', pattern: String.raw`\$\{\{` }
const ANY_BODY = { anyOf: [{ $ref: '#/$defs/graph' }, { $ref: '#/$defs/node' }] }
const bodyAs = (key: 'compensate' | 'do') => ({
  ...ANY_BODY,
  description: (NODE_PROPERTIES[key] as JsonSchema & object).description,
})

/** A JSON Schema of whole definitions with these types of nodes, for editors. What only `svc workflows validate` sees is not in it: names, ways, expressions. */
export function workflowSchema(types: Iterable<readonly [string, WorkflowNode]>): JsonSchema {
  const nodes = [...types].map(([name, type]) => [name, nodeOf(name, type)] as const)
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...graph({ ...WORKFLOW_PROPERTIES }, ['name', 'nodes']),
    $defs: {
      graph: graph(GRAPH_PROPERTIES, ['nodes']),
      node: {
        type: 'object',
        required: ['type'],
        properties: { type: { enum: nodes.map(([name]) => name) } },
        allOf: nodes.map(([name, node]) =>
          Object.fromEntries([
            ['if', { properties: { type: { const: name } }, required: ['type'] }],
            // oxlint-disable-next-line unicorn/no-thenable -- a word of JSON Schema
            ['then', node],
          ])
        ),
      },
    },
  }
}

const graph = (properties: object, required: readonly string[]) => ({
  type: 'object',
  required,
  additionalProperties: false,
  properties: {
    ...properties,
    nodes: {
      ...(GRAPH_PROPERTIES.nodes as object),
      propertyNames: { pattern: NODE_NAME },
      additionalProperties: { $ref: '#/$defs/node' },
    },
  },
})

function nodeOf(name: string, type: WorkflowNode): object {
  const settings = Object.entries(settingsOfType(type)).map(([key, json]) => [key, { anyOf: [json, TEMPLATE] }])
  return {
    ...nodeSchema(type),
    properties: {
      ...NODE_PROPERTIES,
      type: { const: name, description: type.description },
      compensate: bodyAs('compensate'),
      do: bodyAs('do'),
      bodies: { ...(NODE_PROPERTIES.bodies as object), additionalProperties: ANY_BODY },
      ...Object.fromEntries(settings),
    },
  }
}
