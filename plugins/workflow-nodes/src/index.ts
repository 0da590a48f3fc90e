import { definePlugin } from '@svc/core'
import { WorkflowNodes } from '@svc/core/contracts'
import { condition } from './condition.ts'
import { map } from './map.ts'
import { parallel } from './parallel.ts'
import { transform } from './transform.ts'

export default definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'condition', condition)
    scope.add(WorkflowNodes, 'map', map)
    scope.add(WorkflowNodes, 'parallel', parallel)
    scope.add(WorkflowNodes, 'transform', transform)
  },
})
