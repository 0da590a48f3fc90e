import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { auditNodeLoad, loadEnv, startNodeLoad, workersOf } from '../support/node-load.ts'
import { LONG_RUNS } from '../support/node-runs.ts'
import { isReady, startNode } from '../support/nodes.ts'
import { until } from '../support/wait.ts'

const KILLS = 10
const READY_MS = 3_000

/** A3 of the acceptance of clusters. */
describeWith('postgres', `two nodes whose PostgreSQL is killed ${KILLS} times`, () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let file: string
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
    const folder = await mkdtemp(join(tmpdir(), 'svc-kills-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    file = join(folder, 'runs')
    await writeFile(`${file}.go`, '') // runs end at once
  })
  after(() => stack.disposeAsync())

  it(`lose nothing that was acknowledged, and are ready within ${READY_MS / 1_000} s each time`, async () => {
    const config = { plugins: [LONG_RUNS], store: { url: postgres.url } }
    const few = ['workflows', 'workflow-nodes']
    const start = async () => stack.use(await startNode({ config, few, env: loadEnv(file) }))
    const nodes = await Promise.all([start(), start()])
    const processes = await Promise.all(nodes.map(workersOf))
    const load = startNodeLoad(nodes)
    const took: number[] = []
    for (let kill = 1; kill <= KILLS; kill++) {
      await load.more(20, 4)
      await postgres.kill()
      // a short outage, which callers wait for, or a long one
      if (kill % 3 === 1)
        await Promise.all(
          nodes.map(({ url }) =>
            until(
              () => isReady(url),
              ready => !ready
            )
          )
        )
      await postgres.start()
      const began = performance.now()
      await Promise.all(nodes.map(node => load.serves(node)))
      took.push(performance.now() - began)
    }
    await load.more(20, 4)
    await load.end()
    expect(Math.max(...took), `until both are ready: ${took.map(Math.round).join(', ')} ms`).to.be.below(READY_MS)
    expect(await auditNodeLoad(nodes[0].url, load, file)).to.deep.equal([])
    expect([...load.refusals.keys()].filter(reason => !reason.startsWith('503 '))).to.deep.equal([])
    expect(await Promise.all(nodes.map(workersOf))).to.deep.equal(processes)
  }).timeout(300_000)
})
