import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { definePlugin, defineTopic, Events } from '@svc/core'
import { Routes } from '@svc/core/contracts'

const Flooded = defineTopic<{ readonly at: number; readonly text: string }>('TEST', 'flooded')

function heapAfterCollection(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}

/** A route that publishes many events and tells the heap before and after, without garbage. */
export default definePlugin({
  requires: { events: Events },
  setup(scope, { events }) {
    scope.add(Routes, 'flood', {
      method: 'GET',
      path: '/flood',
      summary: 'Publish events',
      query: { type: 'object', properties: { count: { type: 'integer' } } },
      async handle({ query }, ctx) {
        const before = heapAfterCollection()
        for (let at = 0; at < Number(query.count); at++) {
          await events.publish(Flooded, { at, text: 'x'.repeat(100) }, ctx)
          if (at % 100 === 99) await turn()
        }
        return { body: { before, after: heapAfterCollection() } }
      },
    })
  },
})
