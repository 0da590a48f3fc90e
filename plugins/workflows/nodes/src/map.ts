import type { ChildOutcome, Json, NodeStep, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { outputOf } from './children.ts'
import { invalid } from './errors.ts'

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
    if (children || over.length === 0) yield { type: 'output', output: outputsOf(children ?? {}, keepGoing === true) }
    else yield forked(over, width as number, keepGoing === true)
  },
}

const forked = (items: readonly Json[], width: number, keepGoing: boolean): NodeStep => ({
  type: 'fork',
  join: 'all',
  failFast: !keepGoing,
  width,
  children: items.map((item, index) => ({ key: String(index), body: 'do', vars: { item, index } })),
})

/** In the order of the list. */
function outputsOf(children: Readonly<Record<string, ChildOutcome>>, keepGoing: boolean): Json {
  const outcomes = Object.values(children)
  // the one that failed first has ended the others
  const failed = keepGoing ? undefined : outcomes.find(({ status }) => status === 'failed')
  if (failed) return outputOf(failed)
  return outcomes.map(one => (one.status === 'completed' ? one.output : null))
}
