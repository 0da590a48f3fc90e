import { definePlugin } from '@svc/core'
import { ConsolePages, Routes } from '@svc/core/contracts'
import { sampleWordGreeting } from './greeting.ts'

export default definePlugin({
  setup(scope) {
    scope.add(ConsolePages, 'sample_word', { title: 'SampleWord', scope: 'read', view: 'sample-word.json' })
    scope.add(Routes, 'sample_word_greeting', sampleWordGreeting)
  },
})
