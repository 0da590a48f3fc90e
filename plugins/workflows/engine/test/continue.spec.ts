import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import { type Json, type Run, type WorkflowDefinition, WorkflowDefinitions, Workflows } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { ctx, inFolder, node, openEngine, until, waitingRun } from './support.ts'

const chain = (more: Partial<WorkflowDefinition> = {}): WorkflowDefinition => ({
  name: 'chain',
  inputs: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  parameters: { p: { type: 'string', default: 'p' } },
  nodes: {
    more: { type: 'condition', if: 'input.n < 3', branches: { true: 'again', false: 'done' } },
    again: { type: 'continue_as_new', input: { n: '${{ input.n + 1 }}' } },
    done: { type: 'transform', value: '${{ parameters.p }}' },
  },
  ...more,
})

async function lastOf(workflows: Workflows, id: string): Promise<Run> {
  let run = await workflows.settled(id, 10_000, ctx)
  while (run.nextRun !== undefined) run = await workflows.settled(run.nextRun, 10_000, ctx)
  return run
}
const all = async (workflows: Workflows) => (await workflows.runs({ limit: 50 }, ctx)).runs.toReversed()
const start = async (workflows: Workflows, workflow: WorkflowDefinition, input: Json = { n: 0 }, parameters: Json = { p: 'q' }) =>
  (await workflows.start({ workflow, input, parameters }, ctx)).id

describe('a run that continues as new', () => {
  it('ends, and the next begins with the new input, the same parameters and a log of its own, linked both ways', async () => {
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const id = await start(workflows, chain())
    const last = await lastOf(workflows, id)
    const runs = await all(workflows)
    expect(runs.map(({ input }) => input)).to.deep.equal([0, 1, 2, 3].map(n => ({ n })))
    expect(runs.map(({ nextRun }) => nextRun)).to.deep.equal([...runs.slice(1).map(run => run.id), undefined])
    expect(runs.map(({ previousRun }) => previousRun)).to.deep.equal([undefined, ...runs.slice(0, -1).map(run => run.id)])
    expect(runs.slice(1).every(({ firstRun }) => firstRun === id)).to.equal(true)
    expect(last.result).to.equal('q')
    expect((await workflows.steps(last.id, ctx)).map(({ step }) => step)).to.deep.equal(['more', 'done'])
    const ends = []
    for await (const { type, data } of workflows.events(id, 0, ctx)) if (type === 'run_completed') ends.push(data.next_run)
    expect(ends).to.deep.equal([runs[1]!.id])
  })

  it('keeps to one run at a time of a workflow with such a limit', async () => {
    let [open, most] = [0, 0]
    const busy = node(async function* () {
      most = Math.max(most, (open += 1))
      await new Promise(resolve => setTimeout(resolve, 20))
      open -= 1
      yield { type: 'output', output: null }
    })
    await using host = await openEngine({ nodes: { busy } })
    const workflows = host.service(Workflows)
    const { nodes } = chain()
    const limited = chain({ concurrency: 1, nodes: { busy: { type: 'busy', next: 'more' }, ...nodes } })
    const ids = await Promise.all([start(workflows, limited), start(workflows, limited)])
    for (const id of ids) expect((await lastOf(workflows, id)).status).to.equal('completed')
    expect([most, (await all(workflows)).length]).to.deep.equal([1, 8])
  })

  it('hands on events, and takes those for a former run', async () => {
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const id = await waitingRun(host, {
      name: 'listens',
      inputs: { type: 'object', properties: { late: { type: 'boolean' } } },
      nodes: {
        late: { type: 'condition', if: 'has(input.late)', branches: { true: 'kept', false: 'go' } },
        go: { type: 'wait', event: 'go', next: 'again' },
        again: { type: 'continue_as_new', input: { late: true } },
        kept: { type: 'wait', event: 'kept', next: 'more' },
        more: { type: 'wait', event: 'more', next: 'end' },
      },
      result: ['${{ nodes.kept.data }}', '${{ nodes.more.data }}'],
    })
    await workflows.signal(id, { name: 'kept', data: 1 }, ctx)
    await workflows.signal(id, { name: 'go', data: null }, ctx)
    await until(async () => (await workflows.get(id, ctx)).nextRun !== undefined)
    await workflows.signal(id, { name: 'more', data: 2 }, ctx)
    expect((await lastOf(workflows, id)).result).to.deep.equal([1, 2])
    expect(await workflows.signal(id, { name: 'more', data: 3 }, ctx).then(() => undefined, codeOf)).to.equal('INVALID_VALUE')
  })

  it('uses the current version of its file, its own while that is broken, and its own on request', async () => {
    await inFolder(async folder => {
      const file = join(folder, 'grows.yaml')
      const text = (said: string, definition = 'current') => `name: grows
inputs: { type: object, properties: { n: { type: integer } } }
nodes:
  go: { type: wait, event: go, next: more }
  more: { type: condition, if: input.n < 1, branches: { true: again, false: done } }
  again: { type: continue_as_new, input: { n: "\${{ input.n + 1 }}" }, definition: ${definition} }
  done: { type: transform, value: ${said} }
`
      await using host = await openEngine({ config: { workflows: { roots: [folder] } } })
      const workflows = host.service(Workflows)
      const second = async (changed: string, definition?: string) => {
        await writeFile(file, text('old', definition))
        const { id } = await workflows.start({ workflow: 'grows', input: { n: 0 } }, ctx)
        await until(async () => (await workflows.get(id, ctx)).waiting.length > 0)
        await writeFile(file, changed)
        await workflows.signal(id, { name: 'go', data: null }, ctx)
        await until(async () => (await workflows.get(id, ctx)).nextRun !== undefined)
        await workflows.signal(id, { name: 'go', data: null }, ctx)
        return (await lastOf(workflows, id)).result
      }
      expect(await second(text('new'))).to.equal('new')
      expect(await second('name: grows\nnodes: { a: { type: nothing } }\n')).to.equal('old')
      expect(await second(text('new', 'same'), 'same')).to.equal('old')
    })
  })

  it('fails with an input that does not match, undoes what it did, and starts nothing', async () => {
    const undone: string[] = []
    const note = node(async function* ({ step }) {
      undone.push(step)
      yield { type: 'output', output: null }
    })
    await using host = await openEngine({ nodes: { note } })
    const workflows = host.service(Workflows)
    const bad = chain({
      nodes: {
        a: { type: 'note', compensate: { type: 'note' }, next: 'again' },
        again: { type: 'continue_as_new', input: { n: '${{ run.id }}' } },
      },
    })
    const run = await lastOf(workflows, await start(workflows, bad))
    expect([run.status, run.error?.code, run.nextRun]).to.deep.equal(['failed', 'INVALID_VALUE', undefined])
    expect(undone).to.deep.equal(['a', 'undo/a/do'])
    expect((await all(workflows)).length).to.equal(1)
  })

  it('can be cancelled and paused while the chain goes on', async function () {
    this.timeout(20_000)
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const endless = chain({
      nodes: { a: { type: 'wait', for: '5ms', next: 'again' }, again: { type: 'continue_as_new', input: { n: 1 } } },
    })
    const id = await start(workflows, endless)
    await until(async () => (await all(workflows)).length > 5)
    const open = async () => (await all(workflows)).filter(({ status }) => status === 'running')
    // whichever run is asked while it ends, the last one gets it
    while ((await open()).some(run => run.pausedAt === undefined)) {
      const [run] = await open()
      if (run) await workflows.pause(run.id, ctx).catch(() => {})
    }
    const [paused] = await open()
    expect(typeof paused!.pausedAt).to.equal('number')
    const count = (await all(workflows)).length
    await new Promise(resolve => setTimeout(resolve, 300))
    expect((await all(workflows)).length).to.equal(count)
    expect((await workflows.cancel(paused!.id, ctx)).error?.code).to.equal('CANCELLED')
    expect([await open(), (await workflows.get(id, ctx)).status]).to.deep.equal([[], 'completed'])
  })

  it('is refused in bodies, compensations and with edges, and fails in a subworkflow', async () => {
    const inner = chain({ name: 'inner' })
    await using host = await openEngine({ give: [item(WorkflowDefinitions, 'inner', inner)], strict: false })
    const workflows = host.service(Workflows)
    const problems = async (nodes: object) =>
      (await workflows.validate({ text: JSON.stringify({ ...chain(), nodes }) }, ctx)).map(
        ({ path, message }) => `${path}: ${message}`
      )
    const again = { type: 'continue_as_new', input: { n: 1 } }
    expect((await problems({ m: { type: 'map', over: '[1]', do: again } })).join()).to.match(
      /nodes\.m\.do\.type: continue_as_new must be a node of the outermost/
    )
    expect((await problems({ a: { type: 'transform', value: 1, compensate: again } })).join()).to.match(
      /compensate\.type: continue_as_new must be/
    )
    expect((await problems({ a: { ...again, next: 'b' }, b: { type: 'transform', value: 1 } })).join()).to.match(
      /nodes\.a\.next: has no meaning/
    )
    expect((await problems({ a: { type: 'continue_as_new' } })).join()).to.match(/nodes\.a\.input/)
    expect(await problems({ a: again })).to.deep.equal([])
    const outer: WorkflowDefinition = { name: 'outer', nodes: { s: { type: 'subworkflow', workflow: 'inner', input: { n: 0 } } } }
    const { id } = await workflows.start({ workflow: outer }, ctx)
    const run = await workflows.settled(id, 10_000, ctx)
    expect([run.status, run.error?.code]).to.deep.equal(['failed', 'INVALID_VALUE'])
  })
})
