import { join } from 'node:path'
import { expect } from 'chai'
import { createSqliteStore } from '../src/store.ts'
import { client } from './client-support.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'

describe('the store in SQLite, shared by processes', () => {
  it('has every acknowledged write of a process that was killed amid them', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    using writer = await client(path, 'write')
    while (writer.said.length < 2000) await writer.next()
    writer.child.kill('SIGKILL')
    await writer.exited
    const acknowledged = writer.said.filter(message => typeof message === 'number')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    for (const n of acknowledged) {
      expect((await store.get('notes', `k${n}`, ctx))?.value).to.include({ n })
      expect((await store.read('lines', `k${n}`, { limit: 9 }, ctx)).map(entry => entry.value)).to.deep.equal([n, n])
    }
    const page = await store.range('notes', { index: 'by_n', from: 0, limit: 1000 }, ctx)
    expect(page.records.length).to.equal(1000)
  })

  it('has whole batches only of a process that was killed amid them', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    using writer = await client(path, 'write')
    while (writer.said.length < 300) await writer.next()
    writer.child.kill('SIGKILL')
    await writer.exited
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    for (let n = 0; n < writer.said.length + 100; n++) {
      const [record, entries] = [await store.get('notes', `k${n}`, ctx), await store.read('lines', `k${n}`, { limit: 9 }, ctx)]
      expect(entries.length).to.equal(record ? 2 : 0)
    }
  })

  it('lets another process wait for a lease and write with the next fence', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    using holder = await client(path, 'hold')
    const fence = await holder.next()
    const waiting = store.acquire('shared', { holder: 'parent', ttlMs: 60_000, waitMs: 10_000 }, ctx)
    holder.child.send('release')
    const lease = await waiting
    expect(lease.fence).to.be.greaterThan(Number(fence))
    await store.batch([{ op: 'put', collection: 'notes', key: 'by', value: 'parent' }], { fence: lease }, ctx)
    expect((await store.get('notes', 'by', ctx))?.version).to.equal(2)
  })

  it('releases the leases of a killed process when its death is reported', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    using holder = await client(path, 'hold', 'worker-7:')
    const fence = Number(await holder.next())
    holder.child.kill('SIGKILL')
    await holder.exited
    const waiting = store.acquire('shared', { holder: 'parent', ttlMs: 60_000, waitMs: 10_000 }, ctx)
    await store.releaseHolder('worker-7:', ctx)
    expect((await waiting).fence).to.be.greaterThan(fence)
    const late = store.batch(
      [{ op: 'put', collection: 'notes', key: 'by', value: 'ghost' }],
      { fence: { lease: 'shared', fence } },
      ctx
    )
    expect(await late.catch(error => error.code)).to.equal('STORE_FENCED')
  })

  it('loses no increment of two processes that write the same record at once', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    using connection = await client(path, 'count')
    using two = await client(path, 'count')
    await Promise.all([connection.exited, two.exited])
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    expect((await store.get('notes', 'counter', ctx))?.value).to.equal(400)
    const entries = await store.read('lines', 'counter', { limit: 1000 }, ctx)
    expect(entries.map(entry => entry.value)).to.deep.equal(Array.from({ length: 400 }, (_, i) => i + 1))
  })

  it('counts exactly what several processes hit at once', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    using connection = await client(path, 'hits')
    using two = await client(path, 'hits')
    await Promise.all([connection.exited, two.exited])
    const counted = [connection, two].map(({ said }) => said.find(message => typeof message === 'number'))
    expect(Number(counted[0]) + Number(counted[1])).to.equal(500)
    await using store = createSqliteStore({ path })
    const state = await store.count('shared', [{ ms: 3_600_000, limit: 501 }], ctx)
    expect([state.counted, state.windows[0]!.count]).to.deep.equal([true, 501])
  })

  it('has every hit that was counted when all its processes are killed', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    using connection = await client(path, 'hit')
    using two = await client(path, 'hit')
    while (connection.said.length < 500) await connection.next()
    while (two.said.length < 500) await two.next()
    for (const { child } of [connection, two]) child.kill('SIGKILL')
    await Promise.all([connection.exited, two.exited])
    const counts = [...connection.said, ...two.said].filter(message => typeof message === 'number')
    expect(new Set(counts).size, 'one place was given twice').to.equal(counts.length)
    await using store = createSqliteStore({ path })
    const state = await store.count('shared', [{ ms: 3_600_000, limit: 1_000_000 }], ctx)
    expect(state.windows[0]!.count).to.be.greaterThan(Math.max(...counts))
  })

  it('lets its process end by itself once it is closed', async () => {
    await using folder = await temporaryFolder()
    using counter = await client(join(folder.path, 'svc.db'), 'count')
    const [code] = await counter.exited
    expect([code, counter.said.at(-1)]).to.deep.equal([0, 'closed'])
  })
})
