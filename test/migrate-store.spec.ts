import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync } from 'node:zlib'
import { Store, TextIndex } from '@svc/core/contracts'
import { STORE_FILE_FORMATS } from '@svc/storage-kit/store-file'
import { testHost } from '@svc/testing'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { ctx, fill, keyOf, killMigration, noteOf, rowsIn, SPACE } from './support/filled-store.ts'
import { describeWith } from './support/needs.ts'
import { newHome, startService } from './support/service.ts'
import { until } from './support/wait.ts'

const POSTGRES = new URL('../plugins/storage/postgres/', import.meta.url)
const SQLITE = new URL('../plugins/storage/sqlite/', import.meta.url)
/** A file that svc wrote in the first format. */
const OLDER = new URL('../plugins/storage/sqlite/test/fixtures/keys-in-characters.db.gz', import.meta.url)

const shaOf = async (file: string) =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex')

/** A11 of the acceptance of clusters; `npm run soak:migrate` does it with a million records. */
describeWith('postgres', 'svc store migrate', function () {
  this.timeout(240_000)
  let postgres: Postgres
  const homes: string[] = []
  let schemas = 0
  before(async () => (postgres = await startPostgres({ settings: { max_connections: 60 } })))
  after(async () => {
    await postgres?.[Symbol.asyncDispose]()
    for (const home of homes) await rm(home, { recursive: true, force: true })
  })
  const home = async () => {
    const made = await newHome()
    homes.push(made)
    return made
  }
  const env = () => ({ SVC_STORE__URL: postgres.url, SVC_STORE__SCHEMA: `moved_${++schemas}` })
  /** Kills the command when it has copied more than so many records. */
  const killedAt = (rows: number, from: string, target: ReturnType<typeof env>) =>
    killMigration({ from, env: target, isReached: async () => (await rowsIn(postgres, target.SVC_STORE__SCHEMA)) > rows })

  it('moves what a server has kept: the next one goes on with PostgreSQL', async () => {
    const from = await home()
    let id: string
    {
      await using service = await startService({ home: from })
      const client = createClient(service.url, { keepAlive: false })
      id = ((await client.post('/api/v1/chat', { message: 'Where is the lighthouse?' })).body as { conversation_id: string })
        .conversation_id
      await client.post('/api/v1/chat', { message: 'and the harbour?', conversation_id: id })
      await until(
        async () => (await client.get('/api/v1/conversations?q=lighthouse')).body as { conversations?: unknown[] },
        ({ conversations = [] }) => conversations.length > 0
      )
      const refused = await runSvc(['store', 'migrate'], { home: from, env: env() })
      expect(refused.code).to.equal(1)
      expect(refused.err).to.match(/MIGRATION_REFUSED[\s\S]*another program uses the store file[\s\S]*Stop the server/)
      const elsewhere = await runSvc(['store', 'migrate', '--from', `sqlite:${join(from, 'svc.db')}`], {
        home: await home(),
        env: env(),
      })
      expect(elsewhere.err).to.match(/MIGRATION_REFUSED[\s\S]*another program uses the store file/)
    }
    const before = await shaOf(join(from, 'svc.db'))
    const target = env()
    const moved = await runSvc(['store', 'migrate', '--json'], { home: from, env: target })
    expect(moved, moved.err).to.include({ code: 0 })
    expect(JSON.parse(moved.out))
      .to.deep.include({ schema: target.SVC_STORE__SCHEMA })
      .and.to.have.property('hash')
      .match(/^[0-9a-f]{64}$/)
    expect(await shaOf(join(from, 'svc.db'))).to.equal(before)
    await using again = await startService({ home: await home(), env: target })
    const client = createClient(again.url, { keepAlive: false })
    expect((await client.get(`/api/v1/conversations/${id}`)).body).to.include({ message_count: 4 })
    const found = (await client.get('/api/v1/conversations?q=lighthouse')).body as { conversations: unknown[] }
    expect(found.conversations).to.have.length(1)
    const { response } = (await client.post('/api/v1/chat', { message: 'on', conversation_id: id })).body as { response: string }
    expect(response).to.equal('You said: on (turn 3)')
    const filled = await runSvc(['store', 'migrate'], { home: from, env: target })
    expect(filled.err).to.match(/MIGRATION_REFUSED[\s\S]*has data already: \d+ spaces with \d+ records/)
  })

  it('goes on after it was killed three times, and keeps servers out until the end', async () => {
    const from = await home()
    const count = 30_000
    await fill(from, count)
    const target = env()
    const schema = target.SVC_STORE__SCHEMA
    for (const part of [0.1, 0.4, 0.7]) await killedAt(count * part, from, target)
    const kept = await runSvc(['serve', '--port', '0'], { home: await home(), env: target })
    expect(kept.code).to.equal(1)
    expect(kept.err).to.match(/SETUP_FAILED[\s\S]*being moved into the schema[\s\S]*svc store migrate/)
    const done = await runSvc(['store', 'migrate', '--json'], { home: from, env: target })
    expect(done, done.err).to.include({ code: 0 })
    expect(JSON.parse(done.out)).to.include({ records: count + 1, entries: (count / 2) * 4 })

    await using host = await testHost([POSTGRES], { config: { store: { url: postgres.url, schema } } })
    const store = host.service(Store)
    expect(await store.open(SPACE, ctx)).to.deep.equal({ version: 3 })
    expect(await store.get('notes', keyOf(1), ctx)).to.deep.equal({
      key: keyOf(1),
      version: 2,
      value: { ...noteOf(1), text: 'again' },
    })
    expect((await store.get('rights', 'ünïcode \u{1f512} key', ctx))?.value).to.deep.equal({ text: '\u0000\ud800', x: 1e21 })
    const page = await store.range('notes', { index: 'by_owner', equals: ['anna'], from: 27, limit: 2 }, ctx)
    expect(page.records.map(({ key }) => key)).to.deep.equal([keyOf(27), keyOf(30)])
    const entries = await store.read('lines', 'stream 2', { limit: 5 }, ctx)
    expect(entries.map(({ seq, value }) => [seq, value])).to.deep.equal([
      [1, { n: 2 }],
      [2, 'half \ud800 and \u0000'],
      [3, null],
      [4, { n: 502 }],
      [5, 'half \ud800 and \u0000'],
    ])
    const all = (count / 500) * 3
    expect(
      await store.batch([{ op: 'append', log: 'lines', id: 'stream 2', values: [1], ifLength: all }], {}, ctx)
    ).to.deep.equal({
      results: [all + 1],
    })
    const query = { index: 'words', query: 'harbour', equals: ['anna'], limit: 1 }
    expect((await host.service(TextIndex).search('notes', query, ctx)).hits).to.have.length(1)
    const lease = await store.acquire('x', { holder: 'a/', ttlMs: 1_000, waitMs: 0 }, ctx)
    expect(lease.fence).to.be.above(2 ** 32)
  })

  it('begins again with --restart only, after the file was used', async () => {
    const from = await home()
    await fill(from, 20_000)
    const target = env()
    await killedAt(1, from, target)
    await fill(from, 10)
    const changed = await runSvc(['store', 'migrate'], { home: from, env: target })
    expect(changed.err).to.match(/MIGRATION_REFUSED[\s\S]*was used since the migration began[\s\S]*--restart/)
    const other = await home()
    await fill(other, 10)
    const file = join(other, 'svc.db')
    const elsewhere = await runSvc(['store', 'migrate', '--from', `sqlite:${file}`], { home: from, env: target })
    expect(elsewhere.code).to.equal(1)
    expect(elsewhere.err)
      .to.include('an interrupted migration copies svc.db')
      .and.include(`${basename(other)}/svc.db`)
    expect(elsewhere.err).to.include('--from sqlite:svc.db')
    expect(elsewhere.err).to.not.include('was used since')
    const again = await runSvc(['store', 'migrate', '--restart', '--json'], { home: from, env: target })
    expect(again, again.err).to.include({ code: 0 })
    expect(JSON.parse(again.out)).to.include({ records: 20_001 })
  })

  it('refuses a copy that was altered in the middle, by its hash, and lets no server use it', async () => {
    const from = await home()
    await fill(from, 20_000)
    const target = env()
    const schema = target.SVC_STORE__SCHEMA
    await killedAt(500, from, target)
    await postgres.query(`UPDATE ${schema}.records SET value = replace(value, 'berta', 'carla') WHERE key = '${keyOf(2)}'`)
    const failed = await runSvc(['store', 'migrate'], { home: from, env: target })
    expect(failed.code).to.equal(1)
    expect(failed.err).to.match(
      /MIGRATION_FAILED[\s\S]*the data of "notes" in PostgreSQL differs from the store file[\s\S]*--restart/
    )
    const refused = await runSvc(['serve', '--port', '0'], { home: await home(), env: target })
    expect(refused.err).to.match(/being moved into the schema/)
    const again = await runSvc(['store', 'migrate', '--restart', '--json'], { home: from, env: target })
    expect(again, again.err).to.include({ code: 0 })
    const [row] = await postgres.query(`SELECT value FROM ${schema}.records WHERE key = '${keyOf(2)}'`)
    expect(JSON.parse(String(row!.value))).to.deep.equal(noteOf(2))
  })

  it('moves a file of an older format that --from names into the database of --to', async () => {
    const folder = await home()
    const file = join(folder, 'old.db')
    await writeFile(file, gunzipSync(await readFile(OLDER)))
    const format = () => {
      using db = new DatabaseSync(file, { readOnly: true })
      return Number(db.prepare('PRAGMA user_version').get()!.user_version)
    }
    const before = [format(), await shaOf(file)]
    expect(format()).to.be.below(STORE_FILE_FORMATS[1])
    const schema = `moved_${++schemas}`
    const words = ['store', 'migrate', '--from', `sqlite:${file}`, '--to', postgres.url, '--json']
    // the store of the configuration is another one
    const elsewhere = { SVC_STORE__URL: 'postgres://127.0.0.1:1/nowhere', SVC_STORE__SCHEMA: schema }
    const moved = await runSvc(words, { home: await home(), env: elsewhere })
    expect(moved, moved.err).to.include({ code: 0 })
    expect(JSON.parse(moved.out)).to.include({ from: file, schema })
    expect([format(), await shaOf(file)]).to.deep.equal(before)

    const space = {
      name: 'test',
      version: 1,
      collections: { notes: { indexes: { by_owner: ['owner', 'at'] } } },
      logs: ['lines'],
    }
    const read = async (plugin: URL, store: object) => {
      await using host = await testHost([plugin], { config: { store } })
      const opened = host.service(Store)
      await opened.open(space, ctx)
      const page = async (query: object) =>
        (await opened.range('notes', { ...query, limit: 1_000 }, ctx)).records.map(({ key, version, value }) => [
          key,
          version,
          value,
        ])
      return { keys: await page({}), order: await page({ index: 'by_owner' }) }
    }
    const stored = await read(POSTGRES, { url: postgres.url, schema })
    expect(stored).to.deep.equal(await read(SQLITE, { path: file }))
    expect(stored.order.length).to.be.above(10)
  })

  it('refuses other files and words', async () => {
    const from = await home()
    const target = env()
    const missing = await runSvc(['store', 'migrate'], { home: from, env: target })
    expect(missing.err).to.match(/MIGRATION_REFUSED[\s\S]*does not exist/)
    const other = await runSvc(['store', 'migrate', '--from', 'sqlite:/etc/hostname'], { home: from, env: target })
    expect(other.err).to.match(/MIGRATION_REFUSED[\s\S]*cannot be read/)
    await fill(from, 10)
    {
      using db = new DatabaseSync(join(from, 'svc.db'))
      db.prepare("UPDATE records SET value = 'no JSON' WHERE key = ?").run(keyOf(3))
    }
    const damaged = await runSvc(['store', 'migrate'], { home: from, env: env() })
    expect(damaged.err).to.match(/MIGRATION_REFUSED[\s\S]*the record "n0000003" of the store file is damaged/)
    expect((await runSvc(['store', 'migrate', '--from', 'mysql:x'], { home: from, env: target })).code).to.equal(2)
    const where = await runSvc(['store', 'migrate', '--to', 'mysql://x'], { home: from, env: target })
    expect(where.code).to.equal(1)
  })
})
