import { systemContext } from '@svc/core'
import { type ModelDone, Store, type TurnDone } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { SPACE, createRecorder } from '../src/recorder.ts'
import { type By, readUsage, sumsOf, fieldOf, quantileOf } from '../src/reader.ts'

const MEMORY = { name: '@svc/plugin-store-memory', use: new URL('../../../storage/memory/', import.meta.url) }
const ctx = systemContext(new AbortController().signal, 'test')
const as = (id: string) => ({ ...ctx, principal: { id, scopes: [] } })
const HOUR = 3_600_000

async function open() {
  const host = await testHost([MEMORY], { strict: false })
  const store = host.service(Store)
  await openSpace(store, SPACE, {}, ctx)
  const clock = { now: 100 * HOUR }
  const worker = (name: string) =>
    createRecorder({ store, prices: undefined, worker: name, log: host.log, lasting: ctx, now: () => clock.now })
  const read = async (by: By | undefined, step: 'minute' | 'hour' = 'hour', principal?: string) =>
    sumsOf(await readUsage(store, { from: 0, to: 1_000 * HOUR, step, by, principal }, ctx))
  return { host, store, clock, worker, read }
}
const request = { method: 'GET', route: '/x', status: 200, seconds: 0.02 }

describe('the recorder of usage', () => {
  it('adds up workers and buckets', async () => {
    const { host, clock, worker, read } = await open()
    await using _host = host
    const [one, two] = [worker('one'), worker('two')]
    for (const recorder of [one, two]) recorder.request(request, as('anna'))
    clock.now += 90_000
    one.request({ ...request, status: 503 }, as('ben'))
    await Promise.all([one.flush(), two.flush()])
    for (const step of ['minute', 'hour'] as const) {
      const sums = await read('principal', step)
      expect([...sums].map(([name, counts]) => [name, fieldOf(counts, 'requests'), fieldOf(counts, 'errors')])).to.deep.equal([
        ['anna', 2, 0],
        ['ben', 1, 1],
      ])
    }
    expect(fieldOf((await read(undefined, 'hour', 'anna')).get(''), 'requests')).to.equal(2)
  })

  it('keeps its sums and a bounded size with 100,000 labels and principals', async () => {
    const { host, store, worker, read } = await open()
    await using _host = host
    const recorder = worker('one')
    const many = 100_000
    for (let at = 0; at < many; at++) recorder.request({ ...request, route: `/${at}` }, as('anna'))
    for (let at = 0; at < many; at++) recorder.request({ ...request, route: '/x'.repeat(500) }, as(`\ud800 user ${at}`))
    await recorder.flush()
    for (const by of ['principal', 'route', 'status'] as const)
      for (const step of ['minute', 'hour'] as const) {
        const sums = await read(by, step)
        expect(sums.size, by).to.be.at.most(2_100)
        expect(
          [...sums.values()].reduce((all, counts) => all + fieldOf(counts, 'requests'), 0),
          by
        ).to.equal(2 * many)
      }
    expect(fieldOf((await read('route')).get('other'), 'requests')).to.be.above(many / 2)
    const { records } = await store.range('usage_buckets', { limit: 10 }, ctx)
    expect(JSON.stringify(records).length).to.be.below(2_000_000)
  })

  it('keeps what a turn has used through any number of single calls', async () => {
    const { host, worker, read } = await open()
    await using _host = host
    const recorder = worker('one')
    const selected = { provider: 'local', model: 'm' } as ModelDone['selected']
    const done = { turn: 'turn', selected, usage: { input: 3, output: 4 } } as ModelDone
    await recorder.model(done, as('anna'))
    for (let at = 0; at < 10_001; at++) await recorder.model({ ...done, turn: `call ${at}`, single: true }, as('ben'))
    recorder.turn({ turn: 'turn', end: { toolsUsed: [], conversationId: 'c' } } as unknown as TurnDone, as('anna'))
    await recorder.flush()
    expect(fieldOf((await read('conversation')).get('c') ?? [], 'output')).to.equal(4)
    expect(fieldOf((await read('model')).get('local/m') ?? [], 'calls')).to.equal(10_002)
  })

  it('does not go back to an earlier bucket when the clock is set back', async () => {
    const { host, clock, worker, read } = await open()
    await using _host = host
    const recorder = worker('one')
    recorder.request(request, ctx)
    await recorder.flush()
    clock.now += 2 * HOUR
    recorder.request(request, ctx)
    await recorder.flush()
    clock.now -= 2 * HOUR
    recorder.request(request, ctx)
    await recorder.flush()
    expect(fieldOf((await read(undefined)).get(''), 'requests')).to.equal(3)
  })

  it('writes again what the store did not take', async () => {
    const { host, store, read } = await open()
    await using _host = host
    let isBroken = true
    const failing: Store = { ...store, batch: (...args) => (isBroken ? Promise.reject(new Error('full')) : store.batch(...args)) }
    const recorder = createRecorder({
      store: failing,
      prices: undefined,
      worker: 'w',
      log: host.log,
      lasting: ctx,
      now: () => HOUR,
    })
    recorder.request(request, ctx)
    await recorder.flush()
    isBroken = false
    await recorder.flush()
    expect(fieldOf((await read(undefined)).get(''), 'requests')).to.equal(1)
  })

  it('estimates quantiles between the bounds', () => {
    expect(quantileOf([], 0.5)).to.equal(null)
    expect(quantileOf([0, 10], 0.5)).to.equal(7.5)
    expect(quantileOf([...Array.from({ length: 13 }, () => 0), 5], 0.99)).to.equal(60_000)
  })
})
