import { definePlugin, type CallContext } from '@svc/core'
import { Chat, ModelCalls, Http } from '@svc/core/contracts'

/** Tells the log whose work it is that hooks are called for. */
export default definePlugin({
  setup(scope) {
    const saw = (hook: string, { principal, requestId }: CallContext) =>
      scope.log.info({ hook, witnessed: principal.id, of: requestId }, 'seen')
    scope.tap(Http.hooks.done, (_done, ctx) => saw('http.done', ctx))
    scope.tap(Chat.hooks.turn, (turn, ctx) => {
      saw('chat.turn', ctx)
      return turn
    })
    scope.tap(ModelCalls.hooks.modelDone, (_done, ctx) => saw('model_calls.modelDone', ctx))
    scope.tap(Chat.hooks.toolCall, (_call, ctx) => {
      saw('chat.toolCall', ctx)
      return undefined
    })
    scope.tap(Chat.hooks.end, (_end, ctx) => saw('chat.end', ctx))
  },
})
