import type { ChildOutcome, Json, WorkflowNode } from '@svc/core/contracts'
import { raised } from './parallel.ts'

/** Does the same with each item of a list. */
export const map: WorkflowNode = {
  description: 'Runs its body for each item of a list, so many at a time. The body has `item` and `index`.',
  settings: {
    type: 'object',
    properties: {
      over: { expression: 'list', description: 'The list' },
      width: { type: 'integer', minimum: 1, default: 8, description: 'So many at a time' },
      keep_going: { type: 'boolean', default: false, description: 'Goes on when one fails; the answer has null for it' },
    },
    required: ['over'],
    additionalProperties: false,
  },
  output: { type: 'array', description: 'The output for each item, in its order' },
  body: 'do',
  repeatable: true,
  async *run({ settings, children }) {
    const keepGoing = settings.keep_going === true
    if (children) yield { type: 'output', output: Object.values(children).map(one => outputOf(one, keepGoing)) }
    else
      yield {
        type: 'fork',
        join: 'all',
        failFast: !keepGoing,
        width: (settings.width as number | undefined) ?? 8,
        children: (settings.over as Json[]).map((item, index) => ({ key: String(index), body: 'do', vars: { item, index } })),
      }
  },
}

function outputOf(outcome: ChildOutcome, keepGoing: boolean): Json {
  if (outcome.status === 'completed') return outcome.output
  if (outcome.status === 'failed' && !keepGoing) throw raised(outcome.error)
  return null
}
