import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { describeWith } from './support/needs.ts'
import { newHome, startService } from './support/service.ts'
import { until } from './support/wait.ts'

describeWith('postgres', 'errors of connections to PostgreSQL', function () {
  this.timeout(180_000)
  let postgres: Postgres
  const homes: string[] = []
  before(async () => (postgres = await startPostgres({ settings: { max_connections: 13 } })))
  after(async () => {
    await postgres?.[Symbol.asyncDispose]()
    for (const home of homes) await rm(home, { recursive: true, force: true })
  })
  const home = async () => {
    const made = await newHome()
    homes.push(made)
    return made
  }
  const urlOf = (user: string) => `postgres://${user}@127.0.0.1:${postgres.port}/postgres`

  it('have one code when there are too few connections', async () => {
    const run = async (words: readonly string[], url: string) => {
      const { code, err } = await runSvc(words, { home: await home(), env: { SVC_STORE__URL: url } })
      expect(code, err).to.equal(1)
      return err
    }
    await postgres.query(`CREATE ROLE guest LOGIN PASSWORD 'guest' CONNECTION LIMIT 0`)
    for (const words of [
      ['tokens', 'list'],
      ['store', 'status'],
      ['store', 'init'],
      ['serve', '--port', '0'],
    ])
      expect(await run(words, urlOf('guest:guest')), words.join(' '))
        .to.match(/^POSTGRES_UNAVAILABLE|\nPOSTGRES_UNAVAILABLE/)
        .and.include('PostgreSQL has no free connection')
        .and.not.include('SETUP_FAILED')
    const held = Array.from({ length: 7 }, () => postgres.query('SELECT pg_sleep(25)').catch(() => {}))
    const count = `SELECT count(*)::integer AS n FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()`
    await until(
      async () => Number((await postgres.query(count))[0]!.n),
      n => n === held.length
    )
    const sum = '1 × 6 for workers and commands of svc + 7 others = 13, but PostgreSQL allows 10'
    expect(await run(['tokens', 'list'], postgres.url))
      .to.include('POSTGRES_UNAVAILABLE')
      .and.include(sum)
      .and.not.include('SETUP_FAILED')
    await postgres.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'`)
    await Promise.all(held)
  })

  it('name the file of the password for the operator, and never for clients', async () => {
    const from = await home()
    const file = join(from, 'password-of-the-store')
    await writeFile(file, postgres.password)
    const env = { SVC_STORE__URL: urlOf(postgres.user), SVC_STORE__PASSWORD_FILE: file }
    await using service = await startService({ home: from, env })
    const client = createClient(service.url, { keepAlive: false })
    await rm(file)
    const status = await runSvc(['store', 'status'], { home: from, env })
    expect(status.err)
      .to.include('store.password_file cannot be read: the file does not exist')
      .and.include('password-of-the-store')
    await postgres.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'svc %'`)
    const answers: unknown[] = []
    await until(
      async () => {
        const health = await client.get('/health')
        answers.push(health.body, (await client.post('/api/v1/chat', { message: 'a' })).body)
        return (health.body as { status: string }).status
      },
      state => state === 'unhealthy'
    )
    answers.push((await client.post('/api/v1/chat', { message: 'a' })).body, (await client.get('/health/ready')).body)
    expect(JSON.stringify(answers)).to.match(/the store cannot be reached|cannot count the open requests/)
    expect(JSON.stringify(answers)).to.not.include('password-of-the-store')
    expect(JSON.stringify(answers)).to.not.include(from)
    await writeFile(file, postgres.password)
    await until(
      // also the queue of runs, which has no run to take
      async () => (await client.get('/health')).body as { checks: { database: string; workflows: string } },
      ({ checks }) => checks.database === 'healthy' && checks.workflows === 'healthy'
    )
  })
})
