import { isTree } from '@svc/core'
import type { Graph } from '@svc/core/contracts'
import { checkTemplates } from './check-node.ts'
import { type DefinitionCheck, outputOf } from './check.ts'
import { schemaProblems, type ValueSchema } from './schemas.ts'
import { NODE_NAME } from './shape.ts'

type Tree = Readonly<Record<string, unknown>>

/** The state of a run, as queries see it. */
const STATE = {
  type: 'object',
  properties: {
    status: { type: 'string' },
    current_node: {},
    completed_nodes: { type: 'array', items: { type: 'string' } },
    waiting: { type: 'array' },
  },
  additionalProperties: false,
} as const

/** Checks the schemas of the events that a definition accepts. */
export function checkSignals({ notes }: DefinitionCheck, { signals }: Tree): void {
  for (const [name, json] of isTree(signals) ? Object.entries(signals) : [])
    for (const { keys, message, hint } of schemaProblems(json)) notes.add(['signals', name, ...keys], message, hint)
}

/** Keys that would make a query do something. */
const DOING = ['type', 'nodes', 'do', 'bodies', 'run', 'set']

/** Checks queries: they only have expressions, which cannot change anything, and no secrets. */
export function checkQueries(
  check: DefinitionCheck,
  definition: Tree,
  graph: Graph,
  vars: ReadonlyMap<string, ValueSchema>
): void {
  const { queries } = definition
  const seen = new Map<string, ValueSchema>([...vars, ['steps', { type: 'object' }], ['state', STATE]])
  seen.delete('secrets')
  const names = {
    vars: seen,
    node: (name: string) =>
      Object.hasOwn(graph.nodes, name)
        ? { known: outputOf(check.context, graph.nodes[name]?.type) }
        : { message: `node "${name}" does not exist`, hint: 'Write a node of the outermost graph, or steps["<step>"]' },
    hintOf: (name: string) =>
      name === 'secrets' ? 'A query cannot read secrets' : `Use one of: ${[...seen.keys(), 'nodes'].join(', ')}`,
  }
  for (const [name, query] of isTree(queries) ? Object.entries(queries) : []) {
    const keys = ['queries', name]
    if (!NAMES.test(name))
      check.notes.add(keys, `"${name}" is not a valid name`, 'Use letters, digits and _, not starting with a digit')
    if (!isTree(query)) continue
    for (const key of DOING)
      if (Object.hasOwn(query, key))
        check.notes.add(
          [...keys, key],
          'would change the run, but a query only reads',
          'Write value with expressions, or a node of the graph'
        )
    checkTemplates(check, query.value, [...keys, 'value'], names)
  }
}

const NAMES = new RegExp(NODE_NAME)
