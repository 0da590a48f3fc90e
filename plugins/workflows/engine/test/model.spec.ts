import { svcError } from '@svc/core'
import { type Run, Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { expectedOf, randomGraph, seeded } from './model.ts'
import { inFolder, node, openEngine, ctx } from './support.ts'

const RUNS = 40
const RESTARTS = 3

describe('the engine', () => {
  it(`does what a simple model of it says, in ${RUNS} graphs by chance, with restarts in the midst of them`, () =>
    inFolder(async folder => {
      const first = Number(process.env.SVC_TEST_SEED ?? Date.now() % 1_000_000)
      const cases = Array.from({ length: RUNS }, (_, at) => ({ seed: first + at, graph: randomGraph(seeded(first + at)) }))
      const random = seeded(first)
      const calls = new Map<string, number>()
      const done = new Set<string>()
      const again: string[] = []
      let [left, trip] = [Number.POSITIVE_INFINITY, () => {}]
      const act = node(async function* ({ run, step, attempt, settings }) {
        const name = `${run.workflow} ${step}`
        calls.set(name, (calls.get(name) ?? 0) + 1)
        if (done.has(name)) again.push(name)
        left -= 1
        if (left === 0) trip()
        await new Promise(resolve => setImmediate(resolve))
        if (attempt <= ((settings.fails as number | undefined) ?? 0)) throw svcError('ACT_FAILED', 'as it was told')
        done.add(name)
        yield { type: 'output', output: settings.value ?? null }
      })
      const open = () => openEngine({ db: `${folder}/svc.db`, nodes: { act }, strict: false })
      let host = await open()
      const starts = cases.map(({ seed, graph }) =>
        host.service(Workflows).start({ workflow: { name: `g${seed}`, ...graph } }, ctx)
      )
      const ids = (await Promise.all(starts)).map(({ id }) => id)
      for (let restarts = 0; restarts < RESTARTS; restarts++) {
        const tripped = new Promise<void>(resolve => (trip = resolve))
        left = 1 + Math.floor(random() * 40)
        const ended = Promise.all(ids.map(id => host.service(Workflows).settled(id, 60_000, ctx))).catch(() => {})
        await Promise.race([tripped, ended])
        await host.close()
        host = await open()
      }
      left = Number.POSITIVE_INFINITY
      const runs = await Promise.all(ids.map(id => host.service(Workflows).settled(id, 60_000, ctx)))
      await host.close()
      expect(again).to.deep.equal([])
      for (const [at, { seed, graph }] of cases.entries()) compare(seed, expectedOf(graph), runs[at]!, calls)
    })).timeout(120_000)
})

function compare(seed: number, expected: ReturnType<typeof expectedOf>, run: Run, calls: ReadonlyMap<string, number>): void {
  const about = `SVC_TEST_SEED=${seed}: ${JSON.stringify(run.error)}`
  expect(run.status, about).to.equal('failed' in expected.ended ? 'failed' : 'completed')
  if ('failed' in expected.ended) expect(run.error!.code, about).to.equal('ACT_FAILED')
  else expect(run.result, about).to.deep.equal(expected.ended.output)
  for (const [name, count] of calls) {
    const [workflow, step] = name.split(' ') as [string, string]
    if (workflow === run.workflow) expect(count, `${about} ${step}`).to.be.at.most(expected.calls.get(step)!)
  }
}
