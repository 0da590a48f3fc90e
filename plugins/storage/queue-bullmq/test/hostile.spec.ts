import { codeOf } from '@svc/core'
import type { RunClaim } from '@svc/core/contracts'
import { RUN_ENTRIES } from '@svc/storage-kit/run-leases'
import { type Redis, startRedis } from '@svc/testing/engines'
import { Queue } from 'bullmq'
import { expect } from 'chai'
import { Redis as Client } from 'ioredis'
import { describeWith } from '../../../../test/support/needs.ts'
import { keyOf } from '../src/jobs.ts'
import { becomes, ctx, openQueue, openShared, type Shared } from './support.ts'

type Taker = Awaited<ReturnType<typeof openQueue>>

const NAMES = [
  `"]); redis.call('FLUSHALL'); --`,
  'a\r\nFLUSHALL\r\n',
  '7',
  'a:b:c',
  'runs:wait',
  '*',
  '../../etc/passwd',
  `~${'0'.repeat(64)}`,
  '€ 🐘 \u202e ﷽ \u0001\u001f\u007f\n\r\t',
  '{"id":"other"}',
  'a'.repeat(1_000),
  '🐘'.repeat(250),
]
const WRONG = ['', 'a\u0000b', '\ud800', 'x'.repeat(1_025), '🐘'.repeat(300)]

async function takeAll({ queue }: Taker, count: number): Promise<RunClaim[]> {
  const claims: RunClaim[] = []
  for await (const claim of queue.take({ ...ctx, signal: AbortSignal.timeout(40_000) })) {
    claims.push(claim)
    if (claims.length >= count) break
  }
  return claims
}
const idsOf = (claims: readonly RunClaim[]) => claims.map(({ id }) => id).toSorted()

describe('the key of a run in Redis', () => {
  it('is its id, or a hash if BullMQ or an operator cannot read the id', () => {
    expect(keyOf('018f-a.b@c_d')).to.equal('018f-a.b@c_d')
    for (const name of NAMES)
      expect(keyOf(name))
        .to.match(/^~[\da-f]{64}$/)
        .and.not.equal(name)
    expect(new Set(NAMES.map(keyOf))).to.have.property('size', NAMES.length)
  })
})

describeWith('redis', 'the queue of runs in Redis, hostile input and the tools of BullMQ', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis
  before(async () => (redis = stack.use(await startRedis())))
  after(() => stack.disposeAsync())

  it('keeps runs with any name that a store accepts apart, below the prefix of the cluster', async () => {
    await using shared = await openShared({ url: redis.url })
    await using one = await openQueue('one', shared)
    const { queue } = one
    for (const id of NAMES) await queue.put({ id, due: Date.now(), group: { name: id, limit: 1 } }, { claim: false }, ctx)
    const claims = await takeAll(one, NAMES.length)
    expect(idsOf(claims)).to.deep.equal(NAMES.toSorted())
    for (const claim of claims) {
      await queue.keep(claim, ctx)
      await queue.wake(claim.id, ctx)
      await queue.leave(claim, { due: null }, ctx)
    }
    const again = await takeAll(one, NAMES.length)
    expect(idsOf(again)).to.deep.equal(NAMES.toSorted())
    const keys = (await redis.command('KEYS', '*')) as string[]
    expect(keys.filter(key => !key.startsWith('svc:queue'))).to.deep.equal([])
    for (const claim of again) await queue.leave(claim, 'ended', ctx)
    expect((await shared.store.range(RUN_ENTRIES, { limit: 1 }, ctx)).records).to.deep.equal([])
  }).timeout(60_000)

  it('gives runs that are bound to a node with any name to that node only', async () => {
    await using shared = await openShared({ url: redis.url })
    await using one = await openQueue('one', shared)
    for (const [at, affinity] of NAMES.entries())
      expect(await one.queue.put({ id: `r${at}`, due: Date.now(), affinity }, { claim: true }, ctx)).to.equal(undefined)
    await one.queue.put({ id: 'own', due: Date.now(), affinity: 'one' }, { claim: false }, ctx)
    expect(idsOf(await takeAll(one, 1))).to.deep.equal(['own'])
    await using far = await openQueue(NAMES[0]!, shared)
    expect(idsOf(await takeAll(far, 1))).to.deep.equal(['r0'])
  }).timeout(60_000)

  it('rejects names that no store accepts, limits and times that are none, and writes nothing', async () => {
    await using shared = await openShared({ url: redis.url })
    await using one = await openQueue('one', shared)
    const { queue } = one
    const due = Date.now()
    for (const claim of [false, true]) {
      const refused = async (run: object) =>
        expect(await queue.put({ id: 'r', due, ...run }, { claim }, ctx).catch(codeOf)).to.equal('STORE_INVALID')
      for (const name of WRONG)
        for (const run of [{ id: name }, { group: { name, limit: 1 } }, { affinity: name }]) await refused(run)
      for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3']) await refused({ group: { name: 'g', limit } })
      await refused({ due: Number.NaN })
    }
    expect((await shared.store.range(RUN_ENTRIES, { limit: 1 }, ctx)).records).to.deep.equal([])
    expect(await redis.command('KEYS', `svc:${shared.cluster}:queue:*`)).to.deep.equal([])
  }).timeout(60_000)

  it('takes any time', async () => {
    await using shared = await openShared({ url: redis.url })
    await using one = await openQueue('one', shared)
    const dues = { past: -1e300, zero: 0, now: Date.now(), far: 8.64e15, never: Number.POSITIVE_INFINITY, huge: Number.MAX_VALUE }
    for (const [id, due] of Object.entries(dues)) await one.queue.put({ id, due }, { claim: false }, ctx)
    expect(idsOf(await takeAll(one, 3))).to.deep.equal(['now', 'past', 'zero'])
    for (const id of ['far', 'never', 'huge']) await one.queue.wake(id, ctx)
    expect(idsOf(await takeAll(one, 3))).to.deep.equal(['far', 'huge', 'never'])
  }).timeout(60_000)

  /** A tool with a connection of its own, as Bull Board has it. */
  async function openTool({ cluster }: Shared) {
    const connection = new Client(redis.url, { maxRetriesPerRequest: null })
    const tool = new Queue('runs', { connection, prefix: `svc:${cluster}:queue` })
    return {
      tool,
      async [Symbol.asyncDispose]() {
        await tool.close()
        await connection.quit()
      },
    }
  }

  it('shows runs to the tools of BullMQ: what waits, what is delayed, what is executed, and nothing at the end', async () => {
    await using shared = await openShared({ url: redis.url })
    await using one = await openQueue('one', shared)
    await using board = await openTool(shared)
    const counts = () => board.tool.getJobCounts('wait', 'active', 'delayed', 'completed', 'failed')
    for (const id of ['a', 'b']) await one.queue.put({ id, due: Date.now() }, { claim: false }, ctx)
    await one.queue.put({ id: 'c', due: Date.now() + 3_600_000, group: { name: 'g', limit: 2 } }, { claim: false }, ctx)
    expect(await counts()).to.deep.equal({ wait: 2, active: 0, delayed: 1, completed: 0, failed: 0 })
    const [claim] = await takeAll(one, 1)
    expect(await counts()).to.deep.equal({ wait: 1, active: 1, delayed: 1, completed: 0, failed: 0 })
    const delayed = await board.tool.getDelayed()
    expect(delayed.map(job => [job.name, job.data as object])).to.deep.equal([
      ['run', { id: 'c', group: { name: 'g', limit: 2 } }],
    ])
    await one.queue.leave(claim!, 'ended', ctx)
    expect(await counts()).to.deep.equal({ wait: 1, active: 0, delayed: 1, completed: 0, failed: 0 })
  }).timeout(60_000)

  it('obeys a pause, and says so in its health; what a tool deletes, retries or makes due harms no run', async () => {
    await using shared = await openShared({ url: redis.url })
    await using one = await openQueue('one', shared, { lateMs: 2_500, claimMs: 3_000 })
    await using board = await openTool(shared)
    await board.tool.pause()
    await one.queue.put({ id: 'r', due: Date.now() }, { claim: false }, ctx)
    await one.queue.put({ id: 'later', due: Date.now() + 3_600_000 }, { claim: false }, ctx)
    const taking = takeAll(one, 1)
    await becomes('the report', () => one.queue.health().status === 'unhealthy')
    expect(one.queue.health().reason).to.match(/^a run is due for \d+ s, but the queue gives none$/)
    await (await board.tool.getJob('later'))!.promote()
    await board.tool.resume()
    expect(idsOf(await taking)).to.deep.equal(['r'])
    await one.queue.put({ id: 'next', due: Date.now() }, { claim: false }, ctx)
    await board.tool.obliterate({ force: true })
    expect(idsOf(await takeAll(one, 1))).to.deep.equal(['next'])
  }).timeout(90_000)

  it('deletes jobs that others have written into its queue, and goes on', async () => {
    await using shared = await openShared({ url: redis.url })
    await using one = await openQueue('one', shared)
    await using board = await openTool(shared)
    const data = [
      null,
      1,
      'x',
      [],
      {},
      { id: 1 },
      { id: '' },
      { id: 'no such run' },
      { id: 'a\u0000b' },
      { id: 'x'.repeat(5_000) },
    ]
    await board.tool.addBulk(data.map(item => ({ name: 'evil', data: item })))
    await one.queue.put({ id: 'own', due: Date.now() }, { claim: false }, ctx)
    expect(idsOf(await takeAll(one, 1))).to.deep.equal(['own'])
    await becomes('an empty queue', async () => (await board.tool.getJobCountByTypes('wait', 'delayed')) === 0)
    expect(await board.tool.getJobCountByTypes('active')).to.equal(1)
  }).timeout(60_000)
})
