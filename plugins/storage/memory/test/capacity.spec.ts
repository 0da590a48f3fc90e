import { systemContext } from '@svc/core'
import type { Space, StoreOp } from '@svc/core/contracts'
import { expect } from 'chai'
import { createMemoryStore } from '../src/store.ts'

const ctx = systemContext(new AbortController().signal)
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
  await store.open(CHAT, ctx)
  await store.open(SETTINGS, ctx)
  return store
}
const codeOf = (work: Promise<unknown>) => work.then(() => 'done').catch(error => error.code)

describe('the bounds of the store in memory', () => {
  it('gives up whole things, those written longest ago first', async () => {
    await using store = await open({ maxRecords: 9 })
    for (const [at, id] of ['a', 'b', 'c'].entries()) await store.batch(turn(id, at), {}, ctx)
    await store.batch([{ op: 'put', collection: 'talks', key: 'a', value: { at: 9 } }], {}, ctx)
    await store.batch(turn('d', 10), {}, ctx)
    expect(await store.get('talks', 'b', ctx)).to.equal(undefined)
    expect(await store.read('messages', 'b', { limit: 9 }, ctx)).to.deep.equal([])
    const page = await store.range('talks', { index: 'by_at', limit: 9 }, ctx)
    expect(page.records.map(record => record.key)).to.deep.equal(['c', 'a', 'd'])
    expect((await store.read('messages', 'a', { limit: 9 }, ctx)).length).to.equal(2)
  })

  it('takes room from the fullest space only', async () => {
    await using store = await open({ maxRecords: 10 })
    await store.batch([{ op: 'put', collection: 'settings', key: 'profile', value: 'mine' }], {}, ctx)
    for (let at = 0; at < 50; at++) await store.batch(turn(`t${at}`, at), {}, ctx)
    expect((await store.get('settings', 'profile', ctx))?.value).to.equal('mine')
    expect(await store.get('talks', 't46', ctx)).to.equal(undefined)
    expect(await store.get('talks', 't49', ctx)).not.to.equal(undefined)
  })

  it('stays within its bytes', async () => {
    await using store = await open({ maxBytes: 10_000 })
    const text = 'x'.repeat(1000)
    for (let at = 0; at < 100; at++) await store.batch([{ op: 'append', log: 'messages', id: `t${at}`, values: [text] }], {}, ctx)
    const left = []
    for (let at = 0; at < 100; at++) if ((await store.read('messages', `t${at}`, { limit: 1 }, ctx)).length) left.push(at)
    expect(left.length).to.be.within(5, 10)
    expect(left.at(-1)).to.equal(99)
  })

  it('notifies watchers of evicted records', async () => {
    await using store = await open({ maxRecords: 2 })
    const changes = store.watch('talks', ctx)[Symbol.asyncIterator]()
    for (const key of ['a', 'b', 'c']) await store.batch([{ op: 'put', collection: 'talks', key, value: key }], {}, ctx)
    const seen = [await changes.next(), await changes.next(), await changes.next()].map(
      ({ value }) => `${value.key}${value.version}`
    )
    expect(seen).to.have.members(['b1', 'c1', 'a0'])
    await changes.return?.()
  })

  it('refuses what does not fit at all and keeps everything else', async () => {
    await using store = await open({ maxBytes: 10_000 })
    await store.batch(turn('a', 1), {}, ctx)
    expect(
      await codeOf(store.batch([{ op: 'put', collection: 'settings', key: 'big', value: 'x'.repeat(20_000) }], {}, ctx))
    ).to.equal('STORE_TOO_LARGE')
    expect(await store.get('settings', 'big', ctx)).to.equal(undefined)
    expect((await store.get('talks', 'a', ctx))?.value).to.deep.equal({ at: 1 })
    expect((await store.read('messages', 'a', { limit: 9 }, ctx)).length).to.equal(2)
  })

  it('refuses instead of giving up anything when it may not evict', async () => {
    await using store = await open({ maxRecords: 3, evict: false })
    await store.batch(turn('a', 1), {}, ctx)
    expect(await codeOf(store.batch(turn('b', 2), {}, ctx))).to.equal('STORE_TOO_LARGE')
    expect(await store.get('talks', 'b', ctx)).to.equal(undefined)
    await store.batch([{ op: 'drop', log: 'messages', id: 'a' }], {}, ctx)
    await store.batch([{ op: 'put', collection: 'talks', key: 'b', value: 1 }], {}, ctx)
    expect((await store.get('talks', 'a', ctx))?.version).to.equal(1)
  })
})
