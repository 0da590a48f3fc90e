import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from '../support/client.ts'
import { describeWith } from '../support/needs.ts'
import { startNode } from '../support/nodes.ts'
import type { Service } from '../support/service.ts'
import { until } from '../support/wait.ts'

const RUNS = 3
const FEW = ['metrics', 'workflows', 'workflow-nodes', 'schedules', 'jobs']
const WORK = fileURLToPath(new URL('../support/long-runs.ts', import.meta.url))

describeWith('postgres', 'the number of due runs in the metrics', () => {
  let postgres: Postgres
  before(async () => (postgres = await startPostgres()))
  after(() => postgres?.[Symbol.asyncDispose]())

  it('is that of the cluster on each node', async () => {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'svc-due-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const env = { TEST_RUNS_FILE: join(folder, 'runs') }
    const config = { plugins: [WORK], store: { url: postgres.url }, cluster: { roles: ['http'] } }
    const start = async () => stack.use(await startNode({ config, few: FEW, env }))
    const isDue = ({ url }: Service, runs: number) =>
      until(
        async () => (await createClient(url, { keepAlive: false }).get('/metrics')).text,
        text => text.includes(`\nsvc_workflow_runs_due ${runs}\n`)
      )
    const [one, two] = [await start(), await start()]
    for (const node of [one, two]) await isDue(node, 0)
    const client = createClient(one.url, { keepAlive: false })
    const headers = { prefer: 'respond-async' }
    const body = { workflow: 'long', input: {} }
    for (let count = 0; count < RUNS; count++) {
      const { status, text } = await client.send({ method: 'POST', path: '/api/v1/workflows/run', headers, body })
      expect(status, text).to.equal(200)
    }
    for (const node of [one, two]) await isDue(node, RUNS)
  }).timeout(120_000)
})
