import { definePlugin } from '@svc/core'
import { JobKinds } from '@svc/core/contracts'

/** A job kind that works in as many spans as its input says. */
export default definePlugin({
  setup(scope) {
    scope.add(JobKinds, 'test.many_spans', {
      description: 'Work in many spans',
      async *run({ input }, ctx) {
        const { count } = input as { readonly count: number }
        for (let at = 0; at < count; at++) {
          const span = scope.span(`work ${at}`, ctx, { attributes: { 'test.at': at } })
          if (at % 100 === 0) yield { type: 'progress', progress: at, total: count }
          span.end()
        }
        yield { type: 'result', value: count }
      },
    })
  },
})
