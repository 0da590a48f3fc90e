import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, startPostgres, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith, lacking, skipBecause } from './support/needs.ts'
import { beginLong, endOf, LONG_RUNS, processesIn } from './support/node-runs.ts'
import { clientsOf, startNode } from './support/nodes.ts'
import type { Service } from './support/service.ts'
import { until } from './support/wait.ts'

const PATH = '/api/v1/workflows'
/** A lost node is noticed within 15 s; then its runs wait for it. */
const [WAIT, LOST_MS] = ['3s', 40_000]

interface RunStatus {
  readonly status: string
  readonly affinity: string | null
  readonly failure_code: string | null
  readonly waiting_for?: readonly unknown[]
}

const statusOf = async ({ url }: Service, id: string) =>
  (await clientsOf([{ url }])[0]!.get(`${PATH}/${id}/status`)).body as RunStatus

describeWith('postgres', 'runs that use the files of a server on PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let folder: string
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 100 } }))
    folder = await mkdtemp(join(tmpdir(), 'svc-places-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
  })
  after(() => stack.disposeAsync())

  /** Two servers with working folders of their own; `file` is where their runs write what they do. */
  async function openTwo(schema: string, more: object = {}) {
    const file = join(folder, schema)
    const rootOf = (name: string) => join(folder, `${schema}-${name}`)
    const start = async (name: string, home?: string) => {
      await mkdir(rootOf(name), { recursive: true })
      const config = {
        plugins: [LONG_RUNS],
        store: { url: postgres.url, schema },
        tools: { files: { roots: [rootOf(name)] } },
        workflows: { workplace_wait: WAIT },
        ...more,
      }
      return stack.use(await startNode({ config, env: { TEST_RUNS_FILE: file }, ...(home === undefined ? {} : { home }) }))
    }
    const [one, two] = [await start('one'), await start('two')]
    return { file, start, one, two, filesOf: (name: string) => readdir(rootOf(name)) }
  }

  /** A run that executes `stay` on this server, and one that sleeps there. */
  async function beginBoth(server: Service, file: string) {
    const [held, asking] = [await beginLong(server.url, 'filed'), await beginLong(server.url, 'filed-question')]
    await until(
      async () => processesIn(file, 'begin').get(held),
      pids => pids !== undefined
    )
    await until(
      () => statusOf(server, asking),
      ({ waiting_for: waiting }) => waiting !== undefined
    )
    return [held, asking] as const
  }

  /** Whether they run or sleep, the runs of a killed server fail; others go on. */
  async function killOne(schema: string, more: object): Promise<void> {
    const { file, one, two, filesOf } = await openTwo(schema, more)
    const ids = await beginBoth(one, file)
    const free = await beginLong(one.url)
    const bound = await statusOf(two, ids[0])
    expect([bound.status, typeof bound.affinity]).to.deep.equal(['running', 'string'])
    await one.kill()
    const began = performance.now()
    for (const id of ids) await endOf(two.url, id)
    expect(performance.now() - began).to.be.below(LOST_MS)
    for (const id of ids)
      expect(await statusOf(two, id)).to.include({ status: 'failed', failure_code: 'WORKPLACE_LOST', affinity: bound.affinity })
    await writeFile(`${file}.go`, '')
    expect((await endOf(two.url, free)).status).to.equal('completed')
    // none of them has gone on here
    expect(await filesOf('two')).to.deep.equal([])
    expect(processesIn(file, 'begin').get(ids[0])).to.have.length(1)
    expect((await clientsOf([two])[0]!.get('/health')).body).to.include({ status: 'healthy' })
  }

  const title = 'fail with WORKPLACE_LOST when it is killed, whether they run or sleep'
  it(title, () => killOne('places_lost', {})).timeout(300_000)

  it(`${title}, with the queue in Redis`, async function () {
    skipBecause(this, lacking('redis'))
    const redis = stack.use(await startRedis())
    await killOne('places_bull', { redis: { url: redis.url, use: ['queue'] } })
  }).timeout(300_000)

  it('go on there when only its worker is killed, although another server is free', async () => {
    const { file, one, two, filesOf } = await openTwo('places_worker')
    const [held, asking] = await beginBoth(one, file)
    process.kill(processesIn(file, 'begin').get(held)![0]!, 'SIGKILL')
    await until(
      async () => processesIn(file, 'begin').get(held)!.length,
      count => count > 1
    )
    await writeFile(`${file}.go`, '')
    const answer = { step: 'stay', value: true }
    await clientsOf([two])[0]!.send({ method: 'POST', path: `${PATH}/${asking}/answer`, body: answer })
    for (const id of [held, asking])
      expect(await endOf(two.url, id)).to.deep.include({ status: 'completed', result: { read: id } })
    expect(await filesOf('two')).to.deep.equal([])
  }).timeout(300_000)

  it('wait for it while it is restarted', async () => {
    const { start, one, two, file } = await openTwo('places_restart', { workflows: { workplace_wait: '10m' } })
    const [held, asking] = await beginBoth(one, file)
    await one.kill()
    await writeFile(`${file}.go`, '')
    await clientsOf([two])[0]!.send({ method: 'POST', path: `${PATH}/${asking}/answer`, body: { step: 'stay', value: true } })
    expect(await statusOf(two, held)).to.include({ status: 'running' })
    await start('one', one.home)
    for (const id of [held, asking])
      expect(await endOf(two.url, id)).to.deep.include({ status: 'completed', result: { read: id } })
  }).timeout(300_000)
})
