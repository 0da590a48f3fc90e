import { definePlugin } from '@svc/core'
import { Chat } from '@svc/core/contracts'

/** Asks a person before `calculate` runs. */
export default definePlugin({
  setup(scope) {
    scope.tap(Chat.hooks.toolCall, call =>
      call.tool === 'calculate' ? { verdict: 'ask', question: 'May this be calculated?' } : undefined
    )
  },
})
