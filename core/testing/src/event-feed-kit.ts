import assert from 'node:assert/strict'
import { codeOf, defineTopic, type Events } from '@svc/core'
import type { EventFeed, FeedEvent, FeedQuery } from '@svc/core/contracts'
import { abortable, atOnce, becomes, caseMaker, type KitCase, outcome } from './kit-case.ts'

/** Two workers of a server whose feeds keep ten events. */
export interface EventFeedSubject {
  readonly workers: readonly [EventFeedWorker, EventFeedWorker]
  /** Starts another worker, which knows nothing yet. */
  start(): Promise<EventFeedWorker>
  close?(): unknown
}

export interface EventFeedWorker {
  readonly name: string
  readonly feed: EventFeed
  readonly events: Events
}

/** Cases for every implementation of `EventFeed`: `for (const one of eventFeedKit(open)) it(one.title, one.run)`. */
export function eventFeedKit(open: () => Promise<EventFeedSubject>): KitCase[] {
  const opened = caseMaker(async () => {
    const subject = await open()
    await allCollect(subject.workers)
    return subject
  })
  return [...reading(opened), ...resuming(opened)]
}

type Opened = ReturnType<typeof caseMaker<EventFeedSubject>>
const { ctx } = abortable('feed kit')
const TESTED = defineTopic<{ readonly at: number }>('TEST', 'tested')
const OTHER = defineTopic<{ readonly at: number }>('TEST', 'other')
const publish = ({ events }: EventFeedWorker, at: number, topic = TESTED) => events.publish(topic, { at }, ctx)
const atOf = ({ data }: FeedEvent) => data.at

/** A reader, from before its first read. */
class Reader implements AsyncDisposable {
  readonly #ending = abortable('feed reader')
  readonly #events: AsyncIterator<FeedEvent>
  #next: Promise<IteratorResult<FeedEvent>> | undefined

  constructor({ feed }: EventFeedWorker, query: FeedQuery = {}) {
    this.#events = feed.subscribe(query, this.#ending.ctx)[Symbol.asyncIterator]()
    this.#next = this.#events.next()
  }

  async next(): Promise<FeedEvent> {
    const { value } = await atOnce(this.#next ?? this.#events.next(), 'an event')
    this.#next = undefined
    return value as FeedEvent
  }

  async take(count: number): Promise<FeedEvent[]> {
    const all: FeedEvent[] = []
    while (all.length < count) all.push(await this.next())
    return all
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await outcome<unknown>(this.#events.return?.() ?? Promise.resolve())
  }
}

const READY = defineTopic<{ readonly at: number }>('TEST', 'ready')

/** Waits until the feed of each worker gets the events of all. Workers collect none before a reader has reached them. */
async function allCollect(workers: EventFeedSubject['workers']): Promise<void> {
  for (const worker of workers) {
    const ending = abortable('feed kit')
    const seen = new Set<string>()
    const read = (async () => {
      for await (const event of worker.feed.subscribe({ types: ['ready'] }, ending.ctx)) {
        seen.add(event.worker)
        if (seen.size === workers.length) return
      }
    })()
    const timer = setInterval(() => workers.forEach(one => void publish(one, 0, READY)), 5)
    await atOnce(read, 'events of all workers')
    clearInterval(timer)
    ending.abort()
  }
  // no event of before can arrive later than these
  const readers = workers.map(worker => new Reader(worker, { types: ['ready'] }))
  for (const worker of workers) await publish(worker, -1, READY)
  for (const reader of readers) {
    for (let left = workers.length; left > 0; ) if (atOf(await reader.next()) === -1) left--
    await reader[Symbol.asyncDispose]()
  }
}

/** The cursor behind all events that a worker has now; `at` marks the end. */
async function endOf(worker: EventFeedWorker, from: EventFeedWorker, at: number): Promise<string> {
  await using reader = new Reader(worker)
  await publish(from, at)
  for (;;) {
    const event = await reader.next()
    if (atOf(event) === at) return event.cursor
  }
}

const reading = (opened: Opened): KitCase[] => [
  opened('yields the events of all workers on each worker, those of one worker in order', async ({ workers: [a, b] }) => {
    await using atA = new Reader(a)
    await using atB = new Reader(b)
    for (let at = 0; at < 5; at++) await publish(at % 2 ? b : a, at)
    for (const reader of [atA, atB]) {
      const all = await reader.take(5)
      assert.deepEqual(all.filter(({ worker }) => worker === a.name).map(atOf), [0, 2, 4])
      assert.deepEqual(all.filter(({ worker }) => worker === b.name).map(atOf), [1, 3])
      assert.deepEqual([...new Set(all.map(({ lost }) => lost))], [0])
    }
  }),
  opened('yields only the events that the filter selects, and counts no others as lost', async ({ workers: [a, b] }) => {
    await using reader = new Reader(b, { categories: ['TEST'], types: ['other'] })
    await publish(a, 1)
    await publish(a, 2, OTHER)
    await publish(a, 3)
    await publish(a, 4, OTHER)
    assert.deepEqual(
      (await reader.take(2)).map(event => [event.type, atOf(event), event.lost]),
      [
        ['other', 2, 0],
        ['other', 4, 0],
      ]
    )
  }),
  opened('ends when its reader stops', async ({ workers: [a] }) => {
    const { ctx: reading, abort } = abortable()
    const read = Array.fromAsync(a.feed.subscribe({}, reading))
    await publish(a, 1)
    setTimeout(abort, 50)
    assert.ok((await atOnce(read, 'the end of the feed')).length <= 1)
  }),
]

const resuming = (opened: Opened): KitCase[] => [
  opened('continues after a cursor, on any worker', async ({ workers: [a, b] }) => {
    const after = await endOf(b, a, 0)
    for (const at of [1, 2, 3]) await publish(a, at)
    await endOf(b, a, 4)
    for (const worker of [a, b]) {
      await using reader = new Reader(worker, { after })
      assert.deepEqual((await reader.take(3)).map(atOf), [1, 2, 3])
    }
  }),
  opened('reports the number of events that are no longer kept', async ({ workers: [a, b] }) => {
    const after = await endOf(b, a, 0)
    for (let at = 1; at <= 30; at++) await publish(a, at)
    await endOf(b, a, 31)
    await using reader = new Reader(b, { after })
    const first = await reader.next()
    assert.equal(first.lost, Number(atOf(first)) - 1, 'all before the first one that is kept are lost')
    assert.ok(first.lost >= 20, `only ten are kept, but ${first.lost} were lost`)
    assert.equal((await reader.next()).lost, 0)
  }),
  opened('yields the kept events on a worker that starts later', async ({ workers: [a, b], start }) => {
    const after = await endOf(b, a, 0)
    for (const at of [1, 2]) await publish(a, at)
    await endOf(b, a, 3)
    const late = await start()
    const got = async () => {
      await using reader = new Reader(late, { after })
      await publish(late, 4)
      return atOf(await reader.next()) === 1
    }
    await becomes('the events from before the start', got)
  }),
  opened('rejects an unknown cursor', async ({ workers: [a] }) => {
    for (const after of ['x', '%%%', 'YWJj'.repeat(3)])
      assert.equal(codeOf((await outcome(new Reader(a, { after }).next())).error), 'CURSOR_INVALID', after)
  }),
]
