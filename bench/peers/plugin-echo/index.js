// The plugin whose calls are measured, the same in each mode.
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'echo', {
      description: 'Answers what it is given.',
      category: 'text',
      effects: [],
      parameters: { type: 'object', properties: { text: { type: 'string' } } },
      call: async ({ text }) => ({ content: [{ type: 'text', text }] }),
    })
  },
})
