import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

/** A tool that answers for Ulm only after it was asked for Bern: who calls it one by one waits for ever, and results come in another order than calls. */
export default definePlugin({
  setup(scope) {
    let bern = Promise.withResolvers<void>()
    scope.add(Tools, 'weather', {
      description: 'The weather of a city.',
      category: 'web',
      effects: ['read'],
      parameters: { type: 'object', properties: { city: { enum: ['Ulm', 'Bern'] } }, required: ['city'] },
      async call({ city }) {
        if (city === 'Ulm') await bern.promise
        else {
          bern.resolve()
          bern = Promise.withResolvers()
        }
        return { content: [{ type: 'text', text: city === 'Ulm' ? 'sunny in Ulm' : 'sunny in Bern' }] }
      },
    })
  },
})
