import { definePlugin, type Use } from '@svc/core'
import { Chat, Http } from '@svc/core/contracts'

/** Tells the log whose work it is that hooks are called for. */
export default definePlugin({
  setup(scope) {
    const saw = (hook: string, { principal, requestId }: Use) =>
      scope.log.info({ hook, witnessed: principal.id, of: requestId }, 'seen')
    scope.tap(Http.hooks.done, (_done, use) => saw('http.done', use))
    scope.tap(Chat.hooks.turn, (turn, use) => {
      saw('chat.turn', use)
      return turn
    })
    scope.tap(Chat.hooks.modelDone, (_done, use) => saw('chat.modelDone', use))
    scope.tap(Chat.hooks.toolCall, (_call, use) => {
      saw('chat.toolCall', use)
      return undefined
    })
    scope.tap(Chat.hooks.end, (_end, use) => saw('chat.end', use))
  },
})
