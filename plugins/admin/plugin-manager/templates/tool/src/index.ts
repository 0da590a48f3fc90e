import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { CONFIG, createSampleWord } from './tool.ts'

export default definePlugin({
  section: 'tools.sample_word',
  config: CONFIG,
  setup(scope) {
    scope.add(Tools, 'sample_word', createSampleWord(scope.config))
  },
})
