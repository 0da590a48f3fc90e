import { definePlugin } from '@svc/core'
import { Chat } from '@svc/core/contracts'
import { sampleWord } from './hook.ts'

export default definePlugin({
  setup(scope) {
    scope.tap(Chat.hooks.toolCall, call => sampleWord(call))
  },
})
