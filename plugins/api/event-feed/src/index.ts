import { abortable, definePlugin, Events, Host, systemContext } from '@svc/core'
import { EventFeed, type FeedQuery, PeerAnswers, Peers, Routes } from '@svc/core/contracts'
import { Exchange, TOPIC } from './exchange.ts'
import { EventRing, EVENTS_CONFIG, type FeedReading } from './ring.ts'
import { createEventsRoute } from './route.ts'

/** Streams end before the server waits for open requests. */
const LEAVING = -100
/** The HTTP server waits for its requests at stage 0. The others are reached until stage 900. */
const AFTER_REQUESTS = 700
/** After the worker has joined the others, before it serves. */
const AFTER_JOIN = 950

export default definePlugin({
  section: 'events',
  config: EVENTS_CONFIG,
  requires: { host: Host, events: Events },
  optional: { peers: Peers },
  provides: EventFeed,
  async setup(scope, { host, events, peers }) {
    const { log, config } = scope
    const lasting = systemContext(scope.signal, 'event-feed')
    const { worker, clusterId, serverId, nodeId } = await host.report(lasting)
    // servers with another identity have other cursors; a restarted server accepts those from before
    const ring = new EventRing(config.keep, clusterId === serverId ? nodeId : clusterId)
    const lingerMs = config.linger_s * 1000
    const exchange = scope.use(new Exchange({ worker, ring, events, peers, lingerMs, log, lasting }))
    const ready = Promise.withResolvers<void>()
    scope.tap(Peers.hooks.message, ({ topic, message }) => (topic === TOPIC ? exchange.take(message).catch(() => {}) : undefined))
    scope.add(PeerAnswers, TOPIC, {
      async *answer(message) {
        await exchange.take(message)
        yield null
      },
    })
    scope.tap(Host.hooks.ready, () => exchange.begin().finally(ready.resolve), { stage: AFTER_JOIN })
    scope.tap(Host.hooks.closing, () => exchange.end(), { stage: AFTER_REQUESTS })
    scope.tap(Peers.hooks.workerExit, exited => ring.exited(exited.worker))
    const read = (query: FeedQuery, signal: AbortSignal): FeedReading => {
      // a position that is not valid makes no worker collect events
      const { cursor, events } = ring.read(query, AbortSignal.any([signal, scope.signal]))
      return { cursor, events: exchange.collected(events) }
    }
    const feed: EventFeed = {
      async *subscribe(query, { signal }) {
        await abortable(ready.promise, signal).catch(() => {})
        yield* read(query, signal).events
      },
    }
    const leaving = new AbortController()
    scope.tap(Host.hooks.closing, () => leaving.abort(), { stage: LEAVING })
    scope.add(Routes, 'events', createEventsRoute(read, leaving.signal))
    return feed
  },
})

export type { EventsConfig } from './ring.ts'
