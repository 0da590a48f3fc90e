import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, messageOf } from '@svc/core'
import { ProtectedPaths } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { type PgBouncer, type Postgres, startPgBouncer, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { connectionOf, type PostgresConfig, withDefaults } from '../src/config.ts'
import { ctx, newSchema, storeWith } from './support.ts'

const PLUGIN = new URL('..', import.meta.url)
const SPACE = {
  name: 'hostile',
  version: 1,
  collections: { notes: { indexes: { by_n: ['n'] }, text: { words: { fields: ['text'], filters: ['n'] } } } },
  logs: ['lines'],
} as const

/**
 * Functions that another user of the database puts into the schema `public`. Their arguments fit the calls better than those of
 * PostgreSQL's own functions, which come first only among equals.
 */
const TRAPS = `
CREATE TABLE public.caught(of text, who text);
GRANT ALL ON public.caught TO PUBLIC;
CREATE FUNCTION public.hashtextextended(text, integer) RETURNS bigint LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO public.caught VALUES ('hashtextextended', current_user); RETURN 1; END $$;
CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO public.caught VALUES ('unnest', current_user); RETURN QUERY SELECT * FROM pg_catalog.unnest($1); END $$;
CREATE FUNCTION public.json_build_array(text, integer) RETURNS json LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO public.caught VALUES ('json_build_array', current_user); RETURN pg_catalog.json_build_array($1, $2); END $$;`

/** Uses each kind of statement once. */
async function useAll(config: Partial<PostgresConfig>): Promise<void> {
  await using store = storeWith({ schema: newSchema(), ...config })
  await store.open(SPACE, ctx)
  await store.batch(
    [
      { op: 'put', collection: 'notes', key: 'a', value: { n: 1, text: 'some words' } },
      { op: 'append', log: 'lines', id: 'one', values: [1, 2] },
    ],
    {},
    ctx
  )
  await store.get('notes', 'a', ctx)
  await store.range('notes', { index: 'by_n', equals: [1], limit: 5 }, ctx)
  await store.read('lines', 'one', { limit: 5 }, ctx)
  expect((await store.search('notes', { index: 'words', query: 'some "some words"', limit: 5 }, ctx)).hits).to.have.length(1)
  await store.count('k', [{ ms: 60_000, limit: 1 }], ctx)
  await store.acquire('lease', { holder: 'one', ttlMs: 1_000, waitMs: 0 }, ctx)
  await store.releaseHolder('one', ctx)
  await store.probe(ctx)
  await store.contents(ctx)
}

describeWith('postgres', 'the store in PostgreSQL, attacked', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())

  describe('by functions of another user of the database', () => {
    before(() => postgres.query(TRAPS))
    const caught = () => postgres.query('SELECT DISTINCT of FROM public.caught')

    it('runs none of them', async () => {
      await useAll({ url: postgres.url })
      expect(await caught()).to.deep.equal([])
    })

    describeWith('pgbouncer', 'behind a pooler', () => {
      let pooler: PgBouncer
      before(async () => (pooler = stack.use(await startPgBouncer(postgres, { settings: { default_pool_size: 8 } }))))

      it('runs none of them, and leaves nothing in the sessions of the pooler', async () => {
        await useAll({ url: pooler.url, direct_url: postgres.url })
        expect(await caught()).to.deep.equal([])
        const rows = await pooler.query(`SELECT pg_catalog.current_setting('search_path') AS path`)
        expect(rows.map(({ path }) => path)).to.deep.equal(['"$user", public'])
      })
    })
  })

  it('knows no record with a key that cannot exist', async () => {
    await using store = storeWith({ url: postgres.url, schema: newSchema() })
    await store.open(SPACE, ctx)
    const keys = ['a', 'a\ufffd', 'b']
    await store.batch(
      keys.map(key => ({ op: 'put', collection: 'notes', key, value: { n: 1, text: 'words' } })),
      {},
      ctx
    )
    for (const key of ['a\u0000', '\u0000', 'a\ud800', 'a\udfff'])
      expect(await store.get('notes', key, ctx), JSON.stringify(key)).to.equal(undefined)
    const from = async (range: object) => (await store.range('notes', { limit: 9, ...range }, ctx)).records.map(({ key }) => key)
    expect(await from({ from: 'a\u0000b' })).to.deep.equal(['a\ufffd', 'b'])
    expect(await from({ to: 'a\u0000b' })).to.deep.equal(['a'])
    expect(await from({ index: 'by_n', equals: [1], from: 'a\u0000b', to: 'b\u0000' })).to.deep.equal(['a\ufffd', 'b'])
  })

  it('rejects a changed cursor of a search', async () => {
    await using store = storeWith({ url: postgres.url, schema: newSchema() })
    await store.open(SPACE, ctx)
    await store.batch(
      ['a', 'b'].map(key => ({ op: 'put', collection: 'notes', key, value: { n: 1, text: 'words' } })),
      {},
      ctx
    )
    const query = { index: 'words', query: 'words', limit: 1 }
    const { next = '' } = await store.search('notes', query, ctx)
    const [digest, score] = JSON.parse(Buffer.from(next, 'base64url').toString()) as [string, number]
    for (const key of ['a\u0000', 'a\ud800']) {
      const cursor = Buffer.from(JSON.stringify([digest, score, key])).toString('base64url')
      const failed = await store.search('notes', { ...query, cursor }, ctx).catch((error: unknown) => error)
      expect(codeOf(failed), JSON.stringify(key)).to.equal('STORE_INVALID')
    }
  })

  it('stores keys of the greatest length that cannot be compressed', async () => {
    await using store = storeWith({ url: postgres.url, schema: newSchema() })
    await store.open(SPACE, ctx)
    const key = Array.from({ length: 256 }, () => String.fromCodePoint(0x20000 + Math.floor(Math.random() * 40_000))).join('')
    await store.batch([{ op: 'put', collection: 'notes', key, value: { n: key.repeat(20), text: key.repeat(20) } }], {}, ctx)
    expect((await store.get('notes', key, ctx))?.key).to.equal(key)
    await store.count(key, [{ ms: 60_000, limit: 1 }], ctx)
    await store.acquire(key, { holder: key, ttlMs: 1_000, waitMs: 0 }, ctx)
  })

  it('protects the program of the password from tools, with its script', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-password-'))
    try {
      const script = join(folder, 'password.sh')
      await writeFile(script, `printf %s '${postgres.password}'`, { mode: 0o700 })
      const url = postgres.url.replace(`:${encodeURIComponent(postgres.password)}@`, '@')
      const store = { url, schema: newSchema(), password_command: ['/bin/sh', script] }
      await using host = await testHost([PLUGIN], { config: { store } })
      const paths = host
        .slot(ProtectedPaths)
        .entries()
        .flatMap(([, entry]) => entry.paths)
      expect(paths).to.include(script)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('the URL of PostgreSQL', () => {
  it('is refused when a part of the password would be taken for the host, which errors can name', () => {
    for (const url of ['postgres://svc:se@cret@db.example/svc', 'postgres://svc:p@se:cret@db.example/svc']) {
      let failed: unknown
      try {
        connectionOf(withDefaults({ url }))
      } catch (error) {
        failed = error
      }
      expect(codeOf(failed), url).to.equal('STORE_CONFIG_INVALID')
      expect(messageOf(failed)).not.to.contain('cret')
    }
  })
})
