import { definePlugin } from '@svc/core'
import { WorkflowNodes } from '@svc/core/contracts'
import { sla } from './sla.js'

export default definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'sla', sla)
  },
})
