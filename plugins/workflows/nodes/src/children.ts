import type { ChildOutcome, Json, NodeStep, Teams, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { invalid, loopEndless, missingService, raised } from './errors.ts'

/** What the only child of a node answered. Throws its failure. */
function outputOf(outcome: ChildOutcome | undefined): Json {
  if (outcome?.status === 'failed') throw raised(outcome.error)
  return outcome?.status === 'completed' ? outcome.output : null
}

const WIDTH = 8

/** Does the same with each item of a list. */
export const map: WorkflowNode = {
  description:
    'Runs its body for each item of a list, so many at a time. The body has `item` and `index`. It answers the list of outputs.',
  settings: objectOf(
    {
      over: { expression: 'list', description: 'The list' },
      width: { type: 'integer', minimum: 1, default: WIDTH, description: 'So many at a time' },
      keep_going: { type: 'boolean', default: false, description: 'Goes on when one fails; the answer has null for it' },
    },
    ['width', 'keep_going']
  ),
  output: { type: 'array', description: 'The output for each item, in its order' },
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

/** In the order of the list. */
function mapOutputs(children: Readonly<Record<string, ChildOutcome>>, keepGoing: boolean): Json {
  const outcomes = Object.values(children)
  // the one that failed first has ended the others
  const failed = keepGoing ? undefined : outcomes.find(({ status }) => status === 'failed')
  if (failed) return outputOf(failed)
  return outcomes.map(one => (one.status === 'completed' ? one.output : null))
}

const MAX = 10

/** Does the same again until an expression holds. */
export const loop: WorkflowNode = {
  description:
    'Runs its body again and again until an expression holds. The body has `index` (from 0) and `last`, its output of the time before.',
  settings: objectOf(
    {
      until: {
        type: 'string',
        minLength: 1,
        expression: 'bool',
        late: true,
        description: 'Asked after each time; it has `last`, what the body answered',
      },
      max: { type: 'integer', minimum: 1, maximum: 10_000, default: MAX, description: 'So many times at most' },
      at_max: { enum: ['fail', 'end'], default: 'fail', description: 'What it does after so many' },
    },
    ['max', 'at_max']
  ),
  output: objectOf({
    last: { description: 'The last output of the body' },
    rounds: { type: 'integer', description: 'How often it has run' },
    done: { type: 'boolean', description: 'False where it has ended at `max`' },
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

/** Does several things at once. */
export const parallel: WorkflowNode = {
  description:
    'Runs its bodies at once: all of them, until one completes (any), or until one ends (first). It answers the outputs by the names of the bodies.',
  settings: objectOf(
    {
      join: { enum: ['all', 'any', 'first'], default: 'all', description: 'What it waits for' },
      width: { type: 'integer', minimum: 1, description: 'So many at a time; default all' },
    },
    ['join', 'width']
  ),
  output: { type: 'object', description: 'The output of each body that completed, by its name' },
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

/** The outputs by name. Throws what failed, where that was needed. */
function joined(children: Readonly<Record<string, ChildOutcome>>, join: Join): Json {
  const ended = Object.entries(children)
  const done = ended.flatMap(([name, one]) => (one.status === 'completed' ? [[name, one.output] as const] : []))
  const failure = ended.map(([, one]) => one).find(one => one.status === 'failed')
  if (failure && (join === 'all' || done.length === 0)) throw raised(failure.error)
  return Object.fromEntries(done)
}

/** Runs another workflow. */
export const subworkflow: WorkflowNode = {
  description: 'Runs another workflow, as it was when the run began. It answers its result.',
  settings: objectOf(
    {
      workflow: { type: 'string', minLength: 1, description: 'Its name; no expression' },
      input: { type: 'object', default: {}, description: 'Its input' },
      parameters: { type: 'object', default: {}, description: 'Its parameters' },
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

/** Makes the node that gives a task to a team. */
export const createTeam = (teams: Teams | undefined): WorkflowNode => ({
  description: 'Gives a task to a team. It answers what the team made of it.',
  settings: objectOf({
    team: { type: 'string', minLength: 1, description: 'The name of the team' },
    task: { description: 'What it is to do: a text, or data' },
  }),
  names: { team: 'team' },
  repeatable: true,
  async *run({ settings, children }, ctx) {
    if (children) return yield { type: 'output', output: outputOf(children.team) }
    if (!teams) throw missingService('team', 'teams', '@svc/plugin-teams')
    const body = await teams.body(settings.team as string, settings.task ?? null, ctx)
    yield { type: 'fork', join: 'all', children: [{ key: 'team', body }] }
  },
})
