import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, svcError } from '@svc/core'
import { Peers, Store, type StoreOp, type WorkflowDefinition, WorkflowNodes, Workflows } from '@svc/core/contracts'
import { type Fixture, item, service, testHost } from '@svc/testing'
import { expect } from 'chai'
import { ALONE, node, plugin, ctx } from './support.ts'

interface Entry {
  readonly t: string
  readonly s?: string
}
const entriesIn = (ops: readonly StoreOp[]) =>
  ops.flatMap(op => (op.op === 'append' && op.log === 'workflow_log' ? (op.values as unknown as Entry[]) : []))
const isOfRun = (ops: readonly StoreOp[]) =>
  entriesIn(ops).length > 0 || ops.some(op => op.op === 'put' && op.collection === 'workflow_runs')

/** An engine over a store whose writes of runs are seen, and refused where `refuse` says with what. */
async function openWatched(
  refuse: (ops: readonly StoreOp[]) => string | undefined | Promise<undefined> = () => undefined,
  more: readonly Fixture[] = []
) {
  const below = await testHost([plugin('store-memory')])
  const store = below.service(Store)
  const writes: string[][] = []
  const queued: StoreOp[] = []
  const leases: string[] = []
  const watched: Store = {
    ...store,
    acquire(lease, how, theirs) {
      leases.push(lease)
      return store.acquire(lease, how, theirs)
    },
    async batch(ops, options, theirs) {
      const code = await refuse(ops)
      if (code !== undefined) throw svcError(code, 'as the test has it')
      queued.push(...ops.filter(op => op.op === 'put' && op.collection === 'run_queue'))
      if (isOfRun(ops)) writes.push(entriesIn(ops).map(({ t, s = '' }) => `${t} ${s}`.trim()))
      return store.batch(ops, options, theirs)
    },
  }
  const seen: Record<string, string[]> = {}
  /** Tells what is stored of its run when it runs. */
  const look = (repeatable: boolean) =>
    node(
      async function* ({ run, step }) {
        const log = await store.read('workflow_log', run.id, { limit: 100 }, ctx)
        seen[step] = log.map(({ value }) => value as unknown as Entry).map(({ t, s = '' }) => `${t} ${s}`.trim())
        yield { type: 'output', output: step }
      },
      { repeatable }
    )
  const host = await testHost(['modes', 'queue-store', 'workflow-nodes', 'workflows'].map(plugin), {
    give: [service(Store, watched), item(WorkflowNodes, 'look', look(true)), item(WorkflowNodes, 'once', look(false)), ...more],
  })
  const close = async () => {
    await host[Symbol.asyncDispose]()
    await below[Symbol.asyncDispose]()
  }
  return { host, workflows: host.service(Workflows), store, writes, queued, leases, seen, [Symbol.asyncDispose]: close }
}

const three = (type: string): WorkflowDefinition => ({
  name: 'three',
  nodes: { a: { type, next: 'b' }, b: { type, next: 'c' }, c: { type } },
})
const settled = async (workflows: Workflows, workflow: WorkflowDefinition, more: { readonly idempotencyKey?: string } = {}) =>
  workflows.settled((await workflows.start({ workflow, ...more }, ctx)).id, 10_000, ctx)

describe('a run that begins', () => {
  it('is not forgotten by a worker that takes it from the queue before it is stored', async () => {
    const delay = (ops: readonly StoreOp[]) => (isOfRun(ops) ? sleep(700, undefined) : undefined)
    await using engine = await openWatched(delay, [service(Peers, ALONE)])
    const { id } = await engine.workflows.start({ workflow: three('look'), detached: true }, ctx)
    expect(await engine.workflows.settled(id, 20_000, ctx)).to.include({ status: 'completed', result: 'c' })
  })

  it('is stored together with what its first node has done, and no node begins before what came of the one before is stored', async () => {
    await using engine = await openWatched()
    expect(await settled(engine.workflows, three('look'))).to.include({ status: 'completed', result: 'c' })
    expect(engine.seen.a).to.deep.equal([])
    expect(engine.seen.b).to.include('done a')
    expect(engine.seen.c).to.include('done b')
    expect(engine.writes).to.deep.equal([
      ['started', 'begun a', 'done a', 'begun b'],
      ['done b', 'begun c'],
      ['done c', 'over'],
    ])
  })

  it('is stored before its first node where that may not be run again', async () => {
    await using engine = await openWatched()
    await settled(engine.workflows, three('once'))
    expect(engine.seen.a).to.deep.equal(['started', 'begun a'])
    expect(engine.writes.length).to.equal(4)
  })

  it('is one write where all it does may be run again and nothing follows, such as nodes at once', async () => {
    await using engine = await openWatched()
    const bodies = Object.fromEntries(['x', 'y', 'z'].map(name => [name, { type: 'transform', value: name }]))
    const run = await settled(engine.workflows, { name: 'wide', nodes: { all: { type: 'parallel', bodies } } })
    expect(run.result).to.deep.equal({ x: 'x', y: 'y', z: 'z' })
    expect(engine.writes.length).to.equal(1)
    // nobody ever waited for it
    expect([engine.queued, engine.leases]).to.deep.equal([[], []])
    expect(await engine.workflows.get(run.id, ctx)).to.include({ status: 'completed', progress: 1 })
  })

  it('that has ended with its first write is not there where the store is away, and has failed where it does not take the end', async () => {
    let code = 'STORE_UNAVAILABLE'
    await using engine = await openWatched(ops =>
      entriesIn(ops).some(({ t, s }) => t === 'done' || s === 'a') ? code : undefined
    )
    const workflowDefinition: WorkflowDefinition = { name: 'one', nodes: { a: { type: 'look' } } }
    expect(await engine.workflows.start({ workflow: workflowDefinition }, ctx).catch(codeOf)).to.equal('STORE_UNAVAILABLE')
    code = 'STORE_TOO_LARGE'
    const run = await settled(engine.workflows, workflowDefinition)
    expect([run.status, run.error?.code]).to.deep.equal(['failed', 'STORE_TOO_LARGE'])
    expect((await engine.workflows.runs({ limit: 10 }, ctx)).runs.map(({ id }) => id)).to.deep.equal([run.id])
  })

  it('has what nodes at once have done stored before what follows them begins', async () => {
    await using engine = await openWatched()
    const bodies = { x: { type: 'once' }, y: { type: 'once' } }
    await settled(engine.workflows, {
      name: 'wide',
      nodes: { all: { type: 'parallel', bodies, next: 'c' }, c: { type: 'look' } },
    })
    expect(engine.seen.c).to.include.members(['done all/x/do', 'done all/y/do', 'done all'])
  })

  it('is there no more when the store does not take it, and goes no further than its first node', async () => {
    let isAway = true
    await using engine = await openWatched(ops => (isAway && isOfRun(ops) ? 'STORE_UNAVAILABLE' : undefined))
    const refused = await engine.workflows.start({ workflow: three('look') }, ctx).catch(codeOf)
    expect(refused).to.equal('STORE_UNAVAILABLE')
    isAway = false
    expect((await settled(engine.workflows, { name: 'one', nodes: { other: { type: 'look' } } })).status).to.equal('completed')
    expect(Object.keys(engine.seen)).to.deep.equal(['a', 'other'])
    expect((await engine.workflows.runs({ limit: 10 }, ctx)).runs.map(({ workflow }) => workflow)).to.deep.equal(['one'])
  })

  it('has failed with it, and is there to be looked at, when the store does not take what came of it', async () => {
    await using engine = await openWatched(ops => (entriesIn(ops).some(({ t }) => t === 'done') ? 'STORE_TOO_LARGE' : undefined))
    const run = await settled(engine.workflows, three('look'))
    expect([run.status, run.error?.code]).to.deep.equal(['failed', 'STORE_TOO_LARGE'])
    expect(Object.keys(engine.seen)).to.deep.equal(['a'])
  })

  it('does nothing before it is stored where it has a key, that another may have used', async () => {
    await using engine = await openWatched()
    await settled(engine.workflows, three('look'), { idempotencyKey: 'k' })
    expect(engine.writes[0]).to.deep.equal([])
  })
})
