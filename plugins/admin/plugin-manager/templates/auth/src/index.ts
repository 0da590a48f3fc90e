import { definePlugin } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
import { createSampleWord } from './scheme.ts'

export default definePlugin({
  setup(scope) {
    scope.add(AuthSchemes, 'sample_word', createSampleWord(process.env.SAMPLE_WORD_KEY ?? ''))
  },
})
