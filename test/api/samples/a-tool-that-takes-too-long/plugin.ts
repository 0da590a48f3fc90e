import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

export default definePlugin({
  setup: scope =>
    void scope.add(Tools, 'ponder', {
      description: 'Thinks until it is stopped.',
      category: 'text',
      effects: [],
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      call: (_args, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
    }),
})
