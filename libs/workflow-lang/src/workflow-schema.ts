import type { JsonSchema } from '@svc/core'
import type { WorkflowNode } from '@svc/core/contracts'
import { GRAPH_PROPERTIES, NODE_NAME, NODE_PROPERTIES, nodeSchema, settingsOfType, WORKFLOW_PROPERTIES } from './shape.ts'

const TEMPLATE = { type: 'string', pattern: String.raw`\$\{\{` }
const BODY = { anyOf: [{ $ref: '#/$defs/graph' }, { $ref: '#/$defs/node' }] }
const bodyAs = (key: 'compensate' | 'do') => ({ ...BODY, description: (NODE_PROPERTIES[key] as JsonSchema & object).description })

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
      bodies: { ...(NODE_PROPERTIES.bodies as object), additionalProperties: BODY },
      ...Object.fromEntries(settings),
    },
  }
}
