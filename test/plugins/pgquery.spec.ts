import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pluginKit } from '@svc/testing'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith, lacking, skipBecause } from '../support/needs.ts'
import { publishInstalled, startRegistry } from '../support/registry.ts'
import { startService } from '../support/service.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/plugins/pgquery/', import.meta.url))
/** As a person would: the package, its dependency from a registry, a real database, a process of its own. */
describeWith('bubblewrap', 'examples/plugins/pgquery, installed', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let folder: string
  let postgres: Postgres
  let env: Record<string, string>
  const svc = (...args: string[]) => runSvc(args, { home: join(folder, 'home'), cwd: folder, env })

  const configure = (server: string) => {
    const pgquery = { server, database: 'postgres', user: 'svc', max_rows: 5 }
    return writeFile(join(folder, 'svc.config.json'), JSON.stringify({ tools: { pgquery } }))
  }

  before(async function () {
    skipBecause(this, lacking('postgres'))
    folder = await mkdtemp(join(tmpdir(), 'svc-pgquery-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    postgres = stack.use(await startPostgres())
    const registry = stack.use(await startRegistry())
    await publishInstalled(registry, folder, 'pg')
    env = { PGQUERY_PASSWORD: postgres.password, npm_config_registry: registry.url, npm_config_cache: join(folder, 'cache') }
    await configure(`localhost:${postgres.port}`)
    const { code, out, err } = await svc('plugins', 'install', EXAMPLE, '--yes')
    expect(code, `${out}\n${err}`).to.equal(0)
    expect(out).to.include('runs      in its own process')
  })
  after(() => stack.disposeAsync())

  it('answers rows of the database to a command', async () => {
    const { out, err } = await svc('tools', 'call', 'query_database', '{"sql": "SELECT $1::int + 1 AS n", "values": [41]}')
    expect(out, err).to.include('[{"n":42}]')
  })

  for (const isolation of ['process', 'in-process'] as const)
    it(`passes its kit, isolation ${isolation}: its pool of connections is no leak`, async () => {
      const from = new URL('../../cli/src/program.ts', import.meta.url).href
      const sandbox = ['@svc/plugin-sandbox-process', '@svc/plugin-isolation'].map(use => ({ use, from }))
      const config = {
        tools: { pgquery: { server: `localhost:${postgres.port}`, database: 'postgres', user: 'svc', max_rows: 5 } },
      }
      const args = { sql: 'SELECT pg_sleep(0.01), 1 AS n' }
      const cases = await pluginKit(EXAMPLE, {
        ...(isolation === 'process' ? { sandbox } : {}),
        config,
        env: { PGQUERY_PASSWORD: postgres.password },
        tools: { query_database: { good: [{ args }], bad: [{ args: {} }], slow: { args: { sql: 'SELECT pg_sleep(600)' } } } },
      })
      const [failed, warnings] = [[] as string[], [] as string[]]
      const context = { skip: () => {}, warn: (text: string) => warnings.push(text) }
      for (const testCase of cases.filter(({ title }) => /starts with|imports|at once|aborted while|left|behind/.test(title)))
        await testCase.run.call(context).catch((error: Error) => failed.push(`${testCase.title}: ${error.message}`))
      expect(failed).to.deep.equal([])
      // pg looks at the variables of libpq
      expect(warnings.join()).to.match(/pg looks at the variable PG/)
    })

  it('cannot write', async () => {
    const { code, err } = await svc('tools', 'call', 'query_database', '{"sql": "CREATE TABLE x (a int)"}')
    expect(code).to.equal(1)
    expect(err).to.include('cannot execute CREATE TABLE in a read-only transaction')
    const ended = await svc('tools', 'call', 'query_database', '{"sql": "COMMIT; CREATE TABLE x (a int)"}')
    expect(ended.err).to.include('cannot insert multiple commands into a prepared statement')
  })

  it('connects to no other server of the configuration until a person has accepted it', async () => {
    await configure(`127.0.0.1:${postgres.port}`)
    const args = ['tools', 'call', 'query_database', '{"sql": "SELECT 1 AS n"}']
    const refused = await svc(...args)
    expect(refused.code).to.equal(1)
    expect(refused.err).to.include('PERMISSION_NOT_ACCEPTED').and.include(`127.0.0.1:${postgres.port}`)
    const accepted = await svc('plugins', 'accept', '--yes')
    expect(accepted.code, accepted.err).to.equal(0)
    const { out, err } = await svc(...args)
    expect(out, err).to.include('[{"n":1}]')
  })

  it('answers many at once, and goes on when the database has cut its connections', async () => {
    await using service = await startService({ home: join(folder, 'home'), cwd: folder, env })
    const client = createClient(service.url)
    const query = (sql: string) =>
      client.send({
        method: 'POST',
        path: '/api/v1/chat',
        body: { provider: 'local', message: `/tool query_database ${JSON.stringify({ sql })}` },
      })
    try {
      const all = await Promise.all(Array.from({ length: 100 }, (_, n) => query(`SELECT ${n} AS n, pg_sleep(0.01)`)))
      for (const [n, { text }] of all.entries()) expect(text).to.include(`\\"n\\":${n},`)
      await query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = current_user'
      )
      expect((await query('SELECT 7 AS n')).text).to.include('\\"n\\":7')
    } finally {
      client.close()
    }
  })
})
