import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { RunClaim, RunQueue } from '@svc/core/contracts'
import { abortable, atOnce, caseMaker, type KitCase, outcome } from './kit-case.ts'

/** A queue to test. */
export interface RunQueueSubject {
  readonly queue: RunQueue
  /** The same queue in another process, on this machine or another. */
  readonly other: RunQueue
  /** The nodes of `queue` and `other`. */
  readonly nodes: readonly [string, string]
  /** Simulates the death of the process of `queue`: its claims are free when this resolves. */
  kill(): Promise<void>
  /** Simulates the loss of the machine of `queue`: it does nothing any more, and no other process reports it. */
  vanish(): Promise<void>
  close?(): unknown
}

/** Reads claims one by one, with a time limit. */
class Taker implements AsyncDisposable {
  readonly #ending = abortable('taker')
  readonly #claims: AsyncIterator<RunClaim>
  #next: Promise<RunClaim> | undefined

  constructor(queue: RunQueue, id?: string) {
    const { ctx } = this.#ending
    this.#claims = (id === undefined ? queue.take(ctx) : queue.takeOne(id, ctx))[Symbol.asyncIterator]()
  }

  /** The next claim. Claims are taken only on demand. */
  next(): Promise<RunClaim> {
    this.#next ??= this.#claims.next().then(({ value }) => value as RunClaim)
    return atOnce(this.#next, 'a claim').finally(() => (this.#next = undefined))
  }

  /** Resolves to a claim, or to none once the work is done. */
  async noneWhile(work: () => Promise<unknown>): Promise<void> {
    this.#next ??= this.#claims.next().then(({ value }) => value as RunClaim)
    const got = await Promise.race([this.#next, work().then(() => undefined)])
    assert.equal(got, undefined, 'this claim must not be given out')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await outcome<unknown>(this.#next ?? Promise.resolve())
    await outcome<unknown>(this.#claims.return?.() ?? Promise.resolve())
  }
}

/**
 * Cases for every run queue, on one machine or many: `for (const one of runQueueKit(open)) it(one.title, one.run)`. `open`
 * returns an empty queue each time, as seen by two processes of two nodes. With `brief`, a claim expires at most two seconds
 * after its last renewal.
 */
export function runQueueKit(open: (how: { readonly brief: boolean }) => RunQueueSubject | Promise<RunQueueSubject>): KitCase[] {
  const opened = caseMaker(() => open({ brief: false }))
  return [
    ...giving(opened),
    ...counting(opened),
    ...pinned(opened),
    ...wakingAndEnding(opened),
    ...holding(opened),
    ...losing(caseMaker(() => open({ brief: true }))),
  ]
}

type Opened = ReturnType<typeof caseMaker<RunQueueSubject>>
const { ctx } = abortable('queue kit')
const now = () => Date.now()
const put = (queue: RunQueue, id: string, due = now()) => queue.put({ id, due }, { claim: false }, ctx)

const counting = (opened: Opened): KitCase[] => [
  opened('counts the due runs that wait for a worker of any node', async ({ queue, other, nodes: [near] }) => {
    assert.equal(await queue.countDue(ctx), 0)
    const due = now()
    await Promise.all(['a', 'b', 'c'].map(id => put(queue, id)))
    await put(other, 'd')
    await put(queue, 'later', due + 600_000)
    await queue.put({ id: 'never' }, { claim: false }, ctx)
    await queue.put({ id: 'bound', due, affinity: near }, { claim: false }, ctx)
    await queue.put({ id: 'grouped', due, group: { name: 'group', limit: 1 } }, { claim: false }, ctx)
    assert.equal(await queue.countDue(ctx), 4)
    assert.equal(await other.countDue(ctx), 4)
    const claim = await queue.put({ id: 'mine', due }, { claim: true }, ctx)
    assert.equal(await other.countDue(ctx), 4)
    await queue.leave(claim!, { due: now() }, ctx)
    assert.equal(await other.countDue(ctx), 5)
    await other.wake('never', ctx)
    assert.equal(await queue.countDue(ctx), 6)
  }),
]

const giving = (opened: Opened): KitCase[] => [
  opened('gives a new run to a worker that takes runs', async ({ queue, other }) => {
    await put(queue, 'a')
    await using taker = new Taker(other)
    assert.equal((await taker.next()).id, 'a')
  }),
  opened('gives a run immediately to the process that adds it on request, and then to no other', async ({ queue, other }) => {
    const claim = await queue.put({ id: 'a', due: now() }, { claim: true }, ctx)
    assert.equal(claim?.id, 'a')
    await using taker = new Taker(other)
    await taker.noneWhile(async () => {
      for (let times = 0; times < 3; times++) await queue.keep(claim!, ctx)
      await other.wake('unknown', ctx)
    })
  }),
  opened('gives no run to another process between its addition and its claim', async ({ queue, other }) => {
    await using taker = new Taker(other)
    const over = new AbortController()
    const looking = async () => {
      for (; !over.signal.aborted; await sleep(1)) await other.wake('unknown', ctx)
    }
    const looks = Promise.all([looking(), looking()])
    await taker.noneWhile(async () => {
      for (let round = 0; round < 20; round++) {
        const ids = Array.from({ length: 5 }, (_, at) => `r${round}-${at}`)
        const claims = await Promise.all(ids.map(id => queue.put({ id, due: now() }, { claim: true }, ctx)))
        assert.deepEqual(
          claims.map(claim => claim?.id),
          ids
        )
      }
    })
    over.abort()
    await looks
  }),
  opened('gives each of many runs once, to any number of workers', async ({ queue, other }) => {
    const ids = Array.from({ length: 30 }, (_, at) => `r${at}`)
    await Promise.all(ids.map(id => put(queue, id)))
    const got = await Promise.all([takeSome(queue, 15), takeSome(other, 15)])
    assert.deepEqual(got.flat().toSorted(), ids.toSorted())
  }),
  opened('gives a run when it is due, and again after it was returned with a delay', async ({ queue, other }) => {
    await put(queue, 'a', now() + 50)
    await using taker = new Taker(other)
    const claim = await taker.next()
    const due = now() + 50
    await other.leave(claim, { due }, ctx)
    assert.equal((await taker.next()).id, 'a')
    assert.ok(now() >= due)
  }),
]

const pinned = (opened: Opened): KitCase[] => [
  opened('gives a run that is bound to a node only to workers of that node', async ({ queue, other, nodes: [, far] }) => {
    assert.equal(await queue.put({ id: 'a', due: now(), affinity: far }, { claim: true }, ctx), undefined)
    {
      await using here = new Taker(queue)
      await here.noneWhile(async () => {
        await put(queue, 'b', now() + 60_000)
        for (let times = 0; times < 3; times++) await queue.wake('a', ctx)
      })
    }
    await using there = new Taker(other)
    const claim = await there.next()
    assert.equal(claim.id, 'a')
    await other.leave(claim, { due: now() }, ctx)
    await using again = new Taker(queue)
    await again.noneWhile(() => other.wake('a', ctx))
    assert.equal((await there.next()).id, 'a', 'it is still bound to its node')
  }),
  opened('binds a run to a node when it is returned, until it is added again', async ({ queue, other, nodes: [near, far] }) => {
    const claim = await queue.put({ id: 'a', due: now() }, { claim: true }, ctx)
    await queue.leave(claim!, { due: now(), affinity: far }, ctx)
    await using here = new Taker(queue)
    await here.noneWhile(async () => {
      await put(queue, 'b', now() + 60_000)
      for (let times = 0; times < 3; times++) await queue.wake('a', ctx)
    })
    await using there = new Taker(other)
    const next = await there.next()
    assert.equal(next.id, 'a')
    // it is woken while it is worked on
    await queue.wake('a', ctx)
    await other.leave(next, { due: null, affinity: near }, ctx)
    const back = await here.next()
    assert.equal(back.id, 'a')
    await queue.leave(back, { due: null, affinity: far }, ctx)
    await put(queue, 'a')
    assert.equal((await here.next()).id, 'a', 'it is no longer bound')
  }),
]

const wakingAndEnding = (opened: Opened): KitCase[] => [
  opened(
    'gives a sleeping run after its wake-up, and a run that is woken during its work right afterwards',
    async ({ queue, other }) => {
      await put(queue, 'a')
      await using taker = new Taker(queue)
      await queue.leave(await taker.next(), { due: null }, ctx)
      await other.wake('a', ctx)
      const claim = await taker.next()
      await other.wake('a', ctx)
      await queue.leave(claim, { due: null }, ctx)
      assert.equal((await taker.next()).id, 'a')
    }
  ),
  opened('forgets a run that has ended, and rejects claims on it', async ({ queue }) => {
    const claim = await queue.put({ id: 'a', due: now() }, { claim: true }, ctx)
    await queue.leave(claim!, 'ended', ctx)
    await queue.wake('a', ctx)
    const claims = []
    for await (const item of queue.takeOne('a', ctx)) claims.push(item)
    assert.deepEqual(claims, [])
  }),
  opened('gives a single requested run', async ({ queue, other }) => {
    await Promise.all([put(queue, 'a'), put(queue, 'b')])
    await using taker = new Taker(other, 'b')
    assert.equal((await taker.next()).id, 'b')
  }),
]

const holding = (opened: Opened): KitCase[] => [
  opened('gives no more runs of a group than its limit, over all processes', async ({ queue, other }) => {
    const group = { name: 'g', limit: 2 }
    const claims = await Promise.all(
      [queue, other, queue].map((item, at) => item.put({ id: `r${at}`, due: now(), group }, { claim: true }, ctx))
    )
    const held = claims.filter(claim => claim !== undefined)
    assert.equal(held.length, 2)
    const left = held[0]!
    await using taker = new Taker(other)
    await taker.noneWhile(() => queue.keep(left, ctx).catch(() => {}))
    await (left.id === 'r1' ? other : queue).leave(left, 'ended', ctx)
    assert.equal(
      (await taker.next()).id,
      ['r0', 'r1', 'r2'].find(id => !held.some(claim => claim.id === id))
    )
  }),
  opened('no longer delays a run that is added again without its group, even during its work', async ({ queue }) => {
    const group = { name: 'g', limit: 1 }
    const first = await queue.put({ id: 'a', due: now(), group }, { claim: true }, ctx)
    await queue.put({ id: 'b', due: now(), group }, { claim: false }, ctx)
    await using taker = new Taker(queue)
    await put(queue, 'b')
    const next = await taker.next()
    assert.equal(next.id, 'b')
    await put(queue, 'a')
    await queue.put({ id: 'c', due: now(), group }, { claim: false }, ctx)
    await queue.leave(first!, { due: null }, ctx)
    const both = [(await taker.next()).id]
    both.push((await taker.next()).id)
    assert.deepEqual(both.toSorted(), ['a', 'c'])
  }),
  opened(
    'gives a run of a dead process to another process with a higher fence, and the dead process keeps no claim',
    async ({ queue, other, kill }) => {
      const claim = await queue.put({ id: 'a', due: now(), group: { name: 'g', limit: 1 } }, { claim: true }, ctx)
      await kill()
      await using taker = new Taker(other)
      const next = await taker.next()
      assert.equal(next.id, 'a')
      assert.ok(next.fence.fence > claim!.fence.fence)
      assert.equal(codeOf((await outcome(queue.keep(claim!, ctx))).error), 'STORE_FENCED')
      // Its later calls change nothing.
      await outcome(queue.leave(claim!, 'ended', ctx))
      await other.keep(next, ctx)
      await other.leave(next, { due: now() }, ctx)
      assert.equal((await taker.next()).id, 'a')
    }
  ),
]

const losing = (opened: Opened): KitCase[] => [
  opened('gives a run of a lost machine to another machine, and the lost machine keeps no claim', async subject => {
    const { queue, other } = subject
    const claim = await queue.put({ id: 'a', due: now() }, { claim: true }, ctx)
    await subject.vanish()
    await using taker = new Taker(other)
    const next = await taker.next()
    assert.equal(next.id, 'a')
    assert.ok(next.fence.fence > claim!.fence.fence)
    assert.equal(codeOf((await outcome(queue.keep(claim!, ctx))).error), 'STORE_FENCED')
  }),
]

async function takeSome(queue: RunQueue, count: number): Promise<string[]> {
  await using taker = new Taker(queue)
  const ids: string[] = []
  while (ids.length < count) ids.push((await taker.next()).id)
  return ids
}
