import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

/** A tool that asks before it tells which worker it runs in. */
export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'whereabouts', {
      description: 'Tells the process it runs in.',
      category: 'text',
      effects: ['read'],
      asks: true,
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      call: async () => ({ content: [{ type: 'text', text: String(process.pid) }] }),
    })
  },
})
