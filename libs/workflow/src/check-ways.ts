import { isTree, nearest } from '@svc/core'
import type { WorkflowNode } from '@svc/core/contracts'
import type { Check, Keys } from './check.ts'
import type { Standing } from './check-node.ts'
import { END } from './graph.ts'
import type { Place } from './places.ts'
import { NODE_NAME } from './shape.ts'

const NAMES = new RegExp(NODE_NAME)

/** Names of nodes, where the graph starts, and what no way leads to. */
export function checkGraphWays({ notes }: Check, place: Place, keys: Keys): void {
  const { graph, flow } = place
  for (const name of Object.keys(graph.nodes)) {
    const at = [...keys, 'nodes', name]
    if (!NAMES.test(name))
      notes.add(
        at,
        `"${name}" is no name for a node`,
        'write letters, digits and _, no digit first, and no name that objects have: so that expressions can name it'
      )
    else if (name === END) notes.add(at, '"end" cannot be the name of a node', 'it is what ends a way')
    else if (!flow.reached.has(name) && flow.reached.size > 0)
      notes.add(at, `no way leads to "${name}"`, 'name it in a next, a branch or a catch, or take it out')
  }
  if (graph.start !== undefined) checkTarget({ notes }, place, graph.start, [...keys, 'start'], false)
}

function checkTarget({ notes }: Pick<Check, 'notes'>, { graph, names }: Place, to: unknown, keys: Keys, mayEnd = true): void {
  if (typeof to !== 'string' || Object.hasOwn(graph.nodes, to) || (mayEnd && to === END)) return
  const near = nearest(to, mayEnd ? [...names, END] : names)
  notes.add(keys, `there is no node "${to}" in this graph`, near ? `did you mean "${near}"?` : undefined)
}

/** Where the ways from a node lead. */
export function checkWays(check: Check, type: WorkflowNode | undefined, { place, node, keys }: Standing): void {
  checkTarget(check, place, node.next, [...keys, 'next'])
  checkTarget(check, place, node.catch, [...keys, 'catch'])
  const branches = isTree(node.branches) ? node.branches : undefined
  for (const [branch, to] of Object.entries(branches ?? {})) checkTarget(check, place, to, [...keys, 'branches', branch])
  if (type) checkBranches(check, type, { node, keys, branches })
}

interface Branches {
  readonly node: Standing['node']
  readonly keys: Keys
  readonly branches: object | undefined
}

function checkBranches({ notes }: Check, type: WorkflowNode, { node, keys, branches }: Branches): void {
  const at = [...keys, 'branches']
  if (type.branches === undefined && branches) return notes.add(at, `a ${node.type} answers no branch`, 'write next')
  const { branches: answered } = type
  if (answered === undefined || answered === 'any') return
  for (const branch of Object.keys(branches ?? {})) {
    if (answered.includes(branch)) continue
    const near = nearest(branch, answered)
    notes.add(
      [...at, branch],
      `a ${node.type} never answers "${branch}"`,
      near ? `did you mean "${near}"?` : `it answers ${answered.join(', ')}`
    )
  }
  const missing = answered.filter(branch => !branches || !Object.hasOwn(branches, branch))
  // an end that is written is meant, but only where there are no branches beside it
  const goesOn = node.next !== undefined && (node.next !== END || !branches)
  if (missing.length > 0 && !goesOn) notes.add(at, `leads nowhere for ${missing.join(', ')}`, mendOf(missing))
}

const mendOf = (missing: readonly string[]) =>
  `write branches: { ${missing.map(branch => `${branch}: <node>`).join(', ')} }, with end where the way ends`
