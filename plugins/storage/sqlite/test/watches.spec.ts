import { copyFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Store, StoreChange } from '@svc/core/contracts'
import { expect } from 'chai'
import { createSqliteStore } from '../src/store.ts'
import { client } from './client-support.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'

const put = (store: Store, key: string, value: string | number = 1) =>
  store.batch([{ op: 'put', collection: 'notes', key, value }], {}, ctx)

/** What is there, by version. */
async function versionsIn(store: Store): Promise<Record<string, number>> {
  const { records } = await store.range('notes', { limit: 1000 }, ctx)
  return Object.fromEntries(records.map(({ key, version }) => [key, version]))
}

/** What a watcher knows at the change of `end`; a version may only fall where the record was deleted between. */
async function followed(changes: AsyncIterator<StoreChange>): Promise<Record<string, number>> {
  const versions: Record<string, number> = {}
  for (;;) {
    const { value, done } = await changes.next()
    if (done) throw new Error('the watch ended')
    if (value.version === 0) delete versions[value.key]
    else versions[value.key] = value.version
    if (value.key === 'end') return versions
  }
}

describe('the watches of the store in SQLite, between processes', () => {
  it('notifies a watcher of writes of another process', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    const changes = store.watch('notes', ctx)[Symbol.asyncIterator]()
    using holder = await client(path, 'hold', 'worker-1')
    await holder.next()
    expect((await changes.next()).value).to.deep.equal({ collection: 'notes', key: 'by', version: 1, value: 'worker-1' })
    await changes.return?.()
  })

  it('hear the last change of every record under load, though a writer is killed amid it and another takes its place', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    const both = [store.watch('notes', ctx), store.watch('notes', ctx)].map(changes => followed(changes[Symbol.asyncIterator]()))
    using lives = await client(path, 'change')
    using dies = await client(path, 'change')
    await dies.next()
    await dies.next()
    dies.child.kill('SIGKILL')
    await dies.exited
    using next = await client(path, 'change')
    await Promise.all([lives.exited, next.exited])
    await put(store, 'end')
    const there = await versionsIn(store)
    for (const known of await Promise.all(both)) expect(known).to.deep.equal(there)
  })

  it('lose nothing when a worker that follows is killed and another one begins under load', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    using writer = await client(path, 'change')
    using first = await client(path, 'follow')
    await first.next()
    await writer.next()
    first.child.kill('SIGKILL')
    using second = await client(path, 'follow')
    await second.next()
    if (writer.child.exitCode === null) await writer.exited
    const known = second.next()
    await put(store, 'end')
    expect(await known).to.deep.equal(await versionsIn(store))
  })

  it('go on where they were once a file that was taken away is back', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    const changes = store.watch('notes', ctx)[Symbol.asyncIterator]()
    await put(store, 'a')
    expect((await changes.next()).value).to.include({ key: 'a', version: 1 })
    const heard = changes.next()
    renameSync(path, `${path}.away`)
    expect(await put(store, 'b').catch((error: { code: string }) => error.code)).to.equal('STORE_UNAVAILABLE')
    renameSync(`${path}.away`, path)
    await put(store, 'b')
    expect((await heard).value).to.include({ key: 'b', version: 1 })
    await changes.return?.()
  })

  it('end when another file takes the place of the one that they watched', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    {
      await using store = createSqliteStore({ path })
      await store.open(SPACE, ctx)
      for (let at = 0; at < 50; at++) await put(store, `k${at}`)
    }
    copyFileSync(path, `${path}.backup`)
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    const changes = store.watch('notes', ctx)[Symbol.asyncIterator]()
    await put(store, 'k0')
    expect((await changes.next()).value).to.include({ key: 'k0' }) // it watches this file, not the next one
    const waiting = changes.next().then(
      () => 'heard',
      (error: { code: string }) => error.code
    )
    renameSync(`${path}.backup`, path)
    await put(store, 'k1', 'in the other file')
    expect(await waiting).to.equal('STORE_UNAVAILABLE')
  })
})
