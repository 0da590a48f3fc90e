import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { describeWith } from './support/needs.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { effectsIn } from './support/workflow-host.ts'

const LONG = fileURLToPath(new URL('./support/long-runs.ts', import.meta.url))
const PATH = '/api/v1/workflows'
const RUNS = 100
/** A lost node is noticed within 15 s. */
const RESUMED_MS = 20_000

const clientOf = ({ url }: Service) => createClient(url, { keepAlive: false })

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

  async function startNode(file: string, args: readonly string[] = []): Promise<Service> {
    const home = await newHome()
    stack.defer(() => rm(home, { recursive: true, force: true }))
    const config = { plugins: [LONG], store: { url: postgres.url, schema: 'runs' } }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    return startService({ home, args, env: { TEST_RUNS_FILE: file } })
  }

  /** Where the steps that can be repeated have begun, by run. */
  const begunIn = (file: string) => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
    const begun = lines.flatMap(line => (line.startsWith('begin ') ? [line.split(' ')] : []))
    return Map.groupBy(begun, ([, run]) => run!)
  }

  async function begin(service: Service): Promise<string> {
    const body = { workflow: 'long', input: {} }
    const answer = await clientOf(service).send({
      method: 'POST',
      path: `${PATH}/run`,
      headers: { prefer: 'respond-async' },
      body,
    })
    expect(answer.status, answer.text).to.equal(200)
    return (answer.body as { workflow_id: string }).workflow_id
  }

  it(`all go on at the other one within ${RESUMED_MS / 1_000} s when one is killed, and no effect happens twice`, async () => {
    const file = join(folder, 'killed')
    await using one = await startNode(file)
    await using two = await startNode(file)
    const health = async () => (await clientOf(two).get('/health')).body as { status: string; checks: { run_queue: object } }
    expect((await health()).status).to.equal('healthy')
    const ids = await Promise.all(Array.from({ length: RUNS }, () => begin(one)))
    while (begunIn(file).size < RUNS) await sleep(50)
    const placesOf = () => [...begunIn(file).values()].map(begun => begun.map(([, , , pid]) => pid))
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
      const { status } = await untilEnded(two, id)
      expect(status).to.equal('completed')
    }
    const done = effectsIn(file).map(({ run, step }) => `${run} ${step}`)
    expect(done.toSorted()).to.deep.equal(ids.flatMap(id => [`${id} first`, `${id} last`]).toSorted())
  }).timeout(400_000)

  async function untilEnded(service: Service, id: string): Promise<{ readonly status: string }> {
    for (;;) {
      const state = (await clientOf(service).get(`${PATH}/${id}/status`)).body as { status: string }
      if (state.status !== 'running') return state
      await sleep(100)
    }
  }
})
