import { codeOf } from '@svc/core'
import type { RunClaim } from '@svc/core/contracts'
import { bossSchema, requireNode } from '../src/boss.ts'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { becomes, ctx, newSchema, openQueue } from './support.ts'

type Queue = Awaited<ReturnType<typeof openQueue>>

const NAMES = [
  `'; DROP TABLE job; --`,
  `"; DROP SCHEMA public CASCADE; --`,
  `$1 $$ %s %I \\ \\u0000`,
  '../../etc/passwd',
  'run x',
  `~${'0'.repeat(64)}`,
  '€ 🐘 \u202e ﷽ \u0001\u001f\u007f\n\r\t',
  '{"id":"other"}',
  'a'.repeat(1_000),
  '🐘'.repeat(250),
]
const WRONG = ['', 'a\u0000b', '\ud800', 'x'.repeat(1_025), '🐘'.repeat(300)]

async function takeAll({ queue }: Queue, count: number): Promise<RunClaim[]> {
  const claims: RunClaim[] = []
  for await (const claim of queue.take({ ...ctx, signal: AbortSignal.timeout(40_000) })) {
    claims.push(claim)
    if (claims.length >= count) break
  }
  return claims
}
const idsOf = (claims: readonly RunClaim[]) => claims.map(({ id }) => id).toSorted()

describe('the queue of runs in PostgreSQL, before it connects', () => {
  it('refuses an old Node.js with a reason', () => {
    for (const version of ['20.19.5', '22.11.0', '18.0.0', '']) {
      expect(() => requireNode(version))
        .to.throw(/needs Node\.js 22\.12 or newer/)
        .with.property('code', 'QUEUE_NODE_OLD')
    }
    for (const version of ['22.12.0', '22.20.1', '24.0.0', '100.0.0']) expect(() => requireNode(version)).not.to.throw()
  })

  it('refuses a schema whose name leaves no room for its own', () => {
    expect(bossSchema('svc')).to.equal('svc_queue')
    expect(bossSchema('x'.repeat(44))).to.have.length(50)
    expect(() => bossSchema('x'.repeat(45)))
      .to.throw()
      .with.property('code', 'STORE_CONFIG_INVALID')
  })
})

describeWith('postgres', 'the queue of runs in PostgreSQL and hostile input', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 40 } }))))
  after(() => stack.disposeAsync())
  const open = () => openQueue('one', { url: postgres.url, schema: newSchema() })

  it('keeps runs with any name that a store accepts apart, in every call', async () => {
    await using one = await open()
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
    for (const claim of again) await queue.leave(claim, { due: null }, ctx)
    for (const id of NAMES) {
      await queue.wake(id, ctx)
      const [own] = await Array.fromAsync(firstOf(queue.takeOne(id, ctx)))
      expect(own!.id).to.equal(id)
      await queue.leave(own!, 'ended', ctx)
      expect(await Array.fromAsync(queue.takeOne(id, ctx))).to.deep.equal([])
    }
    const [{ n } = { n: -1 }] = await postgres.query<{ n: number }>(`SELECT count(*)::integer AS n FROM ${one.schema}.job`)
    expect(n, 'nothing is left').to.equal(0)
  }).timeout(120_000)

  it('pins runs to nodes with any name', async () => {
    await using one = await open()
    for (const [at, affinity] of NAMES.entries())
      expect(await one.queue.put({ id: `r${at}`, due: Date.now(), affinity }, { claim: true }, ctx)).to.equal(undefined)
    await one.queue.put({ id: 'own', due: Date.now(), affinity: 'one' }, { claim: false }, ctx)
    expect(idsOf(await takeAll(one, 1))).to.deep.equal(['own'])
  }).timeout(60_000)

  it('rejects names that no store accepts, limits and times that are none, and writes nothing', async () => {
    await using one = await open()
    const { queue } = one
    const due = Date.now()
    for (const claim of [false, true]) {
      for (const name of WRONG) {
        const refused = async (run: object) =>
          expect(await queue.put({ id: 'r', due, ...run }, { claim }, ctx).catch(codeOf)).to.equal('STORE_INVALID')
        await refused({ id: name })
        await refused({ group: { name, limit: 1 } })
        await refused({ affinity: name })
      }
      for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3'])
        expect(
          await queue.put({ id: 'r', due, group: { name: 'g', limit: limit as number } }, { claim }, ctx).catch(codeOf)
        ).to.equal('STORE_INVALID')
      expect(await queue.put({ id: 'r', due: Number.NaN }, { claim }, ctx).catch(codeOf)).to.equal('STORE_INVALID')
    }
    expect(await one.jobs.overdueS([0])).to.equal(0)
    for (const name of WRONG) await queue.wake(name, ctx)
  }).timeout(60_000)

  it('takes any time, and a limit without an end', async () => {
    await using one = await open()
    const dues = { past: -1e300, zero: 0, now: Date.now(), far: 8.64e15, never: Number.POSITIVE_INFINITY, huge: Number.MAX_VALUE }
    const group = { name: 'g', limit: Number.MAX_SAFE_INTEGER }
    for (const [id, due] of Object.entries(dues)) await one.queue.put({ id, due, group }, { claim: false }, ctx)
    expect(idsOf(await takeAll(one, 3))).to.deep.equal(['now', 'past', 'zero'])
    for (const id of ['far', 'never', 'huge']) await one.queue.wake(id, ctx)
    expect(idsOf(await takeAll(one, 3))).to.deep.equal(['far', 'huge', 'never'])
  }).timeout(60_000)

  it('deletes jobs that others have written into its tables, and goes on', async () => {
    await using one = await open()
    const rows = [
      null,
      1,
      'x',
      [],
      {},
      { id: 1 },
      { id: '' },
      { id: 'r', affinity: 5 },
      { id: 'r', group: { name: 'g', limit: -1 } },
    ]
    await one.boss.insert(
      'runs',
      rows.map((data, at) => ({ data: data as object, singletonKey: `s${at}` }))
    )
    await one.queue.put({ id: 'own', due: Date.now() }, { claim: false }, ctx)
    expect(idsOf(await takeAll(one, 1))).to.deep.equal(['own'])
    await becomes('an empty queue', async () => {
      const taking = takeAll(one, 1).catch(() => [])
      await one.queue.put({ id: 'next', due: Date.now() }, { claim: false }, ctx)
      for (const claim of await taking) await one.queue.leave(claim, 'ended', ctx)
      const left = await postgres.query<{ key: string }>(`SELECT singleton_key AS key FROM ${one.schema}.job`)
      return left.every(({ key }) => key === 'own')
    })
  }).timeout(90_000)
})

/** The first item, then the end. */
async function* firstOf<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const item of items) {
    yield item
    return
  }
}
