import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { RunningHost } from '@svc/core'
import { Checks, Jobs, MetricSources, type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { inNewHome } from './support/service.ts'
import { openWorkflowHost, workflowContext } from './support/workflow-host.ts'

const PLACE = fileURLToPath(new URL('support/workflow-process.ts', import.meta.url))
const ctx = workflowContext()
const RUNS = 1_000
const MANY = 10_000
const times = (count: number) => Array.from({ length: count }, (_, at) => at)

const DEFINITIONS: readonly WorkflowDefinition[] = [
  {
    name: 'ask',
    nodes: { wait: { type: 'human', message: '?', next: 'done' }, done: { type: 'transform', value: '${{ input.at }}' } },
  },
  {
    name: 'listen',
    nodes: { wait: { type: 'wait', event: 'go', next: 'done' }, done: { type: 'transform', value: '${{ input.at }}' } },
  },
]

const standOf = async (host: RunningHost) => (await host.slot(Checks).get('workflows')!.status!(ctx)).detail!
const metricOf = async (host: RunningHost, name: string) =>
  (await host.slot(MetricSources).get('workflows')!.read(ctx)).find(item => item.name === name)!.values[0]!.value

describe('many runs', () => {
  it(`wait without being held in memory, ${RUNS} of them in one host, and all go on when they may`, () =>
    inNewHome(async home => {
      const options = { db: `${home}/svc.db`, effects: `${home}/effects`, definitions: DEFINITIONS }
      let ids: readonly string[]
      {
        await using host = await openWorkflowHost(options)
        const service = host.service(Workflows)
        const begun = times(RUNS).map(at => service.start({ workflow: at % 2 ? 'ask' : 'listen', input: { at } }, ctx))
        ids = (await Promise.all(begun)).map(({ id }) => id)
        // none is worked on, too, where those of one take wait already and the next are not taken yet
        while ((await metricOf(host, 'svc_workflow_runs_waiting')) < RUNS) await new Promise(resolve => setTimeout(resolve, 50))
        while ((await metricOf(host, 'svc_workflow_runs_active')) > 0) await new Promise(resolve => setTimeout(resolve, 50))
        expect(await standOf(host)).to.deep.equal({ runs_here: 0, runs_open: RUNS, runs_waiting: RUNS })
      }
      await using host = await openWorkflowHost(options)
      const service = host.service(Workflows)
      expect(await standOf(host)).to.deep.equal({ runs_here: 0, runs_open: RUNS, runs_waiting: RUNS })
      expect(await metricOf(host, 'svc_workflow_runs_waiting')).to.equal(RUNS)
      const notify = (id: string, at: number) =>
        at % 2 ? service.answer(id, { step: 'wait', value: true }, ctx) : service.signal(id, { name: 'go', data: at }, ctx)
      await Promise.all(ids.map(notify))
      const runs = await Promise.all(ids.map(id => service.settled(id, 150_000, ctx)))
      expect(runs.map(({ status, result }) => [status, result])).to.deep.equal(times(RUNS).map(at => ['completed', at]))
      expect(await standOf(host)).to.include({ runs_open: 0, runs_waiting: 0 })
    })).timeout(180_000)

  it('of a workflow of which three may work at a time work three at a time, over two processes', () =>
    inNewHome(async home => {
      const file = `${home}/places`
      writeFileSync(file, '')
      const both = ['first', 'second'].map(name => {
        const args = ['--conditions=svc-source', PLACE, `${home}/svc.db`, file, name, '10']
        const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
        return Promise.all([text(child.stdout), once(child, 'exit')])
      })
      const reported = await Promise.all(both)
      expect(reported.flatMap(([said]) => JSON.parse(said) as string[])).to.deep.equal(times(20).map(() => 'completed'))
      let [inside, most] = [0, 0]
      for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
        inside += line === 'in' ? 1 : -1
        most = Math.max(most, inside)
      }
      expect([inside, most]).to.deep.equal([0, 3])
    })).timeout(180_000)

  it(`are listed, filtered and cancelled in bulk, ${MANY} of them`, () =>
    inNewHome(async home => {
      const options = { db: `${home}/svc.db`, effects: `${home}/effects`, definitions: DEFINITIONS, more: ['jobs'] }
      await using host = await openWorkflowHost(options)
      const service = host.service(Workflows)
      const begin = (at: number) => service.start({ workflow: at % 10 === 0 ? 'listen' : 'ask', input: { at } }, ctx)
      for (let from = 0; from < MANY; from += 500) await Promise.all(times(500).map(at => begin(from + at)))
      const seen = new Set<string>()
      for (let cursor: string | undefined; ; ) {
        const page = await service.runs({ workflow: 'listen', limit: 200, ...(cursor === undefined ? {} : { cursor }) }, ctx)
        for (const { id, workflow } of page.runs) if (workflow === 'listen') seen.add(id)
        cursor = page.next
        if (cursor === undefined) break
      }
      expect(seen.size).to.equal(MANY / 10)
      const filter = { status: 'running', workflow: 'ask' } as const
      expect(await service.bulk({ action: 'cancel', filter, dryRun: true }, ctx)).to.deep.equal({ count: (MANY * 9) / 10 })
      const { job } = await service.bulk({ action: 'cancel', filter }, ctx)
      const ended = await host.service(Jobs).settled(job!, 500_000, ctx)
      expect([ended.state, ended.error]).to.deep.equal(['completed', undefined])
      const { changed, pending, failed } = ended.result as { changed: number; pending: number; failed: number }
      expect([changed + pending, failed]).to.deep.equal([(MANY * 9) / 10, 0])
      while ((await service.bulk({ action: 'cancel', filter, dryRun: true }, ctx)).count > 0)
        await new Promise(resolve => setTimeout(resolve, 100))
      expect(await service.bulk({ action: 'retry', filter: { errorCode: 'CANCELLED' }, dryRun: true }, ctx)).to.deep.equal({
        count: (MANY * 9) / 10,
      })
      expect(await service.bulk({ action: 'cancel', filter: { status: 'running' }, dryRun: true }, ctx)).to.deep.equal({
        count: MANY / 10,
      })
    })).timeout(600_000)
})
