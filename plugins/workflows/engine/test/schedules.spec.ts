import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, type RunningHost } from '@svc/core'
import { Jobs, type Run, Schedules, WorkflowDefinitions, Workflows } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { ctx, inFolder, openEngine, until } from './support.ts'

const DAYS = 20_000

const ticking = (schedule: string, nodes = 'a: { type: transform, value: "${{ input.n }}" }') =>
  `name: ticks\ninputs: { type: object, properties: { n: { type: integer } }, required: [n] }\nnodes: { ${nodes} }\nschedule: ${schedule}\n`

const open = (folder: string, more: Parameters<typeof openEngine>[0] = {}) =>
  openEngine({
    more: ['jobs', 'schedules'],
    db: join(folder, 'store.db'),
    config: { workflows: { roots: [folder] }, jobs: { execute: true, drain_s: 5 }, schedules: { execute: true } },
    ...more,
  })

const runsOf = async (host: RunningHost): Promise<readonly Run[]> =>
  (await host.service(Workflows).runs({ limit: 200, workflow: 'ticks' }, ctx)).runs
const shown = async (host: RunningHost) => (await host.service(Schedules).list(ctx)).find(({ name }) => name === 'workflow.ticks')

describe('the schedule of a workflow definition', () => {
  it('starts runs with its input as its owner, follows changes of the file, and goes with it', async function () {
    this.timeout(DAYS * 2)
    await inFolder(async folder => {
      const file = join(folder, 'ticks.yaml')
      await writeFile(file, ticking('{ every: 1s, input: { n: 7 }, owner: alice, description: Each second }'))
      await using host = await open(folder)
      await until(async () => (await runsOf(host)).filter(({ status }) => status === 'completed').length >= 2)
      expect(await shown(host)).to.deep.include({
        origin: 'workflow',
        owner: 'alice',
        everyMs: 1_000,
        description: 'Each second',
        job: { kind: 'workflows.run', input: { workflow: 'ticks', input: { n: 7 } } },
      })
      const [run] = await runsOf(host)
      expect(run).to.deep.include({ input: { n: 7 }, result: 7 })
      // the owner sees its runs and the schedule, others do not
      const [alice, bob] = ['alice', 'bob'].map(id => testContext({ principal: { id, scopes: ['workflows', 'read'] } }))
      expect((await host.service(Workflows).runs({ limit: 1 }, alice!)).runs).to.have.length(1)
      expect((await host.service(Workflows).runs({ limit: 1 }, bob!)).runs).to.deep.equal([])
      expect((await host.service(Schedules).list(alice!)).map(({ name }) => name)).to.deep.equal(['workflow.ticks'])
      expect(await host.service(Schedules).list(bob!)).to.deep.equal([])
      const fixed = await host.service(Schedules).remove('workflow.ticks', ctx).catch(codeOf)
      expect(fixed).to.equal('SCHEDULE_FIXED')

      await writeFile(
        file,
        ticking('{ cron: "0 3 1 1 *", time_zone: Europe/Berlin, input: { n: 8 }, overlap: allow, jitter: 1m }')
      )
      await until(async () => (await shown(host))?.cron !== undefined)
      expect(await shown(host)).to.deep.include({ timeZone: 'Europe/Berlin', jitterMs: 60_000, owner: 'workflow:ticks' })
      await writeFile(file, ticking('{ cron: "61 * * * *", input: { n: 8 } }'))
      await until(async () => (await shown(host)) === undefined)
      await rm(file)
      expect(await shown(host)).to.equal(undefined)
    })
  })

  it('skips, queues and cancels by the state of the run, not of a job that has started it', async function () {
    this.timeout(DAYS * 2)
    await inFolder(async folder => {
      const file = join(folder, 'ticks.yaml')
      const wait = 'w: { type: wait, event: go }'
      await writeFile(file, ticking('{ every: 1s, input: { n: 1 } }', wait))
      await using host = await open(folder)
      const [workflows, schedules] = [host.service(Workflows), host.service(Schedules)]
      await until(async () => (await schedules.ticks('workflow.ticks', 5, ctx).catch(() => [])).length >= 3)
      const [only, ...none] = await runsOf(host)
      expect([only!.status, none]).to.deep.equal(['running', []])
      expect((await schedules.ticks('workflow.ticks', 1, ctx))[0]).to.include({ skipped: 'overlap' })

      await writeFile(file, ticking('{ every: 1s, input: { n: 2 }, overlap: cancel }', wait))
      await until(async () => (await workflows.get(only!.id, ctx)).error?.code === 'CANCELLED')
      await until(async () => (await runsOf(host)).length >= 4)
      const running = (await runsOf(host)).filter(({ status }) => status === 'running')
      expect(running.length).to.be.lessThan(3)
      expect((await runsOf(host)).slice(2).every(run => run.error?.code === 'CANCELLED')).to.equal(true)
    })
  })

  it('loses and doubles no tick over a restart in the middle of runs', async function () {
    this.timeout(DAYS * 2)
    await inFolder(async folder => {
      await writeFile(join(folder, 'ticks.yaml'), ticking('{ every: 1s, input: { n: 1 }, overlap: allow, catch_up: all }'))
      for (let round = 0; round < 3; round += 1) {
        await using host = await open(folder)
        const before = (await runsOf(host)).length
        await until(async () => (await runsOf(host)).length >= before + 2)
      }
      await using host = await open(folder)
      await until(async () => (await shown(host)) !== undefined)
      const ticks = await host.service(Schedules).ticks('workflow.ticks', 100, ctx)
      const times = ticks.map(({ tick }) => tick).toReversed()
      const all = Array.from({ length: (times.at(-1)! - times[0]!) / 1_000 + 1 }, (_, at) => times[0]! + at * 1_000)
      expect(times).to.deep.equal(all)
      const jobs = await Promise.all(ticks.map(({ job }) => host.service(Jobs).settled(job!, 10_000, ctx)))
      const started = new Set(jobs.map(({ result }) => (result as { run_id: string }).run_id))
      expect(started.size).to.equal(ticks.length)
    })
  })

  it('gives a job that runs again after a crash the same run, and fails one whose workflow is gone', async () => {
    await inFolder(async folder => {
      await writeFile(join(folder, 'ticks.yaml'), ticking('{ cron: "0 3 1 1 *", input: { n: 1 } }'))
      await using host = await open(folder)
      const jobs = host.service(Jobs)
      const add = (input: object) => jobs.add({ kind: 'workflows.run', input: input as never }, ctx)
      const { id } = await add({ workflow: 'ticks', input: { n: 3 } })
      expect((await jobs.settled(id, 10_000, ctx)).result).to.include({ status: 'completed' })
      // as a worker that died between the start of the run and its checkpoint
      const again = await host.service(Workflows).start({ workflow: 'ticks', input: { n: 3 }, idempotencyKey: `job:${id}` }, ctx)
      expect(again.id).to.equal(((await jobs.get(id, ctx)).result as { run_id: string }).run_id)
      const gone = await add({ workflow: 'nothing' })
      expect(await jobs.settled(gone.id, 10_000, ctx)).to.deep.include({ state: 'failed', attempts: 1 })
      const wrong = await jobs.settled((await add({ workflow: 'ticks', input: { n: 'x' } })).id, 10_000, ctx)
      expect([wrong.state, wrong.error?.code]).to.deep.equal(['failed', 'INVALID_VALUE'])
      expect(await add({ workflow: 'ticks', more: 1 }).catch(codeOf)).to.equal('INVALID_VALUE')
    })
  })

  it('belongs to no owner that it names where tools can write definitions', async () => {
    await inFolder(async folder => {
      await writeFile(join(folder, 'ticks.yaml'), ticking('{ every: 1h, owner: alice, input: { n: 1 } }'))
      const workflows = { roots: [folder], writable_by_tools: true }
      await using host = await open(folder, {
        config: { workflows, jobs: { execute: true, drain_s: 5 }, schedules: { execute: true } },
      })
      await until(async () => (await shown(host)) !== undefined)
      expect((await shown(host))?.owner).to.equal('workflow:ticks')
    })
  })

  it('runs as the plugin that adds the definition, whatever owner it names', async function () {
    this.timeout(DAYS)
    const definition = {
      name: 'ticks',
      nodes: { a: { type: 'transform', value: 1 } },
      schedule: { every: '1s', owner: 'alice' },
    }
    await inFolder(async folder => {
      await using host = await open(folder, { give: [item(WorkflowDefinitions, 'ticks', definition)], strict: false })
      await until(async () => (await runsOf(host)).length > 0)
      expect((await shown(host))?.owner).to.match(/^plugin:/)
    })
  })

  it('keeps its name from callers', async () => {
    await inFolder(async folder => {
      await using host = await open(folder)
      const spec = { everyMs: 1_000, job: { kind: 'workflows.run', input: { workflow: 'ticks' } } }
      expect(await host.service(Schedules).add('workflow.ticks', spec, ctx).catch(codeOf)).to.equal('SCHEDULE_INVALID')
      await writeFile(join(folder, 'ticks.yaml'), ticking('{ cron: "0 3 1 1 *", input: { n: 1 } }'))
      const added = await host
        .service(Schedules)
        .add('mine', { ...spec, job: { kind: 'workflows.run', input: { workflow: 'ticks', input: { n: 4 } } } }, ctx)
      expect(added.origin).to.equal('added')
      await until(async () => (await runsOf(host)).some(({ input }) => JSON.stringify(input) === '{"n":4}'))
    })
  })

  it('reports mistakes of a schedule with their places', async () => {
    await using host = await openEngine()
    const problems = async (schedule: string) =>
      (await host.service(Workflows).validate({ text: ticking(schedule) }, ctx)).map(({ path, message }) => `${path}: ${message}`)
    const bad = [
      ['{ input: { n: 1 } }', /^schedule: must have either cron or every/],
      ['{ cron: "0 3 * * *", every: 1h, input: { n: 1 } }', /^schedule: must have either/],
      ['{ cron: "61 * * * *", input: { n: 1 } }', /^schedule\.cron: .*position 1/],
      ['{ cron: "0 3 31 2 *", input: { n: 1 } }', /^schedule\.cron: never occurs/],
      ['{ every: 10ms, input: { n: 1 } }', /^schedule\.every: must be from 1 second/],
      ['{ every: 1h, jitter: 2d, input: { n: 1 } }', /^schedule\.jitter: must be from 0 to one day/],
      ['{ cron: "0 3 * * *", time_zone: Mars/Base, input: { n: 1 } }', /^schedule\.time_zone: /],
      ['{ every: 1h, overlap: both, input: { n: 1 } }', /^schedule\.overlap: /],
      ['{ every: 1h, owner: system, input: { n: 1 } }', /^schedule\.owner: /],
      ['{ every: 1h, owner: "plugin:x", input: { n: 1 } }', /^schedule\.owner: /],
      ['{ every: 1h, input: { n: one } }', /^schedule\.input\.n: /],
      ['{ every: 1h }', /^schedule: needs input\.n, which is required/],
      ['{ every: 1h, input: { n: "${{ run.id }}" } }', /^schedule\.input: contains an expression/],
      ['{ every: 1h, input: { n: 1 }, parameters: { p: 1 } }', /^schedule\.parameters\.p: /],
      ['{ every: 1h, input: { n: 1 }, when: now }', /^schedule\.when: /],
      ['[1]', /^schedule: /],
    ] as const
    for (const [schedule, expected] of bad)
      expect(
        (await problems(schedule)).some(line => expected.test(line)),
        `${schedule}: ${(await problems(schedule)).join('; ')}`
      ).to.equal(true)
    expect(await problems('{ every: 1h, input: { n: 1 } }')).to.deep.equal([])
  })
})
