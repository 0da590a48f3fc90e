import { definePlugin } from '@svc/core'
import { Routes, Tools } from '@svc/core/contracts'

/** A tool that thinks until it is stopped, and a route that tells how many think now. */
export default definePlugin({
  setup(scope) {
    let thinking = 0
    scope.add(Tools, 'ponder', {
      description: 'Thinks until it is stopped.',
      category: 'text',
      effects: [],
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      async call(_args, { signal }) {
        const { promise, reject } = Promise.withResolvers<never>()
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        thinking++
        return promise.finally(() => thinking--)
      },
    })
    scope.add(Routes, 'thinking', {
      method: 'GET',
      path: '/thinking',
      summary: 'How many think',
      handle: async () => ({ body: { thinking } }),
    })
  },
})
