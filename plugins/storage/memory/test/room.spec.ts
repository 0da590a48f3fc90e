import { systemUse } from '@svc/core'
import type { Space, StoreOp } from '@svc/core/contracts'
import { expect } from 'chai'
import { createMemoryStore } from '../src/store.ts'

const use = systemUse(new AbortController().signal)
const CHAT: Space = {
  name: 'chat',
  version: 1,
  collections: { talks: { indexes: { by_at: ['at'] }, watched: true } },
  logs: ['messages'],
}
const SETTINGS: Space = { name: 'settings', version: 1, collections: { settings: {} } }

const turn = (id: string, at: number): StoreOp[] => [
  { op: 'put', collection: 'talks', key: id, value: { at } },
  { op: 'append', log: 'messages', id, values: ['question', 'answer'] },
]
const open = async (limits: { maxRecords?: number; maxBytes?: number; evict?: boolean }) => {
  const store = createMemoryStore({ maxRecords: 1000, maxBytes: 1 << 20, evict: true, ...limits })
  await store.open(CHAT, use)
  await store.open(SETTINGS, use)
  return store
}
const codeOf = (work: Promise<unknown>) => work.then(() => 'done').catch(error => error.code)

describe('the bounds of the store in memory', () => {
  it('gives up whole things, those written longest ago first', async () => {
    await using store = await open({ maxRecords: 9 })
    for (const [at, id] of ['a', 'b', 'c'].entries()) await store.batch(turn(id, at), {}, use)
    await store.batch([{ op: 'put', collection: 'talks', key: 'a', value: { at: 9 } }], {}, use)
    await store.batch(turn('d', 10), {}, use)
    expect(await store.get('talks', 'b', use)).to.equal(undefined)
    expect(await store.read('messages', 'b', { limit: 9 }, use)).to.deep.equal([])
    const page = await store.range('talks', { index: 'by_at', limit: 9 }, use)
    expect(page.records.map(record => record.key)).to.deep.equal(['c', 'a', 'd'])
    expect((await store.read('messages', 'a', { limit: 9 }, use)).length).to.equal(2)
  })

  it('takes room from the fullest space only', async () => {
    await using store = await open({ maxRecords: 10 })
    await store.batch([{ op: 'put', collection: 'settings', key: 'profile', value: 'mine' }], {}, use)
    for (let at = 0; at < 50; at++) await store.batch(turn(`t${at}`, at), {}, use)
    expect((await store.get('settings', 'profile', use))?.value).to.equal('mine')
    expect(await store.get('talks', 't46', use)).to.equal(undefined)
    expect(await store.get('talks', 't49', use)).not.to.equal(undefined)
  })

  it('stays within its bytes', async () => {
    await using store = await open({ maxBytes: 10_000 })
    const text = 'x'.repeat(1000)
    for (let at = 0; at < 100; at++) await store.batch([{ op: 'append', log: 'messages', id: `t${at}`, values: [text] }], {}, use)
    const left = []
    for (let at = 0; at < 100; at++) if ((await store.read('messages', `t${at}`, { limit: 1 }, use)).length) left.push(at)
    expect(left.length).to.be.within(5, 10)
    expect(left.at(-1)).to.equal(99)
  })

  it('tells watchers of what goes', async () => {
    await using store = await open({ maxRecords: 2 })
    const changes = store.watch('talks', use)[Symbol.asyncIterator]()
    for (const key of ['a', 'b', 'c']) await store.batch([{ op: 'put', collection: 'talks', key, value: key }], {}, use)
    const seen = [await changes.next(), await changes.next(), await changes.next()].map(
      ({ value }) => `${value.key}${value.version}`
    )
    expect(seen).to.have.members(['b1', 'c1', 'a0'])
    await changes.return?.()
  })

  it('refuses what does not fit at all and keeps everything else', async () => {
    await using store = await open({ maxBytes: 10_000 })
    await store.batch(turn('a', 1), {}, use)
    expect(
      await codeOf(store.batch([{ op: 'put', collection: 'settings', key: 'big', value: 'x'.repeat(20_000) }], {}, use))
    ).to.equal('STORE_TOO_LARGE')
    expect(await store.get('settings', 'big', use)).to.equal(undefined)
    expect((await store.get('talks', 'a', use))?.value).to.deep.equal({ at: 1 })
    expect((await store.read('messages', 'a', { limit: 9 }, use)).length).to.equal(2)
  })

  it('refuses instead of giving up anything when it may not evict', async () => {
    await using store = await open({ maxRecords: 3, evict: false })
    await store.batch(turn('a', 1), {}, use)
    expect(await codeOf(store.batch(turn('b', 2), {}, use))).to.equal('STORE_TOO_LARGE')
    expect(await store.get('talks', 'b', use)).to.equal(undefined)
    await store.batch([{ op: 'drop', log: 'messages', id: 'a' }], {}, use)
    await store.batch([{ op: 'put', collection: 'talks', key: 'b', value: 1 }], {}, use)
    expect((await store.get('talks', 'a', use))?.version).to.equal(1)
  })
})
