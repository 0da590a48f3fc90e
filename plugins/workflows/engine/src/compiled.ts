import type { SlotView } from '@svc/core'
import type {
  Budget,
  Body,
  Graph,
  Json,
  NodeDefinition,
  RetryPolicy,
  WorkflowDefinition,
  WorkflowNode,
} from '@svc/core/contracts'
import { bodiesOf, durationMs, END, expression, graphOf, settingsOf, startOf, type Template, template } from '@svc/workflow-lang'

/** When and how often a node is retried. */
export interface Retry {
  readonly attempts: number
  readonly delayMs: number
  readonly factor: number
  readonly maxDelayMs: number
  readonly on: readonly string[] | undefined
}

/** A compiled node. */
export interface CompiledNode {
  readonly name: string
  readonly type: string
  /** Settings that are evaluated before each call. `late` are those that use the results of children. */
  readonly settings: Template
  readonly late: Template | undefined
  readonly next: string
  readonly branches: Readonly<Record<string, string>> | undefined
  readonly retry: Retry | undefined
  readonly timeoutMs: number | undefined
  readonly catch: string | undefined
  readonly compensate: CompiledGraph | undefined
  readonly repeatable: boolean | undefined
  readonly maxVisits: number
  readonly bodies: Readonly<Record<string, CompiledGraph>>
  readonly bodyNames: readonly string[]
  readonly branchNames: readonly string[]
}

/** A compiled graph. */
export interface CompiledGraph {
  readonly start: string
  readonly nodes: Readonly<Record<string, CompiledNode>>
  readonly result: Template | undefined
  readonly budget: Budget | undefined
}

const MAX_VISITS = 100
const [FACTOR, DELAY_MS, MAX_DELAY_MS] = [2, 1_000, 60_000]

/** Compiles a definition that was already checked. */
export function compile(types: SlotView<WorkflowNode>, definition: WorkflowDefinition): CompiledGraph {
  return compileGraph(types, definition)
}

/** Compiles a body that a node creates at run time. Throws EXPRESSION_INVALID. */
export const compileBody = (types: SlotView<WorkflowNode>, body: Body): CompiledGraph => compileGraph(types, graphOf(body))

function compileGraph(types: SlotView<WorkflowNode>, graph: Graph): CompiledGraph {
  const nodes = Object.entries(graph.nodes).map(([name, node]) => [name, compileNode(types, name, node)] as const)
  return {
    start: startOf(graph),
    nodes: Object.fromEntries(nodes),
    result: graph.result === undefined ? undefined : template(graph.result),
    budget: graph.budget,
  }
}

function compileNode(types: SlotView<WorkflowNode>, name: string, node: NodeDefinition): CompiledNode {
  const { early, late } = templatesOf(types.get(node.type), settingsOf(node))
  const bodies = Object.entries(bodiesOf(node)).map(([key, body]) => [key, compileBody(types, body)] as const)
  return {
    name,
    type: node.type,
    settings: early,
    late,
    next: node.next ?? END,
    branches: node.branches,
    retry: node.retry && retryOf(node.retry),
    timeoutMs: node.timeout === undefined ? undefined : durationMs(node.timeout),
    catch: node.catch,
    compensate: node.compensate && compileBody(types, node.compensate),
    repeatable: node.repeatable,
    maxVisits: node.max_visits ?? MAX_VISITS,
    bodies: Object.fromEntries(bodies),
    bodyNames: bodies.map(([key]) => key),
    branchNames: Object.keys(node.branches ?? {}),
  }
}

const retryOf = ({ attempts, delay, factor = FACTOR, max_delay, on }: RetryPolicy): Retry => ({
  attempts,
  delayMs: (delay === undefined ? undefined : durationMs(delay)) ?? DELAY_MS,
  factor,
  maxDelayMs: (max_delay === undefined ? undefined : durationMs(max_delay)) ?? MAX_DELAY_MS,
  on,
})

/** The keywords by which the schema of a setting marks an expression. */
interface SettingSchema {
  readonly expression?: string
  readonly late?: boolean
}

function templatesOf(type: WorkflowNode | undefined, settings: Readonly<Record<string, unknown>>) {
  const schema = type?.settings
  const properties = ((typeof schema === 'object' && schema.properties) || {}) as Readonly<
    Record<string, SettingSchema | undefined>
  >
  const entries = Object.entries(settings).map(([key, value]) => ({
    key,
    late: properties[key]?.late === true,
    part: properties[key]?.expression !== undefined && typeof value === 'string' ? expression(value) : template(value),
  }))
  const lates = entries.filter(entry => entry.late)
  return { early: objectOf(entries.filter(entry => !entry.late)), late: lates.length > 0 ? objectOf(lates) : undefined }
}

function objectOf(parts: readonly { readonly key: string; readonly part: Template }[]): Template {
  return scope => {
    const made: Record<string, Json> = {}
    for (const { key, part } of parts) made[key] = part(scope)
    return made
  }
}
