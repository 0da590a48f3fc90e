// What a program by hand does with PostgreSQL: the baselines of `bench:cluster`. Arguments: the URL of the database, the path of pgbench.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { loaded, nextKey, RECORD, serve, spread } from './cluster-load.js'

const [url, pgbench] = process.argv.slice(2)
const connect = async () => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}
const writer = await connect()
await writer.query(`CREATE SCHEMA bare;
  CREATE TABLE bare.records(key text PRIMARY KEY, value text NOT NULL);
  CREATE TABLE bare.places(idx integer, place text, key text, PRIMARY KEY (idx, place, key));
  CREATE TABLE bare.entries(id text, seq bigint, value text, PRIMARY KEY (id, seq));
  CREATE UNLOGGED TABLE bare.counts(name text PRIMARY KEY, n bigint NOT NULL);`)

/** Sends what waits while a statement is on its way as the next statement, on one connection. */
function grouped(statement, columnsOf) {
  let waiting = []
  let isSending = false
  const flow = async () => {
    while (waiting.length > 0) {
      const group = waiting
      waiting = []
      await writer.query({ ...statement, values: columnsOf(group.map(({ item }) => item)) }).then(
        () => group.forEach(({ resolve }) => resolve()),
        error => group.forEach(({ reject }) => reject(error))
      )
    }
    isSending = false
  }
  return item =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (isSending) return
      isSending = true
      queueMicrotask(flow)
    })
}

const put = grouped({ name: 'put', text: 'INSERT INTO bare.records SELECT * FROM unnest($1::text[], $2::text[])' }, items => [
  items.map(({ key }) => key),
  items.map(({ value }) => JSON.stringify(value)),
])
const mixed = grouped(
  {
    name: 'mixed',
    text: `WITH r AS (INSERT INTO bare.records SELECT * FROM unnest($1::text[], $2::text[])),
      p AS (INSERT INTO bare.places SELECT 1, place, key FROM unnest($3::text[], $1::text[]) AS u(place, key))
      INSERT INTO bare.entries SELECT id, 1, value FROM unnest($1::text[], $4::text[]) AS u(id, value)`,
  },
  items => [
    items.map(({ key }) => key),
    items.map(({ value }) => JSON.stringify(value)),
    items.map(({ value }) => value.owner),
    items.map(() => '{"n":1}'),
  ]
)

const KEPT = 5_000
await writer.query(`INSERT INTO bare.records SELECT 'kept-' || n, $1 FROM generate_series(0, ${KEPT - 1}) AS n`, [
  JSON.stringify(RECORD),
])
const pool = new pg.Pool({ connectionString: url, max: 64 })
let reads = 0
async function get() {
  const values = [`kept-${(reads += 7) % KEPT}`]
  const { rows } = await pool.query({ name: 'get', text: 'SELECT value FROM bare.records WHERE key = $1', values })
  if (JSON.parse(rows[0].value).owner !== RECORD.owner) throw new Error('the record is not there')
}

/** pgbench with a counter that all connections increment, as fast as it can be: not logged, and committed without the disk. */
async function count({ callers, ms }) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'))
  try {
    const script = join(folder, 'count.sql')
    await writeFile(script, "INSERT INTO bare.counts VALUES ('hot', 1) ON CONFLICT (name) DO UPDATE SET n = counts.n + 1;\n")
    const how = ['-n', '-M', 'prepared', '-c', String(callers), '-j', '2', '-t', String(Math.ceil(ms / 10))]
    const env = { ...process.env, PGOPTIONS: '-c synchronous_commit=off' }
    const child = spawn(pgbench, [...how, '-f', script, url], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    const [, tps] = /tps = ([\d.]+)/.exec(out) ?? []
    if (tps === undefined) throw new Error(`${out}${err}`)
    return { perSecond: Number(tps) }
  } finally {
    await rm(folder, { recursive: true })
  }
}

const QUEUE = 'drained'
const [FETCHED, FETCHERS] = [50, 4]
const boss = new PgBoss({ connectionString: url, schema: 'bare_queue', supervise: false, schedule: false, max: FETCHERS })
await boss.start()
await boss.createQueue(QUEUE, { policy: 'standard' })

/** Fetches jobs in batches and completes them, until the queue is empty; only that counts. */
async function drain({ jobs }) {
  for (let from = 0; from < jobs; from += 500)
    await boss.insert(
      QUEUE,
      Array.from({ length: Math.min(500, jobs - from) }, () => ({ data: { id: nextKey() } }))
    )
  let done = 0
  const began = performance.now()
  const lane = async () => {
    for (;;) {
      const found = await boss.fetch(QUEUE, { batchSize: FETCHED })
      if (found.length === 0) return
      await boss.complete(
        QUEUE,
        found.map(({ id }) => id)
      )
      done += found.length
    }
  }
  await Promise.all(Array.from({ length: FETCHERS }, lane))
  if (done !== jobs) throw new Error(`${done} of ${jobs} jobs were done`)
  return { perSecond: (done * 1000) / (performance.now() - began) }
}

/** From a commit on one connection, and a notification behind it, until another connection hears it. */
async function notify({ ms, everyMs }) {
  const listener = await connect()
  const begun = new Map()
  const times = []
  listener.on('notification', ({ payload }) => {
    times.push(performance.now() - begun.get(payload))
  })
  await listener.query('LISTEN bare_news')
  for (const until = performance.now() + ms; performance.now() < until; await sleep(everyMs)) {
    const key = nextKey()
    begun.set(key, performance.now())
    await writer.query('INSERT INTO bare.records VALUES ($1, $2)', [key, '1'])
    await writer.query('SELECT pg_notify($1, $2)', ['bare_news', key])
  }
  await sleep(500)
  await listener.end()
  return { perSecond: times.length / (ms / 1000), ...spread(times) }
}

serve({
  put: load => loaded(() => put({ key: nextKey(), value: RECORD }), load),
  mixed: load => loaded(() => mixed({ key: nextKey(), value: RECORD }), load),
  get: load => loaded(get, load),
  count,
  drain,
  notify,
})
