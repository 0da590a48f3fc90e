import { definePlugin, defineTopic, Events, Host, systemContext } from '@svc/core'
import { EventFeed, type Json, PeerAnswers, Peers } from '@svc/core/contracts'
import { eventFeedKit, type EventFeedWorker, testHost } from '@svc/testing'
import { expect } from 'chai'
import { EventRing } from '../src/ring.ts'

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
  exited(worker: string): Promise<unknown>
}

/** Workers that reach each other in this process. */
async function openWorkers(keep = 10) {
  const members = new Map<string, Member>()
  const hosts: { close(): Promise<void> }[] = []
  const start = async (joined = async () => {}): Promise<EventFeedWorker & { exit(how?: 'killed'): Promise<void> }> => {
    const name = `server.${members.size + 1}`
    const peers = definePlugin({
      requires: { answers: PeerAnswers },
      provides: Peers,
      setup(scope, { answers }) {
        members.set(name, {
          message: (topic, message) => scope.hooks.message({ topic, message }, ctx),
          answer: (topic, message) => answers.get(topic)!.answer(message, ctx),
          exited: worker => scope.hooks.workerExit({ worker, node: 'node', holder: `${worker}/` }, ctx),
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
      give: [
        { name: 'test:peers', use: peers },
        {
          name: 'test:joined',
          use: definePlugin({ setup: scope => void scope.tap(Host.hooks.ready, () => joined().then(() => undefined)) }),
        },
      ],
    })
    hosts.push(host)
    const exit = async (how?: 'killed') => {
      if (!how) await host.close()
      members.delete(name)
      await Promise.all([...members.values()].map(member => member.exited(name)))
    }
    return { name, feed: host.service(EventFeed), events: host.service(Events), exit }
  }
  return { start, close: () => Promise.all(hosts.map(host => host.close())) }
}

const Counted = defineTopic<{ at: number }>('TEST', 'counted')
const countTo = async ({ events }: EventFeedWorker, from: number, to: number) => {
  for (let at = from; at <= to; at++) await events.publish(Counted, { at }, ctx)
}

/** The numbers that a reader gets until one of them is `last`, each with `+n` if it missed n before. */
async function readTo({ feed }: EventFeedWorker, last: number, after?: string) {
  const seen: (number | string)[] = []
  let cursor = ''
  const signal = AbortSignal.timeout(10_000)
  for await (const event of feed.subscribe(
    { types: ['counted'], ...(after === undefined ? {} : { after }) },
    { ...ctx, signal }
  )) {
    const at = Number(event.data.at)
    seen.push(event.lost === 0 ? at : `${at}+${event.lost}`)
    cursor = event.cursor
    if (at === last) break
  }
  return { seen, cursor }
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

  it('gives a worker that starts what the others keep before what they send meanwhile', async () => {
    const { start, close } = await openWorkers(100)
    try {
      const [one, two] = [await start(), await start()]
      await collects(one, two)
      const reading = readTo(two, 2)
      await countTo(one, 1, 5)
      const { cursor } = await reading
      const three = await start(async () => {
        await countTo(one, 6, 9)
        await readTo(two, 9, cursor)
      })
      expect((await readTo(three, 9, cursor)).seen).to.deep.equal([3, 4, 5, 6, 7, 8, 9])
    } finally {
      await close()
    }
  })

  it('gets the last events of a worker that ends, and tells readers of one that is killed', async () => {
    const { start, close } = await openWorkers(100)
    try {
      const [one, two, three] = [await start(), await start(), await start()]
      await Promise.all([collects(one, two), collects(three, two)])
      const reading = readTo(two, 5)
      await countTo(one, 1, 5)
      await one.exit()
      const { cursor, seen } = await reading
      expect(seen).to.deep.equal([1, 2, 3, 4, 5])
      await countTo(two, 6, 6)
      expect((await readTo(two, 6, cursor)).seen, 'nothing is lost').to.deep.equal([6])

      await three.exit('killed')
      await countTo(two, 7, 7)
      const after = await readTo(two, 7, cursor)
      expect(after.seen).to.deep.equal([6, '7+1'])
      await countTo(two, 8, 8)
      expect((await readTo(two, 8, after.cursor)).seen, 'reported once').to.deep.equal([8])
    } finally {
      await close()
    }
  })

  it('has short positions after hundreds of workers', () => {
    const ring = new EventRing(2_000, 'server')
    const by = { principal: 'p', requestId: 'r', category: 'TEST', type: 'counted', data: {}, timestamp: 0 }
    for (let worker = 0; worker < 1_000; worker++)
      ring.add({ worker: `1c2d3e4f-0000-4000-8000-00000000.${worker}`, seq: 7, ...by })
    expect(ring.read({}, ctx.signal).cursor).to.have.length.within(60, 9_000)
  })
})
