import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

export default definePlugin({
  setup: scope =>
    void scope.add(Tools, 'shred', {
      description: 'Pretends to shred a file.',
      category: 'files',
      effects: ['read', 'write'],
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      call: async () => ({ content: [{ type: 'text', text: 'shredded' }] }),
    }),
})
