import type { ChildOutcome, Json, NodeStep, TeamBudget, Teams, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { invalid, loopEndless, missingService, raised } from './errors.ts'

/** The output of the only child of a node. Throws the error of a failed child. */
function outputOf(outcome: ChildOutcome | undefined): Json {
  if (outcome?.status === 'failed') throw raised(outcome.error)
  return outcome?.status === 'completed' ? outcome.output : null
}

const WIDTH = 8

/** The node type `map`, which runs its body for each item of a list. */
export const map: WorkflowNode = {
  description:
    'Runs its body for each item of a list, with limited concurrency. The body has `item` and `index`. Returns the list of outputs.',
  settings: objectOf(
    {
      over: { expression: 'list', description: 'List of items' },
      width: { type: 'integer', minimum: 1, default: WIDTH, description: 'Maximum number of concurrent items' },
      keep_going: { type: 'boolean', default: false, description: 'Continue after a failed item; its output is null' },
    },
    ['width', 'keep_going']
  ),
  output: { type: 'array', description: 'Outputs in the order of the items' },
  body: 'do',
  vars: { item: true, index: { type: 'integer' } },
  repeatable: true,
  async *run({ settings, children }) {
    const { over, width = WIDTH, keep_going: keepGoing = false } = settings
    if (!Array.isArray(over)) throw invalid('over', 'must be a list')
    if (children || over.length === 0) yield { type: 'output', output: mapOutputs(children ?? {}, keepGoing === true) }
    else yield mapFork(over, width as number, keepGoing === true)
  },
}

const mapFork = (items: readonly Json[], width: number, keepGoing: boolean): NodeStep => ({
  type: 'fork',
  join: 'all',
  failFast: !keepGoing,
  width,
  children: items.map((item, index) => ({ key: String(index), body: 'do', vars: { item, index } })),
})

/** The outputs in the order of the list. */
function mapOutputs(children: Readonly<Record<string, ChildOutcome>>, keepGoing: boolean): Json {
  const outcomes = Object.values(children)
  // the first failure has ended the other children
  const failed = keepGoing ? undefined : outcomes.find(({ status }) => status === 'failed')
  if (failed) return outputOf(failed)
  return outcomes.map(outcome => (outcome.status === 'completed' ? outcome.output : null))
}

const MAX = 10

/** The node type `loop`, which repeats its body until an expression is true. */
export const loop: WorkflowNode = {
  description: 'Repeats its body until an expression is true. The body has `index` (from 0) and `last`, its previous output.',
  settings: objectOf(
    {
      until: {
        type: 'string',
        minLength: 1,
        expression: 'bool',
        late: true,
        description: 'Evaluated after each round; `last` is the output of the body',
      },
      max: { type: 'integer', minimum: 1, maximum: 10_000, default: MAX, description: 'Maximum number of rounds' },
      at_max: { enum: ['fail', 'end'], default: 'fail', description: 'What happens after the last round' },
    },
    ['max', 'at_max']
  ),
  output: objectOf({
    last: { description: 'Last output of the body' },
    rounds: { type: 'integer', description: 'Number of rounds' },
    done: { type: 'boolean', description: 'False if it ended at `max`' },
  }),
  body: 'do',
  vars: { index: { type: 'integer' }, last: true },
  repeatable: true,
  async *run({ settings, state, children, node }) {
    if (!children) return yield loopFork(0, null)
    const index = (state as unknown as { readonly index: number }).index
    const last = outputOf(children[index])
    const { until, max = MAX, at_max: atMax = 'fail' } = settings
    const rounds = index + 1
    if (until !== true && rounds < (max as number)) yield loopFork(rounds, last)
    else if (until !== true && atMax === 'fail') throw loopEndless(node, max as number)
    else yield { type: 'output', output: { last, rounds, done: until === true } }
  },
}

const loopFork = (index: number, last: Json): NodeStep => ({
  type: 'fork',
  join: 'all',
  children: [{ key: String(index), body: 'do', vars: { index, last } }],
  state: { index },
})

type Join = 'all' | 'any' | 'first'

/** The node type `parallel`, which runs several bodies at once. */
export const parallel: WorkflowNode = {
  description:
    'Runs its bodies at once: until all complete (all), one completes (any), or one ends (first). Returns the outputs by the names of the bodies.',
  settings: objectOf(
    {
      join: { enum: ['all', 'any', 'first'], default: 'all', description: 'When the node ends' },
      width: { type: 'integer', minimum: 1, description: 'Maximum number of concurrent bodies; default: all' },
    },
    ['join', 'width']
  ),
  output: { type: 'object', description: 'Outputs of the completed bodies, by name' },
  body: 'bodies',
  repeatable: true,
  async *run({ settings, bodies, children }) {
    const join = (settings.join ?? 'all') as Join
    const width = settings.width === undefined ? {} : { width: settings.width as number }
    if (children) yield { type: 'output', output: joined(children, join) }
    else
      yield { type: 'fork', join, failFast: join === 'all', ...width, children: bodies.map(name => ({ key: name, body: name })) }
  },
}

/** The outputs by name. Throws the error of a body that was needed. */
function joined(children: Readonly<Record<string, ChildOutcome>>, join: Join): Json {
  const ended = Object.entries(children)
  const done = ended.flatMap(([name, entry]) => (entry.status === 'completed' ? [[name, entry.output] as const] : []))
  const failure = ended.map(([, entry]) => entry).find(item => item.status === 'failed')
  if (failure && (join === 'all' || done.length === 0)) throw raised(failure.error)
  return Object.fromEntries(done)
}

/** The node type `subworkflow`, which runs another workflow. */
export const subworkflow: WorkflowNode = {
  description: 'Runs another workflow, as it was when the run started. Returns its result.',
  settings: objectOf(
    {
      workflow: { type: 'string', minLength: 1, description: 'Name of the workflow; not an expression' },
      input: { type: 'object', default: {}, description: 'Input of the workflow' },
      parameters: { type: 'object', default: {}, description: 'Parameters of the workflow' },
    },
    ['input', 'parameters']
  ),
  names: { workflow: 'workflow' },
  calledWith: { input: 'workflow', parameters: 'workflow' },
  repeatable: true,
  async *run({ settings, children }) {
    const { workflow, input = {}, parameters = {} } = settings
    if (children) yield { type: 'output', output: outputOf(children.run) }
    else
      yield { type: 'fork', join: 'all', children: [{ key: 'run', body: { workflow: workflow as string, input, parameters } }] }
  },
}

/** Creates the node type `team`, which gives a task to a team. */
export const createTeam = (teams: Teams | undefined): WorkflowNode => ({
  description: 'Gives a task to a team. Returns the result of the team.',
  settings: objectOf(
    {
      team: { type: 'string', minLength: 1, description: 'Name of the team' },
      task: { description: 'Task of the team: a text, or data' },
      budget: {
        type: 'object',
        description:
          'Budget of this work: tokens, tool_calls, cost, time, rounds; the stricter of this and that of the team holds',
      },
    },
    ['budget']
  ),
  names: { team: 'team' },
  repeatable: true,
  async *run({ settings, children }, ctx) {
    if (children) return yield { type: 'output', output: outputOf(children.team) }
    if (!teams) throw missingService('team', 'teams', '@svc/plugin-teams')
    const { team, task = null, budget } = settings
    const limit = budget === undefined ? {} : { budget: budget as TeamBudget }
    const body = await teams.body({ team: team as string, task, ...limit }, ctx)
    yield { type: 'fork', join: 'all', children: [{ key: 'team', body }] }
  },
})
