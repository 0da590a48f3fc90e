import { definePlugin } from '@svc/core'
import { WorkflowNodes } from '@svc/core/contracts'
import { sampleWord } from './node.ts'

export default definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'sample_word', sampleWord)
  },
})
