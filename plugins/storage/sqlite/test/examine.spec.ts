import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Checks, Store } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'

describe('the thorough check of the store', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-examine-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  async function openHost() {
    const path = join(folder, 'svc.db')
    const host = await testHost([new URL('..', import.meta.url)], { config: { store: { path } } })
    const check = host.slot(Checks).get('database')!
    return {
      path,
      store: host.service(Store),
      examine: () => check.examine!(testContext()),
      [Symbol.asyncDispose]: () => host.close(),
    }
  }

  it('reports the contents of the file and the free space', async () => {
    await using host = await openHost()
    await host.store.open({ name: 'things', version: 3, collections: { thing: {} } }, testContext())
    await host.store.batch([{ op: 'put', collection: 'thing', key: 'a', value: 1 }], {}, testContext())
    const { status, detail } = await host.examine()
    expect(status).to.equal('healthy')
    expect(detail).to.deep.include({ path: host.path, spaces: [{ name: 'things', version: 3 }], records: 1, entries: 0 })
    expect(detail?.free_bytes).to.be.above(0)
  })

  it('finds a page that is damaged, although the store works where it is not', async () => {
    await fill()
    const file = await open(join(folder, 'svc.db'), 'r+')
    const { size } = await file.stat()
    expect(size).to.be.above(40 * PAGE)
    await file.write(Buffer.alloc(2 * PAGE, 0x5a), 0, 2 * PAGE, Math.floor(size / PAGE / 2) * PAGE)
    await file.close()
    await using host = await openHost()
    const { status, reason } = await host.examine()
    expect([status, /damaged|malformed/.test(reason ?? '')]).to.deep.equal(['unhealthy', true])
  })

  async function fill() {
    await using host = await openHost()
    await host.store.open({ name: 'things', version: 1, collections: { thing: {} } }, testContext())
    const values = Array.from({ length: 500 }, (_, at) => ({ key: String(at), value: 'x'.repeat(400) }))
    await host.store.batch(
      values.map(value => ({ op: 'put', collection: 'thing', ...value }) as const),
      {},
      testContext()
    )
  }
})

const PAGE = 4096
