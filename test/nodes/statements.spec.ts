import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import type { Answer, Client } from '../support/client.ts'
import { describeWith } from '../support/needs.ts'
import { clientsOf, startNode } from '../support/nodes.ts'
import { LOGGED, statementsFrom } from '../support/statements.ts'

const WORK = fileURLToPath(new URL('../support/long-runs.ts', import.meta.url))
const [REQUESTS, AT_ONCE] = [200, 20]
/** Messages for all of these requests together: what workers tell each other now and then, such as that there are runs. */
const MOST_POSTS = REQUESTS / 10
/** What chats and runs tell other plugins about. */
const FEW = ['event-feed', 'usage', 'metrics', 'rate-limit', 'workflows', 'workflow-nodes', 'jobs', 'schedules']
const MODES = ['plan', 'build']

/** The main kinds of requests. */
type Request = (client: Client, other: Client) => Promise<Answer>
const KINDS: Readonly<Record<string, Request>> = {
  chat: client => client.post('/api/v1/chat', { message: 'hello' }),
  'turn of a conversation that another node began': async (client, other) => {
    const begun = await other.post('/api/v1/chat', { message: 'hello' })
    const { conversation_id } = begun.body as { conversation_id: string }
    return client.post('/api/v1/chat', { message: 'again', conversation_id })
  },
  tools: client => client.get('/api/v1/tools'),
  list: client => client.get('/api/v1/conversations'),
  runs: client => client.post('/api/v1/workflows/run', { workflow: 'long', input: {} }),
}

describeWith('postgres', 'two nodes on one PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let clients: readonly [Client, Client]
  /** The place in the log from which on both serve. */
  let served: number

  before(async function () {
    this.timeout(100_000)
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60, ...LOGGED } }))
    const folder = await mkdtemp(join(tmpdir(), 'svc-statements-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const env = { TEST_RUNS_FILE: join(folder, 'runs') }
    await writeFile(`${env.TEST_RUNS_FILE}.go`, '') // the runs end at once
    const config = { plugins: [WORK], store: { url: postgres.url }, server: { max_requests_per_second: 0 } }
    const start = async () => stack.use(await startNode({ config, env, few: FEW }))
    clients = clientsOf([await start(), await start()]) as unknown as typeof clients
    served = (await statementsFrom(postgres)).next
  })
  after(() => stack.disposeAsync())

  async function ask(request: Request): Promise<void> {
    for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, at) => request(clients[at % 2]!, clients[(at + 1) % 2]!))
      )
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
    }
  }

  for (const [kind, request] of Object.entries(KINDS))
    it(`send no message to each other for a request (${kind})`, async () => {
      const [{ now }] = (await postgres.query('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now')) as [
        { now: string },
      ]
      await ask(request)
      const [{ posts }] = (await postgres.query('SELECT count(*)::int AS posts FROM svc.bus_posts WHERE at >= $1', [now])) as [
        { posts: number },
      ]
      expect(posts).to.be.below(MOST_POSTS + 1)
    }).timeout(60_000)

  it('notify each other in no transaction that does anything else', async () => {
    for (const mode of MODES)
      for (const client of clients) {
        expect((await client.post('/api/v1/mode/switch', { mode })).status).to.equal(200)
        for (const other of clients) expect((await other.get('/api/v1/config/effective')).body).to.include({ mode })
      }
    const { all } = await statementsFrom(postgres, served)
    const writing = all.filter(({ text }) => /^(INSERT|UPDATE|DELETE|WITH)\b/.test(text))
    const notifying = Map.groupBy(all, ({ transaction }) => transaction)
      .values()
      .filter(some => some.some(({ text }) => /notify/i.test(text)))
      .map(some => some.map(({ text }) => text.replace(/\(.*/s, '')))
      .toArray()
    expect(writing.length, 'statements that write').to.be.above(REQUESTS)
    expect(notifying.length, 'transactions that notify').to.be.above(0)
    for (const texts of notifying) expect(texts).to.deep.equal(['SELECT pg_notify'])
  }).timeout(60_000)

  it('read through two connections of a worker, however many requests there are', async () => {
    await ask(KINDS.list!)
    const rows = await postgres.query<{ name: string; n: number }>(
      `SELECT application_name AS name, count(*)::int AS n FROM pg_stat_activity WHERE application_name LIKE 'svc %' GROUP BY 1`
    )
    const reading = rows.filter(({ name }) => name.endsWith(' read'))
    expect(reading.map(({ n }) => n)).to.deep.equal([2, 2])
    for (const { name, n } of rows) if (!reading.some(row => row.name === name)) expect(n, name).to.equal(1)
  }).timeout(60_000)

  it('leave schedules to the store: pg-boss has the queue of runs alone, and reads no schedules', async () => {
    expect(await postgres.query('SELECT name FROM svc_queue.queue')).to.deep.equal([{ name: 'runs' }])
    const { all } = await statementsFrom(postgres)
    const read = all.filter(({ text }) => /cron_on|svc_queue\.schedule\b/.test(text) && !text.includes('CREATE SCHEMA'))
    expect(read).to.deep.equal([])
  }).timeout(60_000)
})
