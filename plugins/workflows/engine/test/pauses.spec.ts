import { once } from 'node:events'
import { codeOf, definePlugin, type Log } from '@svc/core'
import { type Json, RunQueue, Store, type WorkflowDefinition, WorkflowDefinitions, Workflows } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { RunMaintenance } from '../src/maintenance.ts'
import { WorkflowPauses } from '../src/pauses.ts'
import { ctx, inFolder, node, openEngine, quiet, until, waitingRun } from './support.ts'

const DAY_MS = 86_400_000

/** A node `hold` that ends when the test says so, and a node `count`. */
function holding() {
  const calls: string[] = []
  const begun = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const hold = node(async function* ({ step }) {
    calls.push(step)
    begun.resolve()
    await held.promise
    yield { type: 'output', output: 'held' }
  })
  const count = node(async function* ({ step, settings }) {
    calls.push(step)
    yield { type: 'output', output: (settings.value ?? step) as Json }
  })
  return { calls, begun: begun.promise, end: () => held.resolve(), nodes: { hold, count } }
}

const two: WorkflowDefinition = {
  name: 'two',
  nodes: { a: { type: 'hold', next: 'b' }, b: { type: 'count', value: '${{ nodes.a }}' } },
}
const asks: WorkflowDefinition = { name: 'asks', nodes: { q: { type: 'human', message: '?', next: 'b' }, b: { type: 'count' } } }

const reasonOf = (error: unknown) => (error as { details?: { reason?: string } }).details?.reason ?? String(error)

describe('a paused run', () => {
  it('ends its running node, starts no other, and goes on with its result when it is resumed', async () => {
    const { calls, begun, end, nodes } = holding()
    await using host = await openEngine({ nodes })
    const workflows = host.service(Workflows)
    const { id } = await workflows.start({ workflow: two }, ctx)
    await begun
    const pausing = workflows.pause(id, ctx)
    await until(async () => (await host.service(Store).range('workflow_inbox', { limit: 1 }, ctx)).records.length > 0)
    expect((await workflows.get(id, ctx)).pausedAt).to.equal(undefined)
    end()
    const paused = await pausing
    expect([paused.status, typeof paused.pausedAt, calls]).to.deep.equal(['running', 'number', ['a']])
    await quiet(host)
    expect((await workflows.runs({ limit: 10, paused: true }, ctx)).runs.map(run => run.id)).to.deep.equal([id])
    expect((await workflows.runs({ limit: 10, paused: false }, ctx)).runs).to.deep.equal([])
    // to be paused again is nothing new
    expect((await workflows.pause(id, ctx)).pausedAt).to.equal(paused.pausedAt)
    expect((await workflows.resume(id, ctx)).pausedAt).to.equal(undefined)
    expect(await workflows.settled(id, 10_000, ctx)).to.include({ status: 'completed', result: 'held' })
    expect(calls).to.deep.equal(['a', 'b'])
    const types = []
    for await (const { type } of workflows.events(id, 0, ctx)) types.push(type)
    expect(types).to.include('run_paused')
  })

  it('keeps what it waits for: an answer, a time that is over, an event', async () => {
    const { calls, nodes } = holding()
    await using host = await openEngine({ nodes })
    const workflows = host.service(Workflows)
    const asking = await waitingRun(host, asks)
    const timed = await waitingRun(host, {
      name: 'timed',
      nodes: { w: { type: 'wait', for: '200ms', next: 'b' }, b: { type: 'count' } },
    })
    const listening = await waitingRun(host, {
      name: 'listening',
      nodes: { w: { type: 'wait', event: 'go', next: 'b' }, b: { type: 'count' } },
    })
    const ids = [asking, timed, listening]
    const paused = await Promise.all(ids.map(id => workflows.pause(id, ctx)))
    expect(paused.every(({ pausedAt }) => pausedAt !== undefined)).to.equal(true)
    expect(paused[0]!.waiting.map(({ step }) => step)).to.deep.equal(['q'])
    await workflows.answer(asking, { step: 'q', value: true }, ctx)
    await workflows.signal(listening, { name: 'go', data: 1 }, ctx)
    await new Promise(resolve => setTimeout(resolve, 600))
    await quiet(host)
    expect([calls, (await workflows.get(asking, ctx)).status]).to.deep.equal([[], 'running'])
    for (const id of ids) await workflows.resume(id, ctx)
    for (const id of ids) expect((await workflows.settled(id, 10_000, ctx)).status).to.equal('completed')
    expect(calls).to.deep.equal(['b', 'b', 'b'])
  })

  it('survives restarts, and maintenance leaves it', () =>
    inFolder(async folder => {
      const { calls, nodes } = holding()
      const db = `${folder}/svc.db`
      let id: string
      {
        await using host = await openEngine({ nodes, db })
        id = await waitingRun(host, asks)
        await host.service(Workflows).pause(id, ctx)
        await host.service(Workflows).answer(id, { step: 'q', value: true }, ctx)
      }
      await using host = await openEngine({ nodes, db })
      const [workflows, store, queue] = [host.service(Workflows), host.service(Store), host.service(RunQueue)]
      const pauses = new WorkflowPauses({ store, queue })
      const found = (await store.get('workflow_runs', id, ctx))!
      const old = { ...(found.value as object), waiting: [], updatedAt: Date.now() - DAY_MS }
      await store.batch([{ op: 'put', collection: 'workflow_runs', key: id, value: old }], {}, ctx)
      const options = { store, queue, pauses, worker: 'w', retentionMs: DAY_MS, maxAgeMs: 30 * DAY_MS, log: host.log }
      await new RunMaintenance({ ...options, lasting: ctx }).run()
      await new Promise(resolve => setTimeout(resolve, 200))
      await quiet(host)
      expect([calls, typeof (await workflows.get(id, ctx)).pausedAt]).to.deep.equal([[], 'number'])
      await workflows.resume(id, ctx)
      expect((await workflows.settled(id, 10_000, ctx)).status).to.equal('completed')
    }))

  it('takes no slot of its workflow', async () => {
    const { calls, nodes } = holding()
    await using host = await openEngine({ nodes })
    const workflows = host.service(Workflows)
    const single: WorkflowDefinition = { ...asks, name: 'single', concurrency: 1 }
    const one = await waitingRun(host, single)
    await workflows.pause(one, ctx)
    const other = await waitingRun(host, single)
    await workflows.answer(other, { step: 'q', value: true }, ctx)
    expect((await workflows.settled(other, 10_000, ctx)).status).to.equal('completed')
    await workflows.resume(one, ctx)
    await workflows.answer(one, { step: 'q', value: true }, ctx)
    expect((await workflows.settled(one, 10_000, ctx)).status).to.equal('completed')
    expect(calls).to.deep.equal(['b', 'b'])
  })

  it('can be cancelled, and compensates', async () => {
    const { calls, nodes } = holding()
    await using host = await openEngine({ nodes })
    const workflows = host.service(Workflows)
    const id = await waitingRun(host, {
      name: 'undone',
      nodes: { a: { type: 'count', compensate: { type: 'count' }, next: 'q' }, q: { type: 'human', message: '?' } },
    })
    await workflows.pause(id, ctx)
    const run = await workflows.cancel(id, ctx)
    expect([run.status, run.error?.code, run.pausedAt]).to.deep.equal(['failed', 'CANCELLED', undefined])
    expect(calls).to.deep.equal(['a', 'undo/a/do'])
    expect(await workflows.resume(id, ctx).catch(reasonOf)).to.equal('has ended: failed')
    expect(await workflows.pause(id, ctx).catch(reasonOf)).to.equal('has ended: failed')
  })

  it('that is cancelled while its pause is awaited is cancelled, and one that is resumed goes on', async () => {
    for (const what of ['cancel', 'resume'] as const) {
      const { calls, begun, end, nodes } = holding()
      await using host = await openEngine({ nodes })
      const [workflows, store] = [host.service(Workflows), host.service(Store)]
      const { id } = await workflows.start({ workflow: two }, ctx)
      await begun
      const pausing = workflows.pause(id, ctx)
      await until(async () => (await store.range('workflow_inbox', { limit: 1 }, ctx)).records.length > 0)
      const done = workflows[what](id, ctx)
      if (what === 'resume') await done
      end()
      await Promise.all([pausing, done])
      const run = await workflows.settled(id, 10_000, ctx)
      expect([what, run.status, run.error?.code]).to.deep.equal(
        what === 'cancel' ? ['cancel', 'failed', 'CANCELLED'] : ['resume', 'completed', undefined]
      )
      expect(calls).to.deep.equal(what === 'cancel' ? ['a'] : ['a', 'b'])
    }
  })

  it('is refused to other principals, for unknown runs, and where there is nothing to resume', async () => {
    const { nodes } = holding()
    await using host = await openEngine({ nodes })
    const workflows = host.service(Workflows)
    const id = await waitingRun(host, asks)
    const other = testContext({ principal: { id: 'other', scopes: ['workflows'] } })
    for (const what of ['pause', 'resume'] as const) {
      expect(await workflows[what](id, other).catch(codeOf)).to.equal('RUN_UNKNOWN')
      for (const bad of ['none', '', '../x', 'a'.repeat(500)])
        expect(await workflows[what](bad, ctx).catch(codeOf)).to.equal('RUN_UNKNOWN')
    }
    expect(await workflows.resume(id, ctx).catch(reasonOf)).to.equal('is not paused')
  })
})

describe('a paused workflow', () => {
  const give = [item(WorkflowDefinitions, 'asks', asks)]
  const owner = testContext({ principal: { id: 'owner', scopes: ['workflows'] } })

  it('lets running runs go on, keeps new ones until it is resumed, and starts each once', async () => {
    const { calls, nodes } = holding()
    await using host = await openEngine({ nodes, give })
    const workflows = host.service(Workflows)
    const { id: open } = await workflows.start({ workflow: 'asks' }, owner)
    await workflows.pauseWorkflow('asks', ctx)
    await workflows.pauseWorkflow('asks', ctx)
    expect(typeof (await workflows.show('asks', ctx)).info.pausedAt).to.equal('number')
    expect((await workflows.list(ctx)).find(({ name }) => name === 'asks')!.pausedAt).to.be.a('number')
    await until(async () => (await workflows.get(open, owner)).waiting.length > 0)
    await workflows.answer(open, { step: 'q', value: true }, owner)
    expect((await workflows.settled(open, 10_000, owner)).status).to.equal('completed')
    const held = await Promise.all([1, 2, 3].map(at => workflows.start({ workflow: 'asks', idempotencyKey: `k${at}` }, owner)))
    const again = await workflows.start({ workflow: 'asks', idempotencyKey: 'k1' }, owner)
    expect([again.id, typeof again.pausedAt]).to.deep.equal([held[0]!.id, 'number'])
    const retried = await workflows.replay(open, {}, owner)
    expect(retried.pausedAt).to.be.a('number')
    await quiet(host)
    for (const { id } of held) {
      expect(await workflows.steps(id, owner)).to.deep.equal([])
      expect(await workflows.resume(id, owner).catch(reasonOf)).to.equal('waits because its workflow is paused')
    }
    expect(calls).to.deep.equal(['b'])
    expect(await workflows.resumeWorkflow('asks', ctx)).to.equal(4)
    expect(await workflows.resumeWorkflow('asks', ctx)).to.equal(0)
    expect((await workflows.show('asks', ctx)).info.pausedAt).to.equal(undefined)
    for (const { id } of [...held, retried]) {
      await until(async () => (await workflows.get(id, owner)).waiting.length > 0)
      await workflows.answer(id, { step: 'q', value: true }, owner)
      expect((await workflows.settled(id, 10_000, owner)).status).to.equal('completed')
    }
    expect(calls).to.deep.equal(['b', 'b', 'b', 'b', 'b'])
  })

  it('keeps a run that is paused by hand paused, and maintenance frees runs that a crash has left', async () => {
    const { nodes } = holding()
    await using host = await openEngine({ nodes, give })
    const [workflows, store, queue] = [host.service(Workflows), host.service(Store), host.service(RunQueue)]
    const byHand = await waitingRun(host, asks)
    await workflows.pause(byHand, ctx)
    await workflows.pauseWorkflow('asks', ctx)
    const { id: held } = await workflows.start({ workflow: 'asks' }, ctx)
    const pauses = new WorkflowPauses({ store, queue })
    expect(await pauses.release(ctx)).to.equal(0)
    // the process that resumed it ended before it freed the runs
    await store.batch([{ op: 'delete', collection: 'workflow_pauses', key: 'asks' }], {}, ctx)
    expect(await pauses.release(ctx)).to.equal(1)
    await until(async () => (await workflows.get(held, ctx)).waiting.length > 0)
    expect((await workflows.get(byHand, ctx)).pausedAt).to.be.a('number')
  })

  it('is known in memory, also where another process has paused or resumed it', async () => {
    await inFolder(async folder => {
      const db = `${folder}/store.db`
      const { nodes } = holding()
      await using one = await openEngine({ nodes, give, db })
      await using other = await openEngine({ nodes, give, db })
      const startAt = (host: typeof one) => host.service(Workflows).start({ workflow: 'asks', detached: true }, owner)
      expect((await startAt(one)).pausedAt).to.equal(undefined)
      await other.service(Workflows).pauseWorkflow('asks', ctx)
      expect((await startAt(other)).pausedAt).to.be.a('number')
      await until(async () => (await startAt(one)).pausedAt !== undefined)
      await other.service(Workflows).resumeWorkflow('asks', ctx)
      expect((await startAt(other)).pausedAt).to.equal(undefined)
      await until(async () => (await startAt(one)).pausedAt === undefined)
      // no run is left that was held back by what `one` did not know yet
      await until(async () => (await one.service(Workflows).runs({ limit: 100, paused: true }, ctx)).runs.length === 0)
    })
  })

  it('is known after messages were lost, also if the store has reported nothing', async () => {
    const log = Promise.withResolvers<Log>()
    const logs = { name: 'test:log', use: definePlugin({ setup: scope => log.resolve(scope.log) }) }
    await using host = await openEngine({ give: [...give, logs] })
    const store = host.service(Store)
    const [ending, read] = [new AbortController(), Promise.withResolvers<void>()]
    // the cast is safe: pauses use no other method here
    const silent = {
      get: (...args) => store.get(...args),
      range: (...args) => store.range(...args).finally(read.resolve),
      // oxlint-disable-next-line require-yield -- it reports nothing
      async *watch(_, { signal }) {
        await once(signal, 'abort')
      },
    } satisfies Pick<Store, 'get' | 'range' | 'watch'> as unknown as Store
    const pauses = new WorkflowPauses({ store: silent, queue: host.service(RunQueue) })
    pauses.follow(await log.promise, { ...ctx, signal: ending.signal })
    await read.promise
    await until(async () => (await pauses.get('asks', ctx)) === undefined)
    await store.batch([{ op: 'put', collection: 'workflow_pauses', key: 'asks', value: { at: 7, by: 'x' } }], {}, ctx)
    await pauses.onMissed(ctx)
    expect(await pauses.get('asks', ctx)).to.equal(7)
    ending.abort()
  })

  it('needs the scope admin, and a workflow that exists', async () => {
    const { nodes } = holding()
    await using host = await openEngine({ nodes, give })
    const workflows = host.service(Workflows)
    for (const what of ['pauseWorkflow', 'resumeWorkflow'] as const) {
      expect(await workflows[what]('asks', owner).then(() => 'done', codeOf)).to.equal('FORBIDDEN')
      for (const bad of ['none', '__proto__', '../etc/passwd', ''])
        expect(await workflows[what](bad, ctx).then(() => 'done', codeOf), bad).to.be.oneOf(['WORKFLOW_UNKNOWN', 'INVALID_VALUE'])
    }
  })
})
