import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

export default definePlugin({
  setup: scope =>
    void scope.add(Tools, 'launch', {
      description: 'Asks before it pretends to launch something.',
      category: 'text',
      effects: ['execute'],
      asks: true,
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      call: async () => ({ content: [{ type: 'text', text: 'launched' }] }),
    }),
})
