import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createSqliteStore } from '../src/store.ts'
import { ctx, temporaryFolder } from './support.ts'

/** The space of the file. */
const SPACE = {
  name: 'test',
  version: 1,
  collections: { notes: { indexes: { by_owner: ['owner', 'at'] } } },
  logs: ['lines'],
}
const OWNERS = ['a', 'a\u0000', 'é', '\uffff', '😀'] // in the order of their bytes
const keyOf = (at: number, n: number) => `${OWNERS[at]!.replaceAll('\u0000', '_')}${at}${n}`

/** A file that svc wrote when keys were limited to 1024 characters, and the cursors that it gave to clients. */
async function olderFile() {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'svc.db')
  await writeFile(path, gunzipSync(await readFile(new URL('fixtures/keys-in-characters.db.gz', import.meta.url))))
  const store = createSqliteStore({ path })
  await store.open(SPACE, ctx)
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

describe('a file of an earlier svc', () => {
  it('keeps its order, also for texts with control characters, and takes new records into it', async () => {
    await using file = await olderFile()
    for (const [at, owner] of OWNERS.entries()) {
      await file.store.batch([{ op: 'put', collection: 'notes', key: `${keyOf(at, 3)}`, value: { owner, at: 3 } }], {}, ctx)
      const { records } = await file.store.range('notes', { index: 'by_owner', equals: [owner], limit: 9 }, ctx)
      expect(records.map(({ key }) => key)).to.deep.equal([0, 1, 2, 3].map(n => keyOf(at, n)))
    }
  })

  it('continues where cursors of that svc ended', async () => {
    await using file = await olderFile()
    const rest = async (query: object, cursor: string) =>
      (await file.store.range('notes', { limit: 3, ...query, cursor }, ctx)).records.map(({ key }) => key)
    expect(await rest({ index: 'by_owner', equals: ['a\u0000'] }, 'NGECAgEzODAwMDAwMDAwMDAwMDAwMGFfMTA')).to.deep.equal([
      'a_11',
      'a_12',
    ])
    expect(await rest({}, 'YV8xMA')).to.deep.equal(['a_11', 'a_12', 'é20'])
    expect(await rest({ index: 'by_owner', reverse: true }, 'NMOpATNiZmYwMDAwMDAwMDAwMDAww6kyMQ')).to.deep.equal([
      'é20',
      '😀'.repeat(512),
      'a_12',
    ])
  })

  it('gives back and deletes records and streams whose keys are too long today, and takes no new ones', async () => {
    await using file = await olderFile()
    const [key, id] = ['😀'.repeat(512), 'é'.repeat(1024)]
    expect((await file.store.get('notes', key, ctx))?.value).to.deep.equal({ owner: 'long', at: 1 })
    expect(await file.store.read('lines', id, { limit: 9 }, ctx)).to.have.length(2)
    const refused = [
      { op: 'put', collection: 'notes', key, value: 1 },
      { op: 'append', log: 'lines', id, values: [3] },
    ] as const
    for (const op of refused)
      expect(await file.store.batch([op], {}, ctx).catch(({ code, message }) => [code, message])).to.deep.equal([
        'STORE_INVALID',
        `a ${op.op === 'put' ? 'key' : 'stream id'} has at most 1024 bytes of UTF-8, this one has 2048`,
      ])
    await file.store.batch(
      [
        { op: 'delete', collection: 'notes', key },
        { op: 'drop', log: 'lines', id },
      ],
      {},
      ctx
    )
    expect(await file.store.get('notes', key, ctx)).to.equal(undefined)
    expect(await file.store.read('lines', id, { limit: 9 }, ctx)).to.deep.equal([])
  })
})
