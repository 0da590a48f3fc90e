import { isTree, nearest } from '@svc/core'
import type { NodeDefinition, WorkflowNode } from '@svc/core/contracts'
import type { Check, Keys } from './check.ts'
import type { Standing } from './check-node.ts'
import { END } from './graph.ts'
import type { Place } from './places.ts'
import { NODE_NAME } from './shape.ts'
import { holdsExpression } from './template.ts'

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
  const answered = answeredBy(type, node)
  if (!answered || (type.branches === 'any' && !branches)) return
  const { needed, all } = answered
  for (const branch of Object.keys(branches ?? {})) {
    if (all.includes(branch)) continue
    const near = nearest(branch, all)
    const hint = all.length === 0 ? 'write next' : `it answers ${all.join(', ')}`
    notes.add([...at, branch], `a ${node.type} never answers "${branch}"`, near ? `did you mean "${near}"?` : hint)
  }
  const missing = needed.filter(branch => !branches || !Object.hasOwn(branches, branch))
  // an end that is written is meant, but only where there are no branches beside it
  const goesOn = node.next !== undefined && (node.next !== END || !branches)
  if (missing.length > 0 && !goesOn) notes.add(at, `leads nowhere for ${missing.join(', ')}`, hintOf(missing))
}

interface Answered {
  readonly needed: readonly string[]
  readonly all: readonly string[]
}

/** The branches that a node answers with its settings; undefined where only its run knows. */
function answeredBy({ branches, answers = [] }: WorkflowNode, node: NodeDefinition): Answered | undefined {
  if (branches !== 'any') return branches && { needed: branches, all: branches }
  const decisive = answers.flatMap(({ having = {}, listed }) => [
    ...Object.keys(having),
    ...(listed === undefined ? [] : [listed]),
  ])
  if (decisive.some(key => holdsExpression(node[key]))) return undefined
  const rule = answers.find(({ given = [], having = {} }) => {
    const isGiven = given.every(key => node[key] !== undefined)
    return isGiven && Object.entries(having).every(([key, value]) => node[key] === value)
  })
  if (!rule) return undefined
  const listed = rule.listed === undefined ? [] : node[rule.listed]
  const needed = [...(rule.branches ?? []), ...(Array.isArray(listed) ? listed.map(String) : [])]
  return { needed, all: [...needed, ...(rule.optional ?? [])] }
}

const hintOf = (missing: readonly string[]) =>
  `write branches: { ${missing.map(branch => `${branch}: <node>`).join(', ')} }, with end where the way ends`
