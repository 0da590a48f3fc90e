import { definePlugin } from '@svc/core'
import { type WorkflowDefinition, WorkflowDefinitions } from '@svc/core/contracts'

const WORKFLOWS: readonly WorkflowDefinition[] = [
  {
    name: 'sum',
    description: 'Adds',
    inputs: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] },
    parameters: { by: { type: 'integer', default: 1 } },
    nodes: { add: { type: 'transform', value: { sum: '${{ input.a + parameters.by }}' } } },
  },
  {
    name: 'ask',
    nodes: {
      may: { type: 'human', message: 'Shall it go on?', next: 'done' },
      done: { type: 'transform', value: { answer: '${{ nodes.may.answer }}' } },
    },
  },
  {
    name: 'listen',
    nodes: {
      paid: { type: 'wait', event: 'paid', next: 'done' },
      done: { type: 'transform', value: { euro: '${{ nodes.paid.data.euro }}' } },
    },
  },
  {
    name: 'fail',
    nodes: { one: { type: 'transform', value: 1, next: 'two' }, two: { type: 'transform', value: '${{ input.none.such }}' } },
  },
]

/** Workflows that end at once, wait for a person or an event, or fail. */
export default definePlugin({
  setup(scope) {
    for (const workflowDefinition of WORKFLOWS) scope.add(WorkflowDefinitions, workflowDefinition.name, workflowDefinition)
  },
})
