import { definePlugin } from '@svc/core'
import { JobKinds, Tools } from '@svc/core/contracts'

/** What turns the direction of text around, colours a terminal, sets its title, and ends a line early. */
export const ODD = 'pay\u202Egnp.exe\u2066 \u001B[31mred\u001B[0m \u001B]0;title\u0007 \u009B2J\u0008\u200E'

/** Logs it, and has a tool that says it in each of its texts. */
export default definePlugin({
  setup(scope) {
    scope.log.warn({ field: ODD }, `an odd line ${ODD}`)
    scope.add(JobKinds, 'odd.kind', {
      description: `Fails with ${ODD}`,
      attempts: 1,
      async *run() {
        yield { type: 'log', level: 'warning', message: ODD }
        throw new Error(ODD)
      },
    })
    scope.add(Tools, 'odd_tool', {
      title: `Title ${ODD}`,
      description: `Description ${ODD}`,
      category: `odd ${ODD}`,
      effects: ['read'],
      parameters: {
        type: 'object',
        properties: { [`key ${ODD}`]: { type: 'string', title: `Key ${ODD}`, description: `About ${ODD}`, enum: [ODD, 'b'] } },
      },
      call: async () => ({ content: [{ type: 'text', text: ODD }], structured: { [ODD]: ODD } }),
    })
  },
})
