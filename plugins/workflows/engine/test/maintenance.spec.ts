import type { RunningHost } from '@svc/core'
import { type Json, RunQueue, Store, type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { mock } from 'node:test'
import { expect } from 'chai'
import { RunMaintenance } from '../src/maintenance.ts'
import { WorkflowPauses } from '../src/pauses.ts'
import { openEngine, quiet, ran, ctx, waitingRun } from './support.ts'

const DAY_MS = 86_400_000
const [RUNS, DEFINITIONS, INBOX, KEYS, LOG] = ['runs', 'definitions', 'inbox', 'keys', 'log'].map(name => `workflow_${name}`)
const PLAIN: WorkflowDefinition = { name: 'plain', nodes: { one: { type: 'transform', value: 1 } } }
const ASKS: WorkflowDefinition = { name: 'asks', nodes: { ask: { type: 'human', message: '?' } } }

/** What looks after the house, to be told when; and the store, to make things older than they are. */
function houseOf(host: RunningHost) {
  const [store, queue, log] = [host.service(Store), host.service(RunQueue), host.log]
  const maintenance = new RunMaintenance({
    store,
    queue,
    pauses: new WorkflowPauses({ store, queue }),
    worker: 'server.1',
    retentionMs: 7 * DAY_MS,
    maxAgeMs: 30 * DAY_MS,
    log,
    lasting: ctx,
  })
  const all = async (collection: string) => (await store.range(collection, { limit: 100 }, ctx)).records
  return {
    store,
    queue,
    round: () => maintenance.run(),
    count: async (collection: string) => (await all(collection)).length,
    /** Moves times of all records of a collection back. */
    async age(collection: string, days: number) {
      for (const { key, value } of await all(collection)) {
        const entries = Object.entries(value as Readonly<Record<string, Json>>)
        const moved = entries.map(([name, entry]) => [name, TIMES.has(name) ? (entry as number) - days * DAY_MS : entry])
        await store.batch([{ op: 'put', collection, key, value: Object.fromEntries(moved) }], {}, ctx)
      }
    },
  }
}
const TIMES: ReadonlySet<string> = new Set(['at', 'createdAt', 'updatedAt', 'finishedAt'])

describe('the maintenance of runs', () => {
  it('deletes those that ended longer ago than they are kept, with their log and what came for them too late', async () => {
    await using host = await openEngine()
    const { id } = await ran(host, PLAIN)
    const waits = await waitingRun(host, ASKS)
    await quiet(host)
    const testHost = houseOf(host)
    const late = { kind: 'cancel', at: 1, by: 'x' }
    await testHost.store.batch([{ op: 'put', collection: INBOX!, key: `${id}/c`, value: late }], {}, ctx)
    await testHost.age(RUNS!, 6)
    await testHost.round()
    expect(await testHost.count(RUNS!)).to.equal(2)
    await testHost.age(RUNS!, 2)
    await testHost.round()
    expect((await testHost.store.range(RUNS!, { limit: 9 }, ctx)).records.map(({ key }) => key)).to.deep.equal([waits])
    expect(await testHost.store.read(LOG!, id, { limit: 1 }, ctx)).to.deep.equal([])
    expect(await testHost.count(INBOX!)).to.equal(0)
    expect(
      await host
        .service(Workflows)
        .get(id, ctx)
        .catch(({ code }) => code)
    ).to.equal('RUN_UNKNOWN')
    await host.service(Workflows).cancel(waits, ctx)
  })

  it('deletes keys of a day ago, and definitions that no run can have any more', async () => {
    await using host = await openEngine()
    const first = await ran(host, PLAIN, { idempotencyKey: 'k' })
    const testHost = houseOf(host)
    await testHost.round()
    expect([await testHost.count(KEYS!), await testHost.count(DEFINITIONS!)]).to.deep.equal([1, 1])
    await testHost.age(KEYS!, 2)
    // runs of 30 days, kept for 7
    await testHost.age(DEFINITIONS!, 37)
    await testHost.round()
    expect([await testHost.count(KEYS!), await testHost.count(DEFINITIONS!)]).to.deep.equal([0, 1])
    await testHost.age(DEFINITIONS!, 3)
    await testHost.round()
    expect(await testHost.count(DEFINITIONS!)).to.equal(0)
    expect((await ran(host, PLAIN, { idempotencyKey: 'k' })).id).to.not.equal(first.id)
  })

  it('puts a run into the queue again that its queue has forgotten', async () => {
    await using host = await openEngine()
    const id = await waitingRun(host, { ...PLAIN, nodes: { ask: { ...ASKS.nodes.ask!, next: 'one' }, ...PLAIN.nodes } })
    await quiet(host)
    const testHost = houseOf(host)
    const { value } = (await testHost.store.get(RUNS!, id, ctx))!
    // as its process leaves it that dies when it has stored the run, and not yet queued it
    const lost = { ...(value as object), waiting: [] }
    const answer = { kind: 'answer', step: 'ask', value: true, at: 1, by: 'x' }
    await testHost.store.batch(
      [
        { op: 'delete', collection: 'run_queue', key: id },
        { op: 'put', collection: RUNS!, key: id, value: lost },
        { op: 'put', collection: INBOX!, key: `${id}/a/ask`, value: answer },
      ],
      {},
      ctx
    )
    await testHost.round()
    expect((await host.service(Workflows).get(id, ctx)).status).to.equal('running')
    await testHost.age(RUNS!, 1)
    await testHost.round()
    expect(await host.service(Workflows).settled(id, 10_000, ctx)).to.include({ status: 'completed', result: 1 })
  })
})

describe('a run that gets too old', () => {
  it('is looked at when it does, and has failed with that', async () => {
    await using host = await openEngine({ config: { workflows: { max_age: '30d' } } })
    const id = await waitingRun(host, ASKS)
    await quiet(host)
    const testHost = houseOf(host)
    const { createdAt } = (await testHost.store.get(RUNS!, id, ctx))!.value as { createdAt: number }
    const { due } = (await testHost.store.get('run_queue', id, ctx))!.value as { due: number }
    expect(due).to.equal(createdAt + 30 * DAY_MS)
    await testHost.age(RUNS!, 30)
    await testHost.queue.put({ id, due: Date.now() }, { claim: false }, ctx)
    const run = await host.service(Workflows).settled(id, 10_000, ctx)
    expect(run.error).to.include({ code: 'RUN_EXPIRED' })
  })

  it('waits no more to undo what it has done, and tells what was not undone', async () => {
    await using host = await openEngine({ config: { workflows: { max_age: '30d' } } })
    const found = { type: 'transform', value: 1, next: 'two', compensate: { type: 'transform', value: 2 } }
    const two = { type: 'transform', value: 1, next: 'bad', compensate: { type: 'human', message: 'Shall it be undone?' } }
    const bad = { type: 'transform', value: '${{ input.none }}' }
    const id = await waitingRun(host, { name: 'asks-to-undo', nodes: { one: found, two, bad } })
    await quiet(host)
    const testHost = houseOf(host)
    await testHost.age(RUNS!, 30)
    await testHost.queue.put({ id, due: Date.now() }, { claim: false }, ctx)
    const workflows = host.service(Workflows)
    const run = await workflows.settled(id, 10_000, ctx)
    expect(run.error).to.deep.include({ code: 'EXPRESSION_FAILED' })
    expect(run.error!.details).to.deep.include({ not_undone: ['two'] })
    const steps = (await workflows.steps(id, ctx)).map(({ step, status, error }) => [step, status, error?.code])
    expect(steps.slice(-2)).to.deep.equal([
      ['undo/two/do', 'failed', 'RUN_EXPIRED'],
      ['undo/one/do', 'completed', undefined],
    ])
  })

  it('holds its lease in the name of its worker, so that others need not wait for its expiry after a crash', async () => {
    await using host = await openEngine()
    const [store, queue, log] = [host.service(Store), host.service(RunQueue), host.log]
    const acquired = Promise.withResolvers<string>()
    const watched: Store = {
      ...Object.fromEntries(Object.keys(Store.methods).map(name => [name, Reflect.get(store, name)])),
      acquire(lease, request, callContext) {
        acquired.resolve(request.holder)
        return store.acquire(lease, request, callContext)
      },
    } as Store
    mock.timers.enable({ apis: ['setTimeout'] })
    const maintenance = new RunMaintenance({
      store: watched,
      queue,
      pauses: new WorkflowPauses({ store, queue }),
      worker: 'server.1',
      retentionMs: DAY_MS,
      maxAgeMs: DAY_MS,
      log,
      lasting: ctx,
    })
    try {
      maintenance.begin()
      mock.timers.tick(30_000)
      expect(await acquired.promise).to.match(/^server\.1\/./)
    } finally {
      mock.timers.reset()
      maintenance.end()
    }
  })
})
