import type { SvcError } from '@svc/core'
import { Checks, type Space, Store } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'

const PLUGIN = new URL('..', import.meta.url)
const SPACE: Space = { name: 'notes', version: 1, collections: { notes: {} } }

describe('the plugin store-memory', () => {
  it('provides a store and says in the health that it does not last', async () => {
    await using host = await testHost([PLUGIN])
    const store = host.service(Store)
    await store.open(SPACE, testContext())
    await store.batch([{ op: 'put', collection: 'notes', key: 'a', value: 1 }], {}, testContext())
    expect((await store.get('notes', 'a', testContext()))?.value).to.equal(1)
    const report = await host.slot(Checks).get('database')!.probe(testContext())
    expect(report).to.deep.equal({
      status: 'healthy',
      detail: { kind: 'memory', durable: false, scope: 'process', role: 'primary', clock_offset_ms: 0 },
    })
  })

  it('keeps to the bounds of its section', async () => {
    await using host = await testHost([PLUGIN], { config: { store: { max_bytes: 1000, evict: false } } })
    const store = host.service(Store)
    await store.open(SPACE, testContext())
    const big = store.batch([{ op: 'put', collection: 'notes', key: 'a', value: 'x'.repeat(2000) }], {}, testContext())
    expect(await big.catch((error: SvcError) => error.code)).to.equal('STORE_TOO_LARGE')
  })

  it('refuses the keys of the other store', async () => {
    const start = testHost([PLUGIN], { config: { store: { path: 'svc.db' } } })
    const error = await start.then(
      host => host.close(),
      (failed: SvcError) => failed
    )
    expect(error).to.have.property('message').that.includes('store.path')
  })
})
