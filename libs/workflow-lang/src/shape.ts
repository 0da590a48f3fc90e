import { isTree, type JsonSchema, type Schema, schema } from '@svc/core'
import type { WorkflowNode } from '@svc/core/contracts'
import { DURATION_PATTERN } from './graph.ts'

type Properties = Readonly<Record<string, JsonSchema>>

/** Node names that expressions can use after `nodes.`. */
export const NODE_NAME = '^(?!(?:__proto__|constructor|prototype)$)[A-Za-z_][A-Za-z0-9_]{0,63}$'
/** Names of events. */
const EVENT_NAME = '^[A-Za-z0-9_.:-]{1,100}$'
export const WORKFLOW_NAME = '^[a-z][a-z0-9_-]{0,63}$'

const duration = (description: string): JsonSchema => ({
  type: 'string',
  pattern: DURATION_PATTERN,
  patternHint: 'must be a duration such as 30s, 5m, 2h, 7d',
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
    attempts: { type: 'integer', minimum: 1, maximum: 100, description: 'Maximum number of attempts, including the first' },
    delay: duration('Delay before the second attempt; default 1s'),
    factor: { type: 'number', minimum: 1, description: 'Growth of the delay after each attempt; default 2' },
    max_delay: duration('Maximum delay; default 1m'),
    on: {
      type: 'array',
      items: { type: 'string' },
      description: 'Error codes to retry; default: all except those of an invalid definition or input',
    },
  },
  { required: ['attempts'], description: 'Retries after a failure' }
)

const BUDGET = closed(
  {
    tool_calls: count(0, 'Maximum tool calls'),
    tokens: count(0, 'Maximum tokens of input and output together'),
    cost: { type: 'number', minimum: 0, description: 'Maximum cost, in the currency of models.prices' },
  },
  { description: 'Budget of all nodes of the graph together; default: no limit' }
)

const BODY = { type: 'object', description: 'A node, or a graph of nodes' } as const
const bodies = (description: string): JsonSchema => ({
  type: 'object',
  additionalProperties: BODY,
  minProperties: 1,
  description,
})

/** Keys of every node. */
export const NODE_PROPERTIES: Properties = {
  type: text('Node type'),
  description: text('Purpose of the node'),
  next: text('Next node; without it, or with `end`, the path ends here'),
  branches: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Next node by branch; keys can be plain true and false',
  },
  retry: RETRY,
  timeout: duration('Time limit of an attempt'),
  catch: text('Next node after a failure; expressions from there on have `error`'),
  compensate: {
    ...BODY,
    description: 'A node or graph that undoes this node if the run fails later; its expressions have `output` and `error`',
  },
  repeatable: {
    type: 'boolean',
    description: 'Whether the node can run again after an interruption; default: as its type says',
  },
  max_visits: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    description: 'Maximum number of visits in a graph; default 100',
  },
  do: { ...BODY, description: 'The body of a node with a single body: a node, or a graph of nodes' },
  bodies: bodies('The bodies of a node with several bodies, by name'),
}

/** Keys of a graph. */
const GRAPH_PROPERTIES: Properties = {
  description: text('Purpose of the graph'),
  start: text('First node; default: the first in the file'),
  nodes: { type: 'object', additionalProperties: { type: 'object' }, minProperties: 1, description: 'Nodes by name' },
  result: { description: 'Result, which can contain expressions; default: the output of the last node' },
  budget: BUDGET,
}

const SCHEDULE = closed(
  {
    description: { type: 'string', maxLength: 500, description: 'Description shown in lists' },
    cron: { type: 'string', maxLength: 200, description: 'Cron expression with five or six fields, or `@daily`' },
    every: duration('Interval, at least 1s, in place of `cron`'),
    time_zone: text('IANA time zone of `cron`; default: `schedules.time_zone`'),
    jitter: duration('Each run starts up to this time after its tick'),
    catch_up: {
      enum: ['none', 'one', 'all'],
      description: 'Which missed ticks start a run when a server runs again; default none',
    },
    overlap: {
      enum: ['skip', 'queue', 'cancel', 'allow'],
      description: 'What to do at a tick while the earlier run has not ended; default skip',
    },
    input: { type: 'object', description: 'Input of the runs; default {}' },
    parameters: { type: 'object', description: 'Parameters of the runs; default {}' },
    owner: {
      type: 'string',
      pattern: '^(?!system$|plugin:)[A-Za-z0-9][A-Za-z0-9_.@:-]{0,127}$',
      patternHint: 'must be the id of a principal, not of svc or a plugin',
      description: 'Id of the principal that owns the runs; default `workflow:<name>`',
    },
  },
  { description: 'When svc starts runs: either `cron` or `every`' }
)

/** Keys of a workflow. */
const WORKFLOW_PROPERTIES: Properties = {
  name: {
    type: 'string',
    pattern: WORKFLOW_NAME,
    patternHint: 'must be at most 64 lower-case letters, digits, _ and -, and start with a letter',
    description: 'Name of the workflow',
  },
  version: text('Version, in any format'),
  ...GRAPH_PROPERTIES,
  inputs: { type: 'object', description: 'JSON Schema of the input, which is an object' },
  parameters: {
    type: 'object',
    additionalProperties: { type: ['object', 'boolean'] },
    description: 'JSON Schemas of parameters by name; a parameter without `default` is required',
  },
  outputs: { type: ['object', 'boolean'], description: 'JSON Schema of the result' },
  secrets: {
    type: 'array',
    items: { type: 'string' },
    uniqueItems: true,
    description: 'Names of used secrets, as in `workflows.secrets`',
  },
  concurrency: count(1, 'Maximum number of concurrent runs; others wait'),
  timeout: duration('Maximum working time of a run, without waits for people, events and time'),
  schedule: SCHEDULE,
  signals: {
    type: 'object',
    propertyNames: { pattern: EVENT_NAME },
    additionalProperties: { type: ['object', 'boolean'] },
    minProperties: 1,
    description: 'JSON Schemas of the data of events by name; with it, a run refuses other events',
  },
  queries: {
    type: 'object',
    additionalProperties: closed(
      { description: text('Purpose of the query'), value: { description: 'What it returns, with expressions' } },
      { required: ['value'] }
    ),
    minProperties: 1,
    description: 'What callers can read of a run, by name; expressions have `nodes`, `steps` and `state`',
  },
}

export const WORKFLOW_SHAPE = schema(closed(WORKFLOW_PROPERTIES, { required: ['name', 'nodes'] }))
export const GRAPH_SHAPE = schema(closed(GRAPH_PROPERTIES, { required: ['nodes'] }))
/** The shape of a node with an unknown type and settings. */
export const NODE_SHAPE = schema({ type: 'object', properties: NODE_PROPERTIES, required: ['type'] })

const shapes = new WeakMap<WorkflowNode, Schema>()

/** The compiled schema of a node of a type. */
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

/** A JSON Schema of definitions with these node types, for editors. It does not check names, edges and expressions; `svc workflows validate` does. */
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
