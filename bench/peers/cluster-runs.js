import { definePlugin } from '@svc/core'
import { WorkflowDefinitions } from '@svc/core/contracts'

/** A workflow with one step, which does nothing. */
export default definePlugin({
  setup(scope) {
    scope.add(WorkflowDefinitions, 'one', { name: 'one', nodes: { only: { type: 'transform', value: 1 } } })
  },
})
