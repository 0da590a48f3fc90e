import { definePlugin, defineTopic, Events, systemContext } from '@svc/core'
import { EventFeed, type Json, PeerAnswers, Peers } from '@svc/core/contracts'
import { eventFeedKit, type EventFeedWorker, testHost } from '@svc/testing'
import { expect } from 'chai'

const FEED = { name: '@svc/plugin-event-feed', use: new URL('..', import.meta.url) }
const ctx = systemContext(new AbortController().signal, 'test')

/** As the bus of a cluster, which carries the messages to the workers of other servers. */
function checkSize(message: Json): void {
  const bytes = Buffer.byteLength(JSON.stringify(message))
  if (bytes > 64 * 1024) throw new Error(`a message of ${bytes} bytes is too large for a bus`)
}

interface Member {
  message(topic: string, message: Json): Promise<unknown>
  answer(topic: string, message: Json): AsyncIterable<Json>
}

/** Workers that reach each other in this process. */
async function openWorkers(keep = 10) {
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
            checkSize(message)
            await Promise.all([...members.values()].map(member => member.message(topic, structuredClone(message))))
          },
          metrics: async () => [],
          acquire: async () => true,
          release: async () => {},
          self: async () => name,
          async *ask(worker, topic, message) {
            checkSize(message)
            yield* members.get(worker)!.answer(topic, structuredClone(message))
          },
        }
      },
    })
    const host = await testHost([FEED], {
      strict: false,
      worker: name,
      clusterId: 'server',
      config: { events: { keep } },
      give: [{ name: 'test:peers', use: peers }],
    })
    hosts.push(host)
    return { name, feed: host.service(EventFeed), events: host.service(Events) }
  }
  return { start, close: () => Promise.all(hosts.map(host => host.close())) }
}

const Probed = defineTopic<object>('PROBE', 'probed')

/** Waits until a reader at one worker gets events of the other. */
async function collects({ events }: EventFeedWorker, { feed }: EventFeedWorker): Promise<void> {
  const timer = setInterval(() => void events.publish(Probed, {}, ctx), 5)
  for await (const _ of feed.subscribe({ types: ['probed'] }, { ...ctx, signal: AbortSignal.timeout(10_000) })) break
  clearInterval(timer)
}

describe('the feed of events', () => {
  const open = async () => {
    const { start, close } = await openWorkers()
    return { workers: [await start(), await start()] as const, start, close }
  }
  for (const testCase of eventFeedKit(open)) it(testCase.title, testCase.run)

  it('sends many large events in messages that the bus of a cluster takes, and as many to a worker that starts', async () => {
    const { start, close } = await openWorkers(1_000)
    try {
      const [one, two] = [await start(), await start()]
      const count = 60
      const readAll = async ({ feed }: EventFeedWorker, after?: string) => {
        const seen: number[] = []
        const query = { categories: ['TEST'], ...(after === undefined ? {} : { after }) }
        for await (const { data, lost, cursor } of feed.subscribe(query, { ...ctx, signal: AbortSignal.timeout(10_000) })) {
          first ??= cursor
          seen.push(Number(data.at) + lost * 1_000)
          if (seen.length === count) return seen
        }
        return seen
      }
      let first: string | undefined
      await collects(one, two)
      const reading = readAll(two)
      const topic = defineTopic<{ at: number; text: string }>('TEST', 'large')
      for (let at = 0; at < count; at++) await one.events.publish(topic, { at, text: 'é'.repeat(7_000) }, ctx)
      const all = Array.from({ length: count }, (_, at) => at)
      expect(await reading).to.deep.equal(all)
      const three = await start()
      const seen: number[] = []
      for await (const { data } of three.feed.subscribe({ after: first! }, { ...ctx, signal: AbortSignal.timeout(10_000) }))
        if (seen.push(Number(data.at)) === count - 1) break
      expect(seen).to.deep.equal(all.slice(1))
    } finally {
      await close()
    }
  })
})
