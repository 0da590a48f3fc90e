import { rm } from 'node:fs/promises'
import { type Space, Store } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { ctx, fill, keyOf, SPACE } from './support/filled-store.ts'
import { describeWith } from './support/needs.ts'
import { newHome, startService } from './support/service.ts'

const POSTGRES = new URL('../plugins/storage/postgres/', import.meta.url)

describeWith('postgres', 'the schema that svc store migrate fills', function () {
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
  const env = () => ({ SVC_STORE__URL: postgres.url, SVC_STORE__SCHEMA: `target_${++schemas}` })
  const spacesIn = (schema: string) => postgres.query(`SELECT name, version FROM ${schema}.spaces ORDER BY name`)

  it('can be the one that svc store init has made', async () => {
    const from = await home()
    let id: string
    {
      await using service = await startService({ home: from })
      const client = createClient(service.url, { keepAlive: false })
      id = ((await client.post('/api/v1/chat', { message: 'one' })).body as { conversation_id: string }).conversation_id
    }
    const target = env()
    const schema = target.SVC_STORE__SCHEMA
    const made = await runSvc(['store', 'init'], { home: await home(), env: target })
    expect(made, made.err).to.include({ code: 0 })
    expect(await spacesIn(schema)).to.deep.equal([{ name: 'run_queue', version: 1 }])
    const moved = await runSvc(['store', 'migrate', '--json'], { home: from, env: target })
    expect(moved, moved.err).to.include({ code: 0 })
    const { spaces } = JSON.parse(moved.out) as { spaces: { name: string }[] }
    expect(await spacesIn(schema)).to.deep.equal(spaces.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
    await using again = await startService({ home: await home(), env: target })
    const client = createClient(again.url, { keepAlive: false })
    const { body } = await client.post('/api/v1/chat', { message: 'two', conversation_id: id })
    expect(body).to.include({ response: 'You said: two (turn 2)' })
  })

  it('gets the versions and indexes of the file, not those that were declared before', async () => {
    const from = await home()
    await fill(from, 10)
    const target = env()
    const schema = target.SVC_STORE__SCHEMA
    const declared: readonly Space[] = [
      { ...SPACE, version: 7, collections: { notes: { indexes: { by_n: ['n'] } } }, logs: [] },
      { name: 'gone', version: 2, collections: { rights: {} }, logs: ['lines'] },
    ]
    {
      await using host = await testHost([POSTGRES], { config: { store: { url: postgres.url, schema } } })
      for (const space of declared) await host.service(Store).open(space, ctx)
    }
    const moved = await runSvc(['store', 'migrate', '--json'], { home: from, env: target })
    expect(moved, moved.err).to.include({ code: 0 })
    expect(await spacesIn(schema)).to.deep.equal([{ name: 'moved', version: 3 }])
    await using host = await testHost([POSTGRES], { config: { store: { url: postgres.url, schema } } })
    const store = host.service(Store)
    expect(await store.open(SPACE, ctx)).to.deep.equal({ version: 3 })
    const page = await store.range('notes', { index: 'by_owner', equals: ['anna'], limit: 2 }, ctx)
    expect(page.records.map(({ key }) => key)).to.deep.equal([keyOf(0), keyOf(3)])
    const specs = await postgres.query(`SELECT spec FROM ${schema}.indexes WHERE kind = 'order'`)
    expect(specs).to.deep.equal([{ spec: '["owner","n"]' }])
  })

  it('is refused with what was found in it', async () => {
    const from = await home()
    await fill(from, 10)
    const refused = async (target: ReturnType<typeof env>) => {
      const before = await spacesIn(target.SVC_STORE__SCHEMA)
      const { code, err } = await runSvc(['store', 'migrate'], { home: from, env: target })
      expect(code).to.equal(1)
      expect(err).to.include('MIGRATION_REFUSED').and.include('Set store.schema to a new name')
      expect(err).to.not.include('start the server')
      expect(await spacesIn(target.SVC_STORE__SCHEMA)).to.deep.equal(before)
      return /has data already: (.*)/.exec(err)?.[1]
    }
    const started = env()
    await using service = await startService({ home: await home(), env: started })
    expect(await refused(started)).to.match(/^\d+ spaces? with \d+ records?$/)
    await service.kill()
    expect(await refused(started)).to.match(/^\d+ spaces? with \d+ records?$/)

    const filled = env()
    const schema = filled.SVC_STORE__SCHEMA
    {
      await using host = await testHost([POSTGRES], { config: { store: { url: postgres.url, schema } } })
      const store = host.service(Store)
      await store.open(SPACE, ctx)
      await store.batch([{ op: 'append', log: 'lines', id: 'a', values: [1, 2] }], {}, ctx)
    }
    expect(await refused(filled)).to.equal('1 space with 2 log entries')
    const records = `INSERT INTO ${schema}.records(id, collection, key, version, value) SELECT n, c.id, 'k' || n, 1, '{}'
      FROM ${schema}.collections c, generate_series(1, $1::integer) AS n WHERE c.name = 'rights'`
    await postgres.query(records, [1])
    await postgres.query(`INSERT INTO ${schema}.counts VALUES ('k', 1, '[]')`)
    expect(await refused(filled)).to.equal('1 space with 1 record, 2 log entries and 1 counter')
    await postgres.query(`DELETE FROM ${schema}.records`)
    await postgres.query(`DELETE FROM ${schema}.streams`)
    expect(await refused(filled)).to.equal('1 counter')
    await postgres.query(records, [10_001])
    expect(await refused(filled)).to.equal('1 space with more than 10000 records and 1 counter')
  })
})
