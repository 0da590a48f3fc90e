import { definePlugin } from '@svc/core'

/** What turns the direction of text around, colours a terminal, sets its title, and ends a line early. */
export const ODD = 'pay\u202Egnp.exe\u2066 \u001B[31mred\u001B[0m \u001B]0;title\u0007 \u009B2J\u0008\u200E'

/** Logs it. */
export default definePlugin({
  setup(scope) {
    scope.log.warn({ field: ODD }, `an odd line ${ODD}`)
  },
})
