import { type Json, Store, type WorkflowDefinition, WorkflowDefinitions, Workflows } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { node, openEngine, quiet, ran, ctx, waitingRun } from './support.ts'

/** Answers its settings, and counts how often it is called. */
function counting() {
  const counted = { calls: 0 }
  const count = node(async function* ({ settings }) {
    counted.calls += 1
    yield { type: 'output', output: (settings.value as Json | undefined) ?? null }
  })
  return { counted, nodes: { count } }
}
/** An entry of the log. */
type ReportedEntry = { readonly t: string; readonly at: number }
const circle = (more: object = {}): WorkflowDefinition => ({
  name: 'circle',
  nodes: { a: { type: 'count', next: 'b', ...more }, b: { type: 'count', next: 'a' } },
})

describe('a run that would have no end', () => {
  it('fails where its circle comes by a node more often than that may be visited', async () => {
    const { counted, nodes } = counting()
    await using host = await openEngine({ nodes })
    const run = await ran(host, circle({ max_visits: 3 }))
    expect([run.status, run.error?.code, counted.calls]).to.deep.equal(['failed', 'TOO_MANY_VISITS', 6])
    const usual = await ran(host, circle())
    expect([usual.error?.code, counted.calls]).to.deep.equal(['TOO_MANY_VISITS', 6 + 200])
  })

  it('fails with more steps than it may make', async () => {
    const { counted, nodes } = counting()
    await using host = await openEngine({ nodes, config: { workflows: { max_steps: 5 } } })
    const run = await ran(host, circle())
    expect([run.error?.code, counted.calls]).to.deep.equal(['TOO_MANY_STEPS', 5])
  })

  it('fails when its steps have answered more than they may together', async () => {
    const { counted, nodes } = counting()
    await using host = await openEngine({ nodes, config: { workflows: { max_run_bytes: 1_000 } } })
    const run = await ran(host, circle({ value: 'x'.repeat(300) }))
    expect([run.error?.code, counted.calls]).to.deep.equal(['RUN_TOO_LARGE', 7])
  })

  it('has worked as long as all its processes together', async () => {
    const endless = node(async function* (_task, { signal }) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))
      yield { type: 'output', output: null }
    })
    await using host = await openEngine({ nodes: { endless } })
    const [workflows, store] = [host.service(Workflows), host.service(Store)]
    const ask = { type: 'human', message: '?' }
    const nodes = { ask: { ...ask, next: 'more' }, more: { ...ask, next: 'on' }, on: { type: 'endless' } }
    const id = await waitingRun(host, { name: 'late', timeout: '1m', nodes })
    await quiet(host)
    await workflows.answer(id, { step: 'ask', value: true }, ctx)
    for await (const { type, step } of workflows.events(id, 0, ctx)) if (type === 'node_waiting' && step === 'more') break
    await quiet(host)
    const entries = (await store.read('workflow_log', id, { limit: 100 }, ctx)).map(
      ({ value }) => value as unknown as ReportedEntry
    )
    // as if it had worked for 40 seconds before each question
    const longer = entries.map(entry => (/^(started|resumed)$/.test(entry.t) ? { ...entry, at: entry.at - 40_000 } : entry))
    const rewritten = { op: 'append', log: 'workflow_log', id, values: longer as Json[] } as const
    await store.batch([{ op: 'drop', log: 'workflow_log', id }, rewritten], {}, ctx)
    await workflows.answer(id, { step: 'more', value: true }, ctx)
    expect((await workflows.settled(id, 10_000, ctx)).error).to.include({ code: 'RUN_TIMEOUT' })
  })
})

describe('what a node answers', () => {
  it('has to be a branch that leads somewhere', async () => {
    const turns = node(
      async function* () {
        yield { type: 'output', output: 1, branch: 'left' }
      },
      { branches: 'any' }
    )
    await using host = await openEngine({ nodes: { turns } })
    const lost = await ran(host, { name: 'lost', nodes: { a: { type: 'turns', branches: { right: 'end' } } } })
    expect(lost.error).to.deep.include({ code: 'BRANCH_MISSING', details: { branch: 'left', known: ['right'] } })
    const b = { type: 'transform', value: 2 }
    const led = await ran(host, { name: 'led', nodes: { a: { type: 'turns', branches: { right: 'end' }, next: 'b' }, b } })
    expect(led).to.include({ status: 'completed', result: 2 })
  })

  it('may not come to too large a result', async () => {
    const { nodes } = counting()
    await using host = await openEngine({ nodes, config: { workflows: { max_output_bytes: 1_000 } } })
    const [a, b] = [{ type: 'count', value: 'x'.repeat(900), next: 'b' }, { type: 'count' }]
    const three = await ran(host, { name: 'large', nodes: { a, b }, result: '${{ [nodes.a, nodes.a, nodes.a] }}' })
    expect(three.error).to.include({ code: 'RESULT_TOO_LARGE' })
    expect((await ran(host, { name: 'fits', nodes: { a, b }, result: '${{ [nodes.a, nodes.a] }}' })).status).to.equal('completed')
  })

  it('has to come', async () => {
    const silent = node(async function* () {
      yield { type: 'progress', message: 'nothing' }
    })
    await using host = await openEngine({ nodes: { silent } })
    expect((await ran(host, { name: 'silent', nodes: { a: { type: 'silent' } } })).error).to.include({ code: 'NODE_BROKE' })
  })

  it('has to fit the outputs of its workflow, also of one within', async () => {
    const inner: WorkflowDefinition = {
      name: 'inner',
      outputs: { type: 'object', properties: { n: { type: 'integer' }, by: { default: 'nobody' } }, required: ['n'] },
      nodes: { a: { type: 'transform', value: '${{ input }}' } },
    }
    await using host = await openEngine({ give: [item(WorkflowDefinitions, 'inner', inner)] })
    const outer = { name: 'outer', nodes: { call: { type: 'subworkflow', workflow: 'inner', input: '${{ input }}' } } }
    for (const workflow of [inner, outer]) {
      const wrong = await ran(host, workflow, { input: { n: 'many' } })
      expect([wrong.status, wrong.error?.code, wrong.error?.details.field]).to.deep.equal(['failed', 'INVALID_VALUE', 'result.n'])
      expect((await ran(host, workflow, { input: { n: 3 } })).result).to.deep.equal({ n: 3, by: 'nobody' })
    }
  })
})

describe('time in a run', () => {
  it('that a person lets pass is answered by the fallback', async () => {
    await using host = await openEngine()
    const ask = { type: 'human', message: '?', for: '1ms', fallback: false, branches: { approved: 'end', rejected: 'no' } }
    const no = { type: 'transform', value: '${{ nodes.ask }}' }
    const id = await waitingRun(host, { name: 'hurried', nodes: { ask, no } })
    const workflows = host.service(Workflows)
    expect((await workflows.settled(id, 10_000, ctx)).result).to.deep.equal({ answer: false, timed_out: true })
  })

  it('between two tries grows by its factor up to its most, the last half of it by chance', async () => {
    const fails = node(async function* () {
      yield { type: 'progress' }
      throw new Error('never')
    })
    await using host = await openEngine({ nodes: { fails } })
    const retry = { attempts: 5, delay: '4ms', factor: 3, max_delay: '20ms' }
    const run = await ran(host, { name: 'tries', nodes: { a: { type: 'fails', retry } } })
    const waits: number[] = []
    for await (const { type, at, data } of host.service(Workflows).events(run.id, 0, ctx))
      if (type === 'node_retrying') waits.push(Date.parse(data.due as string) - at)
    expect(waits).to.have.length(4)
    for (const [index, most] of [4, 12, 20, 20].entries()) expect(waits[index]).to.be.within(most / 2, most)
    expect(run.error).to.include({ message: 'never' })
  })
})
