import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect } from 'chai'
import { createSqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, use } from './support.ts'

const CLIENT = new URL('./children/client.ts', import.meta.url)

/** Starts a process on the file; it is killed at the latest with the test. */
async function client(
  path: string,
  task: string,
  name = 'child'
): Promise<{ child: ChildProcess; said: unknown[]; exited: Promise<unknown[]>; next(): Promise<unknown> } & Disposable> {
  const child = fork(CLIENT, [path, JSON.stringify(SPACE), task, name], { execArgv: ['--conditions=svc-source'] })
  const exited = once(child, 'exit')
  const said: unknown[] = []
  const waiting: ((message: unknown) => void)[] = []
  child.on('message', message => {
    said.push(message)
    waiting.shift()?.(message)
  })
  const next = () => new Promise<unknown>(resolve => waiting.push(resolve))
  await next()
  return { child, said, exited, next, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

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
    await store.open(SPACE, use)
    for (const n of acknowledged) {
      expect((await store.get('notes', `k${n}`, use))?.value).to.include({ n })
      expect((await store.read('lines', `k${n}`, { limit: 9 }, use)).map(entry => entry.value)).to.deep.equal([n, n])
    }
    const page = await store.range('notes', { index: 'by_n', from: 0, limit: 1000 }, use)
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
    await store.open(SPACE, use)
    for (let n = 0; n < writer.said.length + 100; n++) {
      const [record, entries] = [await store.get('notes', `k${n}`, use), await store.read('lines', `k${n}`, { limit: 9 }, use)]
      expect(entries.length).to.equal(record ? 2 : 0)
    }
  })

  it('lets another process wait for a lease and write with the next fence', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, use)
    using holder = await client(path, 'hold')
    const fence = await holder.next()
    const waiting = store.acquire('shared', { holder: 'parent', ttlMs: 60_000, waitMs: 10_000 }, use)
    holder.child.send('release')
    const lease = await waiting
    expect(lease.fence).to.be.greaterThan(Number(fence))
    await store.batch([{ op: 'put', collection: 'notes', key: 'by', value: 'parent' }], { fence: lease }, use)
    expect((await store.get('notes', 'by', use))?.version).to.equal(2)
  })

  it('frees the leases of a killed process at once when it is told of the death', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, use)
    using holder = await client(path, 'hold', 'worker-7:')
    const fence = Number(await holder.next())
    holder.child.kill('SIGKILL')
    await holder.exited
    const waiting = store.acquire('shared', { holder: 'parent', ttlMs: 60_000, waitMs: 10_000 }, use)
    await store.releaseHolder('worker-7:', use)
    expect((await waiting).fence).to.be.greaterThan(fence)
    const late = store.batch(
      [{ op: 'put', collection: 'notes', key: 'by', value: 'ghost' }],
      { fence: { lease: 'shared', fence } },
      use
    )
    expect(await late.catch(error => error.code)).to.equal('STORE_FENCED')
  })

  it('loses no increment of two processes that write the same record at once', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    using one = await client(path, 'count')
    using two = await client(path, 'count')
    await Promise.all([one.exited, two.exited])
    await using store = createSqliteStore({ path })
    await store.open(SPACE, use)
    expect((await store.get('notes', 'counter', use))?.value).to.equal(400)
    const entries = await store.read('lines', 'counter', { limit: 1000 }, use)
    expect(entries.map(entry => entry.value)).to.deep.equal(Array.from({ length: 400 }, (_, i) => i + 1))
  })

  it('tells a watcher of another process’s writes', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, use)
    const changes = store.watch('notes', use)[Symbol.asyncIterator]()
    using holder = await client(path, 'hold', 'worker-1')
    await holder.next()
    expect((await changes.next()).value).to.deep.equal({ collection: 'notes', key: 'by', version: 1, value: 'worker-1' })
    await changes.return?.()
  })

  it('lets its process end by itself once it is closed', async () => {
    await using folder = await temporaryFolder()
    using counter = await client(join(folder.path, 'svc.db'), 'count')
    const [code] = await counter.exited
    expect([code, counter.said.at(-1)]).to.deep.equal([0, 'closed'])
  })
})
