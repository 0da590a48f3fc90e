import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

/** A tool that takes a second. */
export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'sleep_briefly', {
      description: 'Sleeps for a second.',
      category: 'time',
      effects: ['read'],
      parameters: { type: 'object', properties: {}, additionalProperties: false },
      async call(_args, ctx) {
        await sleep(1_000, undefined, { signal: ctx.signal })
        return { content: [{ type: 'text', text: 'slept' }] }
      },
    })
  },
})
