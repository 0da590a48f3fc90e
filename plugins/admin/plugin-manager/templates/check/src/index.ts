import { definePlugin } from '@svc/core'
import { Checks } from '@svc/core/contracts'
import { createSampleWord } from './check.ts'

export default definePlugin({
  setup(scope) {
    scope.add(Checks, 'sample_word', createSampleWord())
  },
})
