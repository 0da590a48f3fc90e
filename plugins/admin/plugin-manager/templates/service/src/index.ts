import { definePlugin } from '@svc/core'
import { createSampleWord, SampleWord } from './service.ts'

export default definePlugin({
  provides: SampleWord,
  setup() {
    return createSampleWord()
  },
})
