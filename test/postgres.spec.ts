import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { reachServer } from '@svc/runtime'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { type Client, createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { addJobs, auditJobs, killWorkersWhile, startJobs, untilDone } from './support/job-load.ts'
import { describeWith } from './support/needs.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { until } from './support/wait.ts'
import { auditRuns, beginRun, effectsReach, follow, go } from './support/workflow-load.ts'

const WORK = fileURLToPath(new URL('./support/workflow-work.ts', import.meta.url))

describeWith('postgres', 'svc serve with store.url: postgres://…', () => {
  let postgres: Postgres
  const homes: string[] = []
  before(async () => (postgres = await startPostgres({ settings: { max_connections: 60 } })))
  after(async () => {
    await postgres?.[Symbol.asyncDispose]()
    for (const home of homes) await rm(home, { recursive: true, force: true })
  })

  const start = async (more: Record<string, string> = {}, args: readonly string[] = []): Promise<Service> => {
    const home = await newHome()
    homes.push(home)
    return startService({ home, args, env: { SVC_STORE__URL: postgres.url, ...more } })
  }
  const clientOf = ({ url }: Service): Client => createClient(url, { keepAlive: false })

  it('keeps conversations of two workers, over a restart and a kill', async () => {
    const service = await start({}, ['--workers', '2'])
    let id: string
    {
      await using _ = service
      await service.seen(/"event":"worker_ready"/)
      const client = clientOf(service)
      expect((await client.get('/health')).body).to.include({ status: 'healthy' })
      const { conversation_id } = (await client.post('/api/v1/chat', { message: 'turn 1' })).body as { conversation_id: string }
      id = conversation_id
      for (let turn = 2; turn <= 6; turn++) {
        const { body } = await client.post('/api/v1/chat', { message: `turn ${turn}`, conversation_id: id })
        expect(body).to.include({ response: `You said: turn ${turn} (turn ${turn})` })
      }
      await service.kill()
    }
    await using again = await startService({ home: service.home, env: { SVC_STORE__URL: postgres.url } })
    expect((await clientOf(again).get(`/api/v1/conversations/${id}`)).body).to.include({ message_count: 12 })
  })

  it('connects two servers through one database: conversations, MCP sessions, the mode', async () => {
    const env = { SVC_CLUSTER__NAME: 'shop' }
    await using one = await start(env, ['--mcp'])
    await using two = await start(env, ['--mcp'])
    const [first, second] = [clientOf(one), clientOf(two)]
    const { conversation_id } = (await first.post('/api/v1/chat', { message: 'over there' })).body as { conversation_id: string }
    expect((await second.get(`/api/v1/conversations/${conversation_id}`)).body).to.include({ message_count: 2 })
    const accept = { accept: 'application/json, text/event-stream' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } }
    const message = (id: number, method: string, more = {}) => ({ jsonrpc: '2.0', id, method, ...more })
    const begun = await first.send({ method: 'POST', path: '/mcp', headers: accept, body: message(0, 'initialize', { params }) })
    const headers = {
      ...accept,
      'mcp-session-id': begun.headers['mcp-session-id'] as string,
      'mcp-protocol-version': '2025-11-25',
    }
    const listed = await second.send({ method: 'POST', path: '/mcp', headers, body: message(1, 'tools/list') })
    expect(listed.status).to.equal(200)
    await first.post('/api/v1/mode/switch', { mode: 'plan' })
    await until(
      async () => (await second.get('/api/v1/config/effective')).body as { mode: string },
      ({ mode }) => mode === 'plan'
    )
  })

  it('continues runs on the other worker when one is killed: each effect happens once', async () => {
    const home = await newHome()
    homes.push(home)
    await writeFile(
      join(home, 'svc.config.json'),
      JSON.stringify({ plugins: [WORK], store: { url: postgres.url, schema: 'runs' } })
    )
    await using service = await startService({ home, args: ['--workers', '2'] })
    await service.seen(/"event":"worker_ready"/)
    const ids = await Promise.all(Array.from({ length: 20 }, () => beginRun(service.url, 'work')))
    const reading = ids.map(id => follow(service.url, id))
    await effectsReach(home, 50)
    using server = await reachServer(home)
    process.kill(server.info.workers[0]!.pid, 'SIGKILL')
    await Promise.all(ids.map(id => go(service.url, id)))
    await Promise.all(reading)
    expect(await auditRuns(service.url, home, ids)).to.deep.equal([])
  }).timeout(120_000)

  it('loses no job and runs none twice at the same time, although workers are killed', async () => {
    const home = await newHome()
    homes.push(home)
    await using service = await startJobs(home, { SVC_STORE__URL: postgres.url, SVC_STORE__SCHEMA: 'jobs' })
    await killWorkersWhile(home, 1_000, Promise.all([addJobs(service, 200), sleep(3_000)]))
    await untilDone(home, 'record', 90_000)
    expect(await auditJobs(home, 200)).to.deep.equal([])
  }).timeout(150_000)

  it('creates the tables once with svc store init, describes them, and hides the password', async () => {
    const home = await newHome()
    homes.push(home)
    const env = { SVC_STORE__URL: postgres.url, SVC_STORE__SCHEMA: 'made' }
    const run = (...args: string[]) => runSvc(args, { home, env })
    const missing = await run('store', 'status', '--json')
    expect([missing.code, missing.err]).to.satisfy(
      ([code, err]: [number, string]) => code === 1 && /svc store init/.test(err + missing.out)
    )
    for (const created of [true, false]) {
      const { code, out, err } = await runSvc(['store', 'init', '--json'], { home, env: { ...env, SVC_STORE__MIGRATE: 'false' } })
      expect(code, err).to.equal(0)
      const plugins = ['@svc/plugin-bus-postgres', '@svc/plugin-queue-pgboss']
      expect(JSON.parse(out)).to.deep.equal({ schema: 'made', created, format: 2, plugins })
      expect(await postgres.query(`SELECT to_regclass('made_queue.job') IS NOT NULL AS made`)).to.deep.equal([{ made: true }])
    }
    const { code, out } = await run('store', 'status', '--json')
    expect(code).to.equal(0)
    expect(JSON.parse(out)).to.include({ schema: 'made', format: 2, role: 'primary', pooled: false })
    expect((await run('store', 'status', '--nonsense')).code).to.equal(2)
    const shown = await run('config', 'show')
    expect(shown.out).to.include('127.0.0.1')
    for (const text of [shown.out, shown.err, out, missing.err, missing.out]) expect(text).not.to.include(postgres.password)
  }).timeout(60_000)

  it('says at the start why the database cannot be used, without the password', async () => {
    const starting = start({ SVC_STORE__URL: postgres.url.replace(/@.*/, '@127.0.0.1:1/postgres') })
    const message = await starting.then(
      () => 'it started',
      (error: Error) => error.message
    )
    expect(message).to.include('no PostgreSQL server answers').and.not.include(postgres.password)
  }).timeout(60_000)

  it('serves again without a restart when PostgreSQL was killed', async () => {
    await using own = await startPostgres()
    await using service = await start({ SVC_STORE__URL: own.url }, ['--workers', '2'])
    const client = clientOf(service)
    const { conversation_id } = (await client.post('/api/v1/chat', { message: 'a' })).body as { conversation_id: string }
    await own.kill()
    const health = async () => (await client.get('/health')).body as { status: string }
    await until(health, ({ status }) => status === 'unhealthy')
    // a lost database takes the server out of service, and restarts no server
    await until(
      () => client.get('/health/ready'),
      ({ status }) => status === 503
    )
    expect((await client.get('/health/live')).status).to.equal(200)
    await own.start()
    const began = performance.now()
    await until(health, ({ status }) => status === 'healthy')
    expect(performance.now() - began).to.be.below(10_000)
    expect((await client.post('/api/v1/chat', { message: 'b', conversation_id })).body).to.include({
      response: 'You said: b (turn 2)',
    })
  }).timeout(90_000)

  it('takes the place of the embedded store, whatever the configuration says about that one', async () => {
    const home = await newHome()
    homes.push(home)
    const plugins = [{ use: '@svc/plugin-store-sqlite', enabled: false }, '@svc/plugin-store-postgres']
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins, store: { url: postgres.url } }))
    await using service = await startService({ home })
    expect((await clientOf(service).get('/health')).body).to.include({ status: 'healthy' })
    const wrong = await runSvc(['config', 'check', '--json'], { home, env: { SVC_STORE__PATH: '/tmp/x.db' } })
    expect(wrong.code).to.equal(1)
    expect(wrong.out + wrong.err).to.include('store.path')
    const url = await runSvc(['config', 'check', '--json'], { home, env: { SVC_STORE__URL: 'postgres://a:s3cret@host:99999/x' } })
    expect(url.code).to.equal(1)
    expect(url.out + url.err)
      .to.include('STORE_CONFIG_INVALID')
      .and.not.include('s3cret')
  }).timeout(60_000)

  it('loads pg only for such a store', async () => {
    const code = `import { registerHooks } from 'node:module'
      registerHooks({ resolve(name, context, next) { if (name === 'pg') console.error('pg is loaded'); return next(name, context) } })`
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
    const outputs: string[] = []
    const stores: Record<string, string>[] = [{}, { SVC_STORE__URL: postgres.url }]
    for (const store of stores) {
      const home = await newHome()
      homes.push(home)
      await using service = await startService({ home, env: { ...env, ...store } })
      await clientOf(service).post('/api/v1/chat', { message: 'a' })
      outputs.push(service.output())
    }
    expect(outputs.map(output => output.includes('pg is loaded'))).to.deep.equal([false, true])
  }).timeout(60_000)
})
