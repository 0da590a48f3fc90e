import { definePlugin, Events, systemContext } from '@svc/core'
import { EventFeed, type Json, PeerAnswers, Peers } from '@svc/core/contracts'
import { eventFeedKit, type EventFeedWorker, testHost } from '@svc/testing'

const FEED = { name: '@svc/plugin-event-feed', use: new URL('..', import.meta.url) }
const ctx = systemContext(new AbortController().signal, 'test')

interface Member {
  message(topic: string, message: Json): Promise<unknown>
  answer(topic: string, message: Json): AsyncIterable<Json>
}

/** Workers that reach each other in this process. */
async function openWorkers() {
  const members = new Map<string, Member>()
  const hosts: { close(): Promise<void> }[] = []
  const start = async (): Promise<EventFeedWorker> => {
    const name = `server.${members.size + 1}`
    const peers = definePlugin({
      requires: { answers: PeerAnswers },
      provides: Peers,
      setup(scope, { answers }) {
        members.set(name, {
          message: (topic, message) => scope.hooks.message({ topic, message }, ctx),
          answer: (topic, message) => answers.get(topic)!.answer(message, ctx),
        })
        return {
          async broadcast(topic, message) {
            await Promise.all([...members.values()].map(member => member.message(topic, structuredClone(message))))
          },
          metrics: async () => [],
          acquire: async () => true,
          release: async () => {},
          self: async () => name,
          async *ask(worker, topic, message) {
            yield* members.get(worker)!.answer(topic, structuredClone(message))
          },
        }
      },
    })
    const host = await testHost([FEED], {
      strict: false,
      worker: name,
      config: { events: { keep: 10 } },
      give: [{ name: 'test:peers', use: peers }],
    })
    hosts.push(host)
    return { name, feed: host.service(EventFeed), events: host.service(Events) }
  }
  return { start, close: () => Promise.all(hosts.map(host => host.close())) }
}

describe('the feed of events', () => {
  const open = async () => {
    const { start, close } = await openWorkers()
    return { workers: [await start(), await start()] as const, start, close }
  }
  for (const testCase of eventFeedKit(open)) it(testCase.title, testCase.run)
})
