import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from './support/needs.ts'
import { LONG_RUNS, processesIn } from './support/node-runs.ts'
import { clientsOf, startNode } from './support/nodes.ts'
import { until } from './support/wait.ts'

const JOBS = 100
/** A lost node is noticed within 15 s. */
const RESUMED_MS = 20_000
const PATH = '/api/v1/jobs'

describeWith('postgres', 'jobs of two servers on one PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let folder: string
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 100 } }))
    folder = await mkdtemp(join(tmpdir(), 'svc-jobs-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
  })
  after(() => stack.disposeAsync())

  it(`all go on at the other one within ${RESUMED_MS / 1_000} s when one is killed, each once at a time`, async () => {
    const file = join(folder, 'records')
    const config = { plugins: [LONG_RUNS], store: { url: postgres.url, schema: 'jobs' }, jobs: { concurrency: JOBS } }
    const start = async () => stack.use(await startNode({ config, env: { TEST_RUNS_FILE: file } }))
    const one = await start()
    const names = Array.from({ length: JOBS }, (_, at) => `job${at}`)
    const added = await Promise.all(names.map(input => clientsOf([one])[0]!.post(PATH, { kind: 'hold', input })))
    expect(new Set(added.map(({ status }) => status)), added[0]!.text).to.deep.equal(new Set([201]))
    const begun = () => [...processesIn(file, 'begin').values()]
    await until(
      async () => begun().length,
      count => count === JOBS
    )
    const two = await start()
    const [client] = clientsOf([two])
    await one.kill()
    const killed = performance.now()
    await until(async () => begun().every(pids => pids.length > 1), Boolean)
    expect(performance.now() - killed).to.be.below(RESUMED_MS)
    await writeFile(`${file}.go`, '')
    for (const { body } of added) {
      const { id } = body as { id: string }
      const ended = await until(
        async () => (await client!.get(`${PATH}/${id}`)).body as { state: string; attempts: number },
        ({ state }) => state !== 'running' && state !== 'queued'
      )
      expect(ended).to.include({ state: 'completed', attempts: 2 })
    }
    // the dead server ended none, and the living one began each once
    const [[first, second]] = begun() as [[number, number]]
    expect(first).to.not.equal(second)
    for (const pids of begun()) expect(pids).to.deep.equal([first, second])
    expect([...processesIn(file, 'end').values()].flat()).to.deep.equal(Array.from({ length: JOBS }, () => second))
  }).timeout(300_000)
})
