import { definePlugin } from '@svc/core'
import { Chat, type ToolVerdict } from '@svc/core/contracts'

/** Asks a person before `calculate` runs. */
export default definePlugin({
  setup(scope) {
    scope.tap(Chat.hooks.toolCall, (call): ToolVerdict | undefined =>
      call.tool === 'calculate' ? { verdict: 'ask', question: 'May this be calculated?' } : undefined
    )
  },
})
