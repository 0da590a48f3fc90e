import { type CallContext, codeOf, type JsonSchema, messageOf } from '@svc/core'
import type { Json, RunInterface, WorkflowDefinition } from '@svc/core/contracts'
import { template } from '@svc/workflow-lang'
import { invalid, notAllowed } from './errors.ts'
import { nodeOf, UNDO } from './history.ts'
import type { Loader } from './loader.ts'
import type { RunReader } from './run-reader.ts'
import type { RunRecord } from './space.ts'
import { checkData } from './values.ts'
import { runOf } from './views.ts'

interface RunInterfaceOptions {
  readonly loader: Loader
  readonly reading: RunReader
}

/** What a definition lets callers send to its runs and read of them. */
export class RunInterfaces {
  readonly #options: RunInterfaceOptions

  constructor(options: RunInterfaceOptions) {
    this.#options = options
  }

  async of(id: string, ctx: CallContext): Promise<RunInterface> {
    const record = await this.#options.reading.record(id, ctx)
    const { queries = {} } = await this.#definition(record, ctx)
    const signals = await this.#signals(record, ctx)
    const named = Object.entries(queries).map(
      ([name, { description }]) => [name, description === undefined ? {} : { description }] as const
    )
    return { ...(signals ? { signals } : {}), queries: Object.fromEntries(named) }
  }

  /** Evaluates a query over the log of a run. The log has no secrets. */
  async query(id: string, name: string, ctx: CallContext): Promise<Json> {
    const { loader, reading } = this.#options
    const record = await reading.record(id, ctx)
    const { queries = {} } = await this.#definition(record, ctx)
    const query = Object.hasOwn(queries, name) ? queries[name] : undefined
    if (!query) throw notAllowed('query', 'is not a query of its workflow', Object.keys(queries), { value: name.slice(0, 100) })
    const history = await loader.history(id, ctx)
    const { status, currentNode = null, completedNodes, waiting } = runOf(id, record, history)
    const done = [...history.steps].flatMap(([step, { last }]) =>
      last.t === 'done' && !step.startsWith(UNDO) ? [[step, last] as const] : []
    )
    // of a node with several visits, the latest output
    const outermost = done.filter(([step]) => !step.includes('/')).toSorted(([, a], [, b]) => a.at - b.at)
    const value = template(query.value)
    const scope = {
      input: record.input,
      parameters: record.parameters,
      run: { id, workflow: record.workflow, started_at: new Date(record.createdAt).toISOString() },
      nodes: Object.fromEntries(outermost.map(([step, { out }]) => [nodeOf(step), out])),
      steps: Object.fromEntries(done.map(([step, { out }]) => [step, out])),
      state: {
        status,
        current_node: currentNode,
        completed_nodes: [...completedNodes],
        waiting: waiting.map(({ step, node, event = null }) => ({ step, node, event })),
      },
    }
    try {
      return value(scope)
    } catch (error) {
      if (codeOf(error) !== 'EXPRESSION_FAILED') throw error
      throw invalid('query', `has no value now: ${messageOf(error)}`, { value: name })
    }
  }

  /** The data of an event with the defaults of its schema. Throws INVALID_VALUE. */
  async checked(record: RunRecord, name: string, data: Json, ctx: CallContext): Promise<Json> {
    const signals = await this.#signals(record, ctx)
    if (!signals) return data
    const schema = Object.hasOwn(signals, name) ? signals[name] : undefined
    if (schema === undefined)
      throw notAllowed('name', 'is not an event of its workflow', Object.keys(signals), { value: name.slice(0, 100) })
    return checkData(schema, data)
  }

  /** The events of a run: those of its workflow, and of its subworkflows. Undefined if its workflow declares none. */
  async #signals({ workflow, definitions }: RunRecord, ctx: CallContext) {
    const own = (await this.#options.loader.text(definitions[workflow]!, ctx)).signals
    if (!own) return undefined
    const others = Object.entries(definitions).filter(([name]) => name !== workflow)
    const inner = await Promise.all(others.map(async ([, digest]) => (await this.#options.loader.text(digest, ctx)).signals))
    return Object.assign({}, ...inner, own) as Readonly<Record<string, JsonSchema>>
  }

  #definition({ workflow, definitions }: RunRecord, ctx: CallContext): Promise<WorkflowDefinition> {
    return this.#options.loader.text(definitions[workflow]!, ctx)
  }
}
