import { definePlugin } from '@svc/core'
import { Routes, Tools } from '@svc/core/contracts'

/** A tool that is held until the next `POST /release`: a turn that lasts as long as the test wants. */
export default definePlugin({
  setup(scope) {
    let released = Promise.withResolvers<void>()
    scope.add(Tools, 'hold', {
      description: 'Waits until it is released.',
      category: 'text',
      effects: [],
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      async call() {
        await released.promise
        return { content: [{ type: 'text', text: 'released' }] }
      },
    })
    scope.add(Routes, 'release', {
      method: 'POST',
      path: '/release',
      uncounted: true,
      summary: 'Release what is held',
      async handle() {
        released.resolve()
        released = Promise.withResolvers<void>()
        return {}
      },
    })
  },
})
