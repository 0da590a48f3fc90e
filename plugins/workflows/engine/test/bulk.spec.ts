import { codeOf, type RunningHost, svcError } from '@svc/core'
import { type BulkRequest, Jobs, type RunQuery, type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { node, openEngine, quiet } from './support.ts'

const failing = (name: string, code = 'NODE_FAILED'): WorkflowDefinition => ({
  name,
  nodes: { ok: { type: 'transform', value: 1, next: 'bad' }, bad: { type: 'fail', code } },
})
const ask: WorkflowDefinition = { name: 'ask', nodes: { q: { type: 'human', message: '?' } } }

const ctx = testContext({ principal: { id: 'owner', scopes: ['workflows'] } })
const adminContext = testContext({ principal: { id: 'boss', scopes: ['admin', 'workflows'] } })
const otherContext = testContext({ principal: { id: 'other', scopes: ['workflows'] } })

/** A run of the owner, up to its end. */
async function ran(host: RunningHost, workflow: WorkflowDefinition) {
  const workflows = host.service(Workflows)
  return workflows.settled((await workflows.start({ workflow }, ctx)).id, 10_000, ctx)
}

/** An engine with a node that fails with a code until it is fixed. */
async function openFailing(more: readonly string[] = []) {
  const state = { isMended: false }
  const fail = node(async function* ({ settings }) {
    if (!state.isMended) throw svcError(settings.code as string, 'as configured')
    yield { type: 'output', output: 'fixed' }
  })
  const host = await openEngine({ nodes: { fail }, more })
  const workflows = host.service(Workflows)
  const idsOf = async (query: Omit<RunQuery, 'limit'> = {}, by = ctx) => {
    const ids: string[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await workflows.runs({ limit: 2, ...query, ...(cursor === undefined ? {} : { cursor }) }, by)
      ids.push(...page.runs.map(({ id }) => id))
      cursor = page.next
      if (cursor === undefined) return ids
    }
  }
  return { host, workflows, state, idsOf, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
}

describe('dead letters', () => {
  it('are the runs that failed for good, the latest failure first, by workflow, code, time and owner', async () => {
    await using engine = await openFailing()
    const { host, workflows, idsOf } = engine
    const [one, two, three] = [
      (await ran(host, failing('a', 'FIRST'))).id,
      (await ran(host, failing('a', 'SECOND'))).id,
      (await ran(host, failing('b', 'FIRST'))).id,
    ]
    const good = await ran(host, { name: 'good', nodes: { ok: { type: 'transform', value: 1 } } })
    const { id: open } = await workflows.start({ workflow: ask }, ctx)
    await workflows.cancel(open, ctx)
    const theirs = await workflows.start({ workflow: failing('a', 'FIRST') }, otherContext)
    await workflows.settled(theirs.id, 10_000, otherContext)
    expect(await idsOf({ dead: true })).to.deep.equal([three, two, one])
    expect(await idsOf({ dead: true }, adminContext)).to.deep.equal([theirs.id, three, two, one])
    expect(await idsOf({ dead: true, owner: 'other' }, adminContext)).to.deep.equal([theirs.id])
    expect(await idsOf({ dead: true, owner: 'other' })).to.deep.equal([])
    expect(await idsOf({ dead: true, workflow: 'a' })).to.deep.equal([two, one])
    expect(await idsOf({ dead: true, errorCode: 'FIRST' })).to.deep.equal([three, one])
    const { finishedAt } = await workflows.get(two, ctx)
    expect(await idsOf({ dead: true, until: finishedAt! }))
      .to.include(one)
      .and.not.include(three)
    expect(await idsOf({ dead: true, since: Date.now() + 1_000 })).to.deep.equal([])
    expect(await idsOf({ status: 'completed' })).to.deep.equal([good.id])
    expect(await idsOf({ errorCode: 'CANCELLED' })).to.deep.equal([open])
  })

  it('are no more when a retry or a replay continues them, once, also if several are begun at the same time', async () => {
    await using engine = await openFailing()
    const { host, workflows, state, idsOf } = engine
    const [retried, replayed] = [(await ran(host, failing('a'))).id, (await ran(host, failing('a'))).id]
    state.isMended = true
    const tries = await Promise.allSettled([1, 2, 3].map(() => workflows.retry(retried, { once: true }, ctx)))
    const begun = tries.flatMap(item => (item.status === 'fulfilled' ? [item.value] : []))
    const refused = tries.flatMap(item => (item.status === 'rejected' ? [String(item.reason)] : []))
    expect([begun.length, refused.length]).to.deep.equal([1, 2])
    for (const reason of refused) expect(reason).to.include(`is continued by ${begun[0]!.id}`)
    await workflows.replay(replayed, { from: 'bad' }, ctx)
    expect(await idsOf({ dead: true })).to.deep.equal([])
    expect((await workflows.get(retried, ctx)).continuedBy).to.equal(begun[0]!.id)
    // but for who wants it
    expect((await workflows.retry(retried, {}, ctx)).retryOf).to.equal(retried)
  })

  it('are dropped with their log, and other runs are not', async () => {
    await using engine = await openFailing()
    const { host, workflows, idsOf } = engine
    const { id } = await ran(host, failing('a'))
    const good = await ran(host, { name: 'good', nodes: { ok: { type: 'transform', value: 1 } } })
    const { id: open } = await workflows.start({ workflow: ask }, ctx)
    for (const other of [good.id, open]) expect(await workflows.drop(other, ctx).catch(codeOf)).to.equal('INVALID_VALUE')
    for (const bad of ['none', '', '../x']) expect(await workflows.drop(bad, ctx).catch(codeOf)).to.equal('RUN_UNKNOWN')
    expect(await workflows.drop(id, otherContext).catch(codeOf)).to.equal('RUN_UNKNOWN')
    await workflows.drop(id, ctx)
    expect(await workflows.steps(id, ctx).catch(codeOf)).to.equal('RUN_UNKNOWN')
    expect(await workflows.drop(id, ctx).catch(codeOf)).to.equal('RUN_UNKNOWN')
    expect(await idsOf()).to.deep.equal([open, good.id])
    await workflows.cancel(open, ctx)
    expect(await workflows.drop(open, ctx).catch(codeOf)).to.equal('INVALID_VALUE')
  })
})

describe('changes of many runs', () => {
  it('select what the filter says, count it without a change in a dry run, and do at most a page at once', async () => {
    await using engine = await openFailing()
    const { host, workflows, state, idsOf } = engine
    for (const name of ['a', 'a', 'b']) await ran(host, failing(name))
    const asked = []
    for (let at = 0; at < 3; at++) asked.push((await workflows.start({ workflow: ask }, ctx)).id)
    await workflows.start({ workflow: ask }, otherContext)
    const bulk = (request: BulkRequest, by = ctx) => workflows.bulk(request, by)
    const counts = []
    for (const request of [
      { action: 'cancel', filter: { status: 'running' } },
      { action: 'cancel', filter: { workflow: 'none' } },
      { action: 'retry', filter: { workflow: 'a' } },
      { action: 'drop', filter: { errorCode: 'NODE_FAILED' } },
      { action: 'drop', filter: { until: 1 } },
    ] as const)
      counts.push(await bulk({ ...request, dryRun: true }))
    expect(counts).to.deep.equal([3, 0, 2, 3, 0].map(count => ({ count })))
    expect(await bulk({ action: 'cancel', filter: { status: 'running' }, dryRun: true }, adminContext)).to.deep.equal({
      count: 4,
    })
    expect((await idsOf({ status: 'running' })).length).to.equal(3)
    expect(await bulk({ action: 'cancel', filter: { workflow: 'ask' } })).to.deep.equal({
      count: 3,
      changed: 3,
      pending: 0,
      failed: [],
    })
    for (const id of asked) expect((await workflows.get(id, ctx)).error?.code).to.equal('CANCELLED')
    // what is cancelled is retried only where that is said
    state.isMended = true
    expect(await bulk({ action: 'retry', filter: { since: 0 } })).to.include({ count: 3, changed: 3 })
    expect(await bulk({ action: 'retry', filter: { errorCode: 'CANCELLED' } })).to.include({ count: 3, changed: 3 })
    expect(await bulk({ action: 'retry', filter: { since: 0 } })).to.include({ count: 0, changed: 0 })
    state.isMended = false
    await ran(host, failing('c'))
    expect(await bulk({ action: 'drop', filter: { workflow: 'c' } })).to.include({ count: 1, changed: 1 })
    expect(await idsOf({ workflow: 'c' })).to.deep.equal([])
    await quiet(host)
  })

  it('of more than a page are a job with progress, which reaches each run once', async () => {
    await using engine = await openFailing(['jobs'])
    const { host, workflows } = engine
    const COUNT = 450
    await Promise.all(Array.from({ length: COUNT }, () => workflows.start({ workflow: ask, detached: true }, ctx)))
    const theirs = await workflows.start({ workflow: ask }, otherContext)
    const { count, job, changed } = await workflows.bulk({ action: 'cancel', filter: { status: 'running' } }, ctx)
    expect([count, changed]).to.deep.equal([COUNT, undefined])
    const ended = await host.service(Jobs).settled(job!, 60_000, ctx)
    expect([ended.state, ended.result]).to.deep.equal(['completed', { changed: COUNT, pending: 0, failed: 0, errors: [] }])
    expect(ended.progress).to.include({ progress: COUNT, total: COUNT })
    expect(await workflows.bulk({ action: 'cancel', filter: { status: 'running' }, dryRun: true }, ctx)).to.deep.equal({
      count: 0,
    })
    expect((await workflows.get(theirs.id, otherContext)).status).to.equal('running')
    expect(await workflows.get(theirs.id, ctx).catch(codeOf)).to.equal('RUN_UNKNOWN')
  }).timeout(60_000)

  it('are refused without a condition, with a status or code that does not fit, and where there are no jobs', async () => {
    await using engine = await openFailing()
    const { workflows } = engine
    const refused = (request: BulkRequest) => workflows.bulk(request, ctx).then(() => 'done', codeOf)
    for (const request of [
      { action: 'cancel', filter: {} },
      { action: 'cancel', filter: { status: 'failed' } },
      { action: 'cancel', filter: { errorCode: 'X' } },
      { action: 'retry', filter: { status: 'running' } },
      { action: 'drop', filter: { status: 'completed' } },
    ] as const) {
      expect(await refused(request), JSON.stringify(request)).to.equal('INVALID_VALUE')
      expect(await refused({ ...request, dryRun: true }), JSON.stringify(request)).to.equal('INVALID_VALUE')
    }
    await Promise.all(Array.from({ length: 201 }, () => workflows.start({ workflow: ask, detached: true }, ctx)))
    expect(await refused({ action: 'cancel', filter: { workflow: 'ask' } })).to.equal('UNAVAILABLE')
  })
})
