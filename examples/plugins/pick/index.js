import { definePlugin } from '@svc/core'
import { WorkflowNodes } from '@svc/core/contracts'

/** @type {import('@svc/core/contracts').WorkflowNode} */
const pick = {
  description: 'Returns a member of each item of a list.',
  settings: {
    type: 'object',
    properties: {
      items: { type: 'array', items: { type: 'object' }, description: 'The list.' },
      key: { type: 'string', minLength: 1, description: 'Name of the member.' },
    },
    required: ['items', 'key'],
    additionalProperties: false,
  },
  output: { type: 'array' },
  // The task is deterministic, so the engine can repeat it after a crash.
  repeatable: true,
  async *run({ settings }) {
    // The engine has checked them against the schema above.
    const { items, key } = /** @type {{ items: readonly Record<string, unknown>[], key: string }} */ (settings)
    yield { type: 'output', output: items.map(item => (Object.hasOwn(item, key) ? item[key] : null)) }
  },
}

export default definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'pick', pick)
  },
})
