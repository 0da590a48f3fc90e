import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Postgres, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import type { History } from '../support/history.ts'
import { describeWith } from '../support/needs.ts'
import { beginLong, endOf, LONG_RUNS, processesIn } from '../support/node-runs.ts'
import { clientsOf, isReady, startNode } from '../support/nodes.ts'
import { until } from '../support/wait.ts'
import { effectsIn } from '../support/workflow-host.ts'
import { follow } from '../support/workflow-load.ts'

const CUT_MS = 60_000
const [NOT_READY_MS, RESUMED_MS, BACK_MS] = [5_000, 20_000, 15_000]
const RUNS = 10
const CHAT = '/api/v1/chat'

/** A5 of the acceptance of clusters. */
describeWith('postgres', `a node that is cut off from PostgreSQL for ${CUT_MS / 1_000} s`, () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let file: string
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
    const folder = await mkdtemp(join(tmpdir(), 'svc-partition-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    file = join(folder, 'runs')
  })
  after(() => stack.disposeAsync())

  it('is not ready, loses its runs to the others, and nothing that it writes on its return counts', async () => {
    const proxy = stack.use(await startTcpProxy(postgres))
    const nodeAt = async (url: string) => {
      const config = { plugins: [LONG_RUNS], store: { url }, chat: { queue_timeout_ms: 60_000 } }
      return stack.use(await startNode({ config, env: { TEST_RUNS_FILE: file } }))
    }
    const [one, two] = [await nodeAt(proxy.url), await nodeAt(postgres.url)]
    const [first, second] = clientsOf([one, two])
    const ids = await Promise.all(Array.from({ length: RUNS }, () => beginLong(one.url, 'deaf')))
    await until(
      async () => processesIn(file, 'begin').size,
      count => count === RUNS
    )
    const begun = await first!.post(CHAT, { message: 'one' })
    const { conversation_id } = begun.body as { conversation_id: string }
    const cut = first!.post(CHAT, { message: '/delay 20000\nlost', conversation_id })
    await sleep(1_000)

    proxy.drop()
    const began = performance.now()
    const since = () => performance.now() - began
    const lost = [...processesIn(file, 'begin')].filter(([, [pid]]) => pid !== workerOf(file, ids[0]!)).length
    await until(
      () => isReady(one.url),
      ready => !ready
    )
    expect(since(), 'until it is not ready').to.be.below(NOT_READY_MS)
    expect(await isReady(two.url)).to.equal(true)
    // its answer comes when the time limits of its statements are over
    const refusing = first!.post(CHAT, { message: 'unheard' })
    await until(
      async () => [...processesIn(file, 'begin').values()].every(pids => new Set(pids).size > 1) || since() > 2 * RESUMED_MS,
      Boolean
    )
    expect(since(), `until ${RUNS - lost} runs go on elsewhere`).to.be.below(RESUMED_MS)
    const refused = await refusing
    expect(refused.status, refused.text).to.equal(503)
    // the conversation is free, too, while the turn of the other node is still being made
    const next = await second!.post(CHAT, { message: 'two', conversation_id })
    expect(next.body, next.text).to.include({ response: 'You said: two (turn 2)' })

    // the steps end on both nodes; the results of one of them wait in its connections
    await writeFile(`${file}.go`, '')
    const ends = await Promise.all(ids.map(id => endOf(two.url, id)))
    await sleep(Math.max(0, CUT_MS - since()))
    expect(await isReady(one.url)).to.equal(false)
    proxy.heal()
    const healed = performance.now()
    await until(() => isReady(one.url), Boolean)
    expect(performance.now() - healed, 'until it is ready again').to.be.below(BACK_MS)

    expect((await cut).status).to.be.above(499)
    for (const client of [first!, second!]) {
      const { body } = await client.get(`/api/v1/conversations/${conversation_id}`)
      expect((body as History).messages.map(({ content }) => content)).to.deep.equal([
        'one',
        'You said: one',
        'two',
        'You said: two (turn 2)',
      ])
    }
    for (const [at, id] of ids.entries()) {
      const late = processesIn(file, 'begin').get(id)!
      expect(new Set(processesIn(file, 'end').get(id)), 'both have ended the step').to.deep.equal(new Set(late))
      expect(ends[at]).to.deep.include({ status: 'completed', result: { by: late.at(-1) } })
      for (const { url } of [one, two]) {
        expect(await endOf(url, id)).to.deep.include({ status: 'completed', result: { by: late.at(-1) } })
        const { events } = await follow(url, id)
        expect(events.filter(({ event }) => event === 'run_completed')).to.have.length(1)
      }
    }
    const done = effectsIn(file).map(({ run, step }) => `${run} ${step}`)
    expect(done.toSorted()).to.deep.equal(ids.flatMap(id => [`${id} first`, `${id} last`]).toSorted())
    const own = await first!.post(CHAT, { message: 'three', conversation_id })
    expect(own.body, own.text).to.include({ response: 'You said: three (turn 3)' })
    const { nodes } = (await first!.get('/api/v1/nodes')).body as { nodes: unknown[] }
    expect(nodes).to.have.length(2)
  }).timeout(400_000)
})

const workerOf = (file: string, id: string) => processesIn(file, 'begin').get(id)![0]
