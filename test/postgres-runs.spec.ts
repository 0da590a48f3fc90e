import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Postgres, startPostgres, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith, lacking, skipBecause } from './support/needs.ts'
import { beginLong, endOf, LONG_RUNS, processesIn } from './support/node-runs.ts'
import { clientsOf, startNode } from './support/nodes.ts'
import { effectsIn } from './support/workflow-host.ts'

const RUNS = 100
/** A lost node is noticed within 15 s. */
const RESUMED_MS = 20_000

/** A6 of the acceptance of clusters. */
describeWith('postgres', 'runs of two servers on one PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let folder: string
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 100 } }))
    folder = await mkdtemp(join(tmpdir(), 'svc-runs-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
  })
  after(() => stack.disposeAsync())

  /** Two servers share everything that the configuration names. */
  async function killOne(name: string, more: object): Promise<void> {
    const file = join(folder, name)
    const config = { plugins: [LONG_RUNS], store: { url: postgres.url, schema: name }, ...more }
    const start = async () => stack.use(await startNode({ config, env: { TEST_RUNS_FILE: file } }))
    const [one, two] = [await start(), await start()]
    const health = async () =>
      (await clientsOf([two])[0]!.get('/health')).body as { status: string; checks: { run_queue: object } }
    expect((await health()).status).to.equal('healthy')
    const ids = await Promise.all(Array.from({ length: RUNS }, () => beginLong(one.url)))
    while (processesIn(file, 'begin').size < RUNS) await sleep(50)
    const placesOf = () => [...processesIn(file, 'begin').values()]
    const lost = placesOf().filter(([pid]) => pid === placesOf()[0]![0]).length
    await one.kill()
    const began = performance.now()
    const isResumed = () => placesOf().every(pids => pids.length > 1)
    while (!isResumed() && performance.now() - began < 3 * RESUMED_MS) await sleep(50)
    const took = performance.now() - began
    expect(isResumed(), `of ${lost} runs`).to.equal(true)
    expect(took).to.be.below(RESUMED_MS)
    await writeFile(`${file}.go`, '')
    for (const id of ids) {
      const { status } = await endOf(two.url, id)
      expect(status).to.equal('completed')
    }
    const done = effectsIn(file).map(({ run, step }) => `${run} ${step}`)
    expect(done.toSorted()).to.deep.equal(ids.flatMap(id => [`${id} first`, `${id} last`]).toSorted())
  }

  const title = `all go on at the other one within ${RESUMED_MS / 1_000} s when one is killed, and no effect happens twice`
  it(title, () => killOne('runs', {})).timeout(400_000)

  it(`${title}, with the queue in Redis`, async function () {
    skipBecause(this, lacking('redis'))
    const redis = stack.use(await startRedis())
    await killOne('bull', { redis: { url: redis.url, use: ['queue'] } })
    expect(await redis.command('KEYS', 'svc:svc:*:queue:runs:*')).to.not.deep.equal([])
  }).timeout(400_000)
})
