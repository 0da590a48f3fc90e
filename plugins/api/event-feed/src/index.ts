import { definePlugin, Events, Host, schema, systemContext } from '@svc/core'
import { EventFeed, PeerAnswers, Peers } from '@svc/core/contracts'
import { createExchange, TOPIC } from './exchange.ts'
import { EventRing } from './ring.ts'

/** After the worker has joined the others. */
const AFTER_JOIN = 950

export default definePlugin({
  section: 'events',
  config: schema<{ readonly keep: number }>({
    type: 'object',
    additionalProperties: false,
    properties: {
      keep: { type: 'integer', minimum: 1, maximum: 1_000_000, default: 10_000, description: 'Events that each worker keeps' },
    },
  }),
  requires: { host: Host, events: Events },
  optional: { peers: Peers },
  provides: EventFeed,
  async setup(scope, { host, events, peers }) {
    const { log } = scope
    const lasting = systemContext(scope.signal, 'event-feed')
    const { worker } = await host.report(lasting)
    const ring = new EventRing(scope.config.keep)
    const exchange = scope.use(createExchange({ worker, ring, events, peers, log, lasting }))
    scope.tap(Peers.hooks.message, ({ topic, message }) => (topic === TOPIC ? exchange.take(message).catch(() => {}) : undefined))
    scope.add(PeerAnswers, TOPIC, {
      async *answer(message) {
        await exchange.take(message)
        yield null
      },
    })
    scope.tap(Host.hooks.ready, () => exchange.begin(), { stage: AFTER_JOIN })
    return { subscribe: (query, { signal }) => ring.read(query, AbortSignal.any([signal, scope.signal])) }
  },
})
