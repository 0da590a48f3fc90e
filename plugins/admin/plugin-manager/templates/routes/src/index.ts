import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
import { sampleWord } from './route.ts'

export default definePlugin({
  setup(scope) {
    scope.add(Routes, 'sample_word', sampleWord)
  },
})
