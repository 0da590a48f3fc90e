import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningHost, startHost, svcError } from '@svc/core'
import { type Json, Store } from '@svc/core/contracts'
import { fetchRevision, newestRevision, type Revision, REVISION_SPACE, writeRevision } from '@svc/plugin-manager/set'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { failing, failure } from './support/workspace.ts'

const FACTS = {
  plugins: ['svc-plugin-one 1.0.0'],
  by: 'anna@one',
  at: '2026-01-01T00:00:00Z',
  version: '1.2.3',
  platform: 'linux-x64',
}
/** Three chunks. */
const BYTES = 600_000
const TWO_GIB = 2 * 1024 ** 3

describe('a revision of the plugins of a cluster', () => {
  const ctx = testContext()
  let folder: string
  let host: RunningHost
  let store: Store
  let files = 0

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-revisions-'))
    host = await startHost({ plugins: ['@svc/plugin-store-memory'], from: [import.meta.url] })
    store = host.service(Store)
    await store.open(REVISION_SPACE, ctx)
  })
  afterEach(async () => {
    await host.close()
    await rm(folder, { recursive: true, force: true })
  })

  const packed = async (bytes: Uint8Array = randomBytes(BYTES)) => {
    const file = join(folder, `packed-${++files}`)
    await writeFile(file, bytes)
    return file
  }
  const write = async (base: number, file?: string, into = store, cluster = 'svc') =>
    writeRevision({ store: into, cluster }, { base, file, facts: FACTS }, ctx)
  const fetchTo = () => join(folder, `fetched-${++files}`)
  const count = async (collection: string) => (await store.range(collection, { limit: 1000 }, ctx)).records.length
  const put = (collection: string, key: string, value: Json) => store.batch([{ op: 'put', collection, key, value }], {}, ctx)
  /** Fetching it fails, and leaves no file. */
  async function refused(revision: Revision) {
    const file = fetchTo()
    const error = await failing(fetchRevision(store, revision, file, ctx))
    expect(existsSync(file)).to.equal(false)
    expect(error.hint).to.be.a('string')
    return `${error.code} ${error.message}`
  }

  it('comes back byte for byte, with its number, writer and hash', async () => {
    expect(await newestRevision({ store, cluster: 'svc' }, ctx)).to.equal(undefined)
    const bytes = randomBytes(BYTES)
    const revision = await write(0, await packed(bytes))
    expect(await newestRevision({ store, cluster: 'svc' }, ctx)).to.deep.equal(revision)
    expect([revision.revision, revision.by, revision.bytes, revision.chunks.length]).to.deep.equal([1, 'anna@one', BYTES, 3])
    const file = fetchTo()
    await fetchRevision(store, revision, file, ctx)
    expect((await readFile(file)).equals(bytes)).to.equal(true)
  })

  it('is written by one of those that change the same one; the others get a conflict that names the writer', async () => {
    await write(0, await packed())
    const sets = await Promise.all([packed(), packed(), packed()])
    const done = await Promise.allSettled(sets.map(file => write(1, file)))
    const refusals = done
      .filter(result => result.status === 'rejected')
      .map(({ reason }) => reason as { code: string; message: string })
    expect(refusals.map(({ code }) => code)).to.deep.equal(['PLUGIN_SET_CONFLICT', 'PLUGIN_SET_CONFLICT'])
    expect(refusals[0]!.message).to.include('revision 2, written by anna@one')
    expect((await newestRevision({ store, cluster: 'svc' }, ctx))!.revision).to.equal(2)
    expect(await failure(write(7, await packed()))).to.equal('PLUGIN_SET_CONFLICT')
  })

  it('is the same one if nothing but links has changed, and has no bytes without plugins', async () => {
    const file = await packed()
    const first = await write(0, file)
    expect(await write(1, file)).to.deep.equal(first)
    expect(await write(1)).to.include({ revision: 2, sha256: '', bytes: 0 })
  })

  it('is that of one cluster in a store that several share', async () => {
    const file = await packed()
    const [first, other] = [await write(0, file), await write(0, file, store, 'svc2')]
    expect([first.revision, other.revision]).to.deep.equal([1, 1])
    for (let base = 1; base < 6; base++) await write(base, await packed(randomBytes(10)))
    await fetchRevision(store, other, fetchTo(), ctx)
    expect((await newestRevision({ store, cluster: 'svc2' }, ctx))!.revision).to.equal(1)
    expect((await newestRevision({ store, cluster: 'svc' }, ctx))!.revision).to.equal(6)
  })

  it('is refused if bytes in the store were changed, are missing, or are others than it says', async () => {
    const revision = await write(0, await packed())
    const [, second] = revision.chunks as [string, string, string]
    const { value } = (await store.get('plugin_chunks', second, ctx))!
    const bytes = Buffer.from((value as { bytes: string }).bytes, 'base64')
    bytes[7]! ^= 1
    for (const wrong of [{ bytes: bytes.toString('base64') }, { bytes: '' }, { bytes: 7 }, 'text', null]) {
      await put('plugin_chunks', second, wrong)
      expect(await refused(revision)).to.match(/^PLUGIN_SET_DAMAGED .*chunk 2 of 3/)
    }
    await store.batch([{ op: 'delete', collection: 'plugin_chunks', key: second }], {}, ctx)
    expect(await refused(revision)).to.match(/^PLUGIN_SET_DAMAGED .*chunk 2 of 3 is missing/)
    await put('plugin_chunks', second, value)
    // a chunk and its name can be changed together, but not the hash of the whole
    const swapped = { ...revision, chunks: [...revision.chunks].reverse() }
    for (const wrong of [
      { ...revision, sha256: 'f'.repeat(64) },
      { ...revision, bytes: BYTES - 1 },
      { ...revision, bytes: 1 },
      { ...revision, chunks: [] },
      swapped,
    ])
      expect(await refused(wrong)).to.match(/^PLUGIN_SET_DAMAGED/)
  })

  it('is refused before anything is read if its record is not valid, or of 2 GiB', async () => {
    const revision = await write(0, await packed())
    for (const wrong of [
      { ...revision, chunks: ['../../etc/passwd'] },
      { ...revision, sha256: 'x' },
      { ...revision, revision: 5 },
      { ...revision, plugins: [7] },
      {},
      null,
    ]) {
      await put('plugin_revisions', 'svc/000000000002', wrong as unknown as Json)
      expect(await failure(newestRevision({ store, cluster: 'svc' }, ctx))).to.equal('PLUGIN_REVISION_INVALID')
    }
    const chunks = Array.from({ length: TWO_GIB / (256 * 1024) }, () => revision.chunks[0]!)
    expect(await refused({ ...revision, bytes: TWO_GIB, chunks })).to.match(/^PLUGIN_SET_TOO_LARGE .*2048 MiB/)
  })

  it('is not written if it is too large, and says the limit', async () => {
    const file = await packed()
    await using handle = await open(file, 'r+')
    await handle.truncate(TWO_GIB) // without blocks on the disk
    const error = await failing(write(0, file))
    expect([error.code, error.message]).to.deep.equal([
      'PLUGIN_SET_TOO_LARGE',
      'the installed plugins are 2048 MiB packed; a cluster accepts at most 256 MiB',
    ])
    expect(await count('plugin_chunks')).to.equal(0)
  })

  it('does not exist if its writer is killed between two chunks; the next one removes the rest', async () => {
    const first = await write(0, await packed())
    let writes = 0
    const dying: Store = {
      ...bound(store),
      async batch(ops, options, by) {
        if (++writes > 2) throw svcError('STORE_UNAVAILABLE', 'the writer was killed', { hint: 'None' })
        return store.batch(ops, options, by)
      },
    }
    expect(await failure(write(1, await packed(), dying))).to.equal('STORE_UNAVAILABLE')
    expect(await newestRevision({ store, cluster: 'svc' }, ctx)).to.deep.equal(first)
    expect([await count('plugin_chunks'), await count('plugin_uploads')]).to.deep.equal([4, 1])
    await write(1, await packed())
    expect([await count('plugin_chunks'), await count('plugin_uploads')]).to.deep.equal([6, 0])
    await fetchRevision(store, first, fetchTo(), ctx)
  })

  it('is not written to a store that is read-only', async () => {
    const readOnly: Store = {
      ...bound(store),
      batch: async () => {
        throw svcError('STORE_UNAVAILABLE', 'the store is read-only', { details: { reason: 'read_only' }, hint: 'None' })
      },
    }
    expect(await failure(write(0, await packed(), readOnly))).to.equal('STORE_UNAVAILABLE read_only')
    expect(await newestRevision({ store, cluster: 'svc' }, ctx)).to.equal(undefined)
  })

  it('goes with its bytes when five newer ones are there, except bytes that a newer one has too', async () => {
    const [shared, end] = [randomBytes(256 * 1024), randomBytes(10)]
    const old = await packed(Buffer.concat([shared, end]))
    await write(0, old)
    for (let base = 1; base < 5; base++) await write(base, await packed(randomBytes(10)))
    await write(5, await packed(Buffer.concat([shared, randomBytes(10)])))
    expect(await count('plugin_revisions')).to.equal(5)
    expect(await count('plugin_chunks')).to.equal(6)
    await fetchRevision(store, (await newestRevision({ store, cluster: 'svc' }, ctx))!, fetchTo(), ctx)
  })
})

/** Its methods, for a store that replaces one of them. */
const bound = (store: Store): Store => ({
  open: (space, by) => store.open(space, by),
  get: (collection, key, by) => store.get(collection, key, by),
  range: (collection, query, by) => store.range(collection, query, by),
  read: (log, id, query, by) => store.read(log, id, query, by),
  batch: (ops, options, by) => store.batch(ops, options, by),
  acquire: (lease, request, by) => store.acquire(lease, request, by),
  renew: (lease, ttlMs, by) => store.renew(lease, ttlMs, by),
  release: (lease, by) => store.release(lease, by),
  releaseHolder: (holder, by) => store.releaseHolder(holder, by),
  watch: (collection, by) => store.watch(collection, by),
  probe: by => store.probe(by),
})
