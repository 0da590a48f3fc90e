import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { lacking, skipBecause } from '../support/needs.ts'
import { beginLong, endOf, LONG_RUNS } from '../support/node-runs.ts'
import { type Balancer, BEHIND_BALANCER, isReady, startBalancer, startNode, startTurns } from '../support/nodes.ts'
import type { Service } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { effectsIn } from '../support/workflow-host.ts'

const NODES = 3
/** As in deploy/compose.yaml. */
const DELAY_S = 5
/** More than this number of answers between two changes. */
const ANSWERS = 30

/** A9 of the acceptance of clusters; `test/deploy.spec.ts` replaces the nodes of the deployment. */
describe('three nodes behind HAProxy that become one, and three again, under load', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let balancer: Balancer
  let file: string
  let ports: readonly number[]
  before(async function () {
    skipBecause(this, lacking('postgres') ?? lacking('haproxy'))
    postgres = stack.use(await startPostgres({ settings: { max_connections: 100 } }))
    ports = await Promise.all(Array.from({ length: NODES }, freePort))
    balancer = stack.use(await startBalancer(await freePort(), ports))
    const folder = await mkdtemp(join(tmpdir(), 'svc-scaling-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    file = join(folder, 'runs')
  })
  after(() => stack.disposeAsync())

  async function start(port: number): Promise<Service> {
    const config = { plugins: [LONG_RUNS], store: { url: postgres.url }, server: { ...BEHIND_BALANCER, shutdown_delay: DELAY_S } }
    const node = stack.use(await startNode({ config, port, env: { TEST_RUNS_FILE: file } }))
    await until(() => isReady(node.url), Boolean)
    return node
  }

  it('refuse no request and fail no run', async () => {
    // runs end at once
    await writeFile(`${file}.go`, '')
    const nodes: Service[] = []
    for (const port of ports) nodes.push(await start(port))
    await until(() => isReady(balancer.url), Boolean)
    const turns = startTurns(balancer.url, 4)
    const runs = startRuns(balancer.url)
    try {
      await turns.more(ANSWERS)
      for (const node of nodes.slice(1)) {
        expect(await node.stop()).to.equal(0)
        await turns.more(ANSWERS)
      }
      for (const port of ports.slice(1)) {
        nodes.push(await start(port))
        await turns.more(ANSWERS)
      }
      // the first one of all leaves, too: what it held goes on at the new ones
      expect(await nodes[0]!.stop()).to.equal(0)
      await turns.more(ANSWERS)
    } finally {
      await Promise.all([turns.stop(), runs.stop()])
    }
    expect([...turns.failed, ...runs.failed]).to.deep.equal([])
    expect(turns.answers()).to.be.above(6 * ANSWERS - 1)
    expect(runs.ids.length).to.be.above(6)
    for (const id of runs.ids) expect(await endOf(balancer.url, id)).to.include({ status: 'completed', error: null })
    const done = effectsIn(file).map(({ run, step }) => `${run} ${step}`)
    expect(done.toSorted()).to.deep.equal(runs.ids.flatMap(id => [`${id} first`, `${id} last`]).toSorted())
  }).timeout(400_000)
})

/** Begins a run, and then the next one, until it is stopped. */
function startRuns(url: string) {
  const ids: string[] = []
  const failed: string[] = []
  let isOver = false
  const running = (async () => {
    while (!isOver)
      try {
        ids.push(await beginLong(url))
      } catch (error) {
        failed.push(String(error))
      }
  })()
  return {
    ids,
    failed,
    async stop() {
      isOver = true
      await running
    },
  }
}
