import { codeOf, type RunningHost } from '@svc/core'
import { type Json, type ReplayRequest, type WorkflowDefinition, WorkflowDefinitions, Workflows } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { ctx, node, openEngine, ran } from './support.ts'

/** A node that counts its calls, and the keys that it got. */
function counting() {
  const calls: string[] = []
  const keys: string[] = []
  const count = node(async function* ({ step, settings, idempotencyKey }) {
    calls.push(step)
    keys.push(idempotencyKey)
    if (settings.fails === true) throw new Error('as configured')
    yield { type: 'output', output: (settings.value ?? step) as Json }
  })
  return { calls, keys, nodes: { count } }
}

const three: WorkflowDefinition = {
  name: 'three',
  inputs: { type: 'object', properties: { who: { type: 'string' } } },
  parameters: { times: { type: 'integer', default: 1 } },
  nodes: {
    a: { type: 'count', next: 'b' },
    b: { type: 'count', value: '${{ input.who }} ${{ parameters.times }}', next: 'c' },
    c: { type: 'count', value: '${{ nodes.a}}, ${{ nodes.b}}' },
  },
}

const reasonOf = (error: unknown) => (error as { details?: { reason?: string } }).details?.reason ?? String(error)
const replayed = async (host: RunningHost, id: string, request: ReplayRequest) => {
  const workflows = host.service(Workflows)
  return workflows.settled((await workflows.replay(id, request, ctx)).id, 10_000, ctx)
}
const refusal = (host: RunningHost, id: string, request: ReplayRequest) =>
  host
    .service(Workflows)
    .replay(id, request, ctx)
    .then(() => 'started', reasonOf)

describe('replay of a run', () => {
  it('reuses the results of the nodes before the chosen one, and runs it and the later ones again with the new input', async () => {
    const { calls, keys, nodes } = counting()
    await using host = await openEngine({ nodes })
    const first = await ran(host, three, { input: { who: 'ann' } })
    expect(first.result).to.equal('a, ann 1')
    const again = await replayed(host, first.id, { from: 'b', input: { who: 'bob' }, parameters: { times: 2 } })
    expect(again).to.include({ status: 'completed', result: 'a, bob 2', replayOf: first.id, replayFrom: 'b' })
    expect(again.retryOf).to.equal(undefined)
    expect(calls).to.deep.equal(['a', 'b', 'c', 'b', 'c'])
    // a service that knows keys must do it again
    expect(new Set(keys).size).to.equal(5)
    const whole = await replayed(host, again.id, {})
    expect([whole.result, whole.replayFrom, calls.slice(5)]).to.deep.equal(['a, bob 2', 'a', ['a', 'b', 'c']])
    // the original is as it was
    expect(await host.service(Workflows).get(first.id, ctx)).to.deep.equal(first)
  })

  it('goes on from a failed run, which is continued then, and retries keep what was reused', async () => {
    const { calls, nodes } = counting()
    await using host = await openEngine({ nodes })
    const definition = (fails: boolean): WorkflowDefinition => ({
      ...three,
      nodes: { ...three.nodes, c: { type: 'count', fails } },
    })
    const failed = await ran(host, definition(true), { input: { who: 'ann' } })
    const again = await replayed(host, failed.id, { from: 'b' })
    expect([again.status, calls]).to.deep.equal(['failed', ['a', 'b', 'c', 'b', 'c']])
    const workflows = host.service(Workflows)
    expect((await workflows.get(failed.id, ctx)).continuedBy).to.equal(again.id)
    const retried = await workflows.settled((await workflows.retry(again.id, {}, ctx)).id, 10_000, ctx)
    expect(retried).to.include({ status: 'failed', retryOf: again.id })
    expect(retried.replayOf).to.equal(undefined)
    expect(calls.slice(5)).to.deep.equal(['c'])
    expect((await workflows.steps(retried.id, ctx)).map(({ step, status }) => `${step} ${status}`)).to.deep.equal([
      'a completed',
      'b completed',
      'c failed',
    ])
  })

  it('reuses what a fan-out and a second visit came to', async () => {
    const { calls, nodes } = counting()
    await using host = await openEngine({ nodes })
    const run = await ran(host, {
      name: 'fans',
      nodes: {
        each: { type: 'map', over: '[1, 2]', do: { type: 'count', value: '${{ item }}' }, next: 'turn' },
        turn: { type: 'count', next: 'more' },
        more: {
          type: 'condition',
          if: 'nodes.turn == "turn#2"',
          branches: { true: 'end', false: 'last' },
        },
        last: { type: 'count', value: '${{ nodes.each}}', next: 'turn' },
      },
    })
    expect([run.status, run.error?.message]).to.deep.equal(['completed', undefined])
    const before = calls.length
    expect((await replayed(host, run.id, { from: 'turn#2' })).status).to.equal('completed')
    expect(calls.slice(before)).to.deep.equal(['turn#2'])
    expect((await replayed(host, run.id, { from: 'turn' })).status).to.equal('completed')
    expect(calls.slice(before + 1)).to.deep.equal(['turn', 'last', 'turn#2'])
    expect((await replayed(host, run.id, { from: 'each' })).status).to.equal('completed')
    expect(calls.slice(before + 4).filter(step => step.startsWith('each/'))).to.have.members(['each/0/do', 'each/1/do'])
  })

  it('uses the current definition where it is asked to, if that leads over the same results', async () => {
    const { calls, nodes } = counting()
    for (const [change, expected] of [
      [{ ...three.nodes, c: { type: 'count', value: 'new' } }, 'new'],
      [{ ...three.nodes, a: { type: 'count', next: 'new' }, new: { type: 'count', next: 'b' } }, /runs "new" first/],
      [{ ...three.nodes, a: { type: 'transform', value: 1, next: 'b' } }, /had the type "count", not "transform"/],
      [{ a: { type: 'count', next: 'c' }, c: { type: 'count' } }, /"b" is not a node of the definition/],
      [{ a: { type: 'count' }, b: { type: 'count' } }, /is invalid|path ends before/],
    ] as const) {
      const current = { ...three, nodes: change as WorkflowDefinition['nodes'] }
      await using host = await openEngine({ nodes, give: [item(WorkflowDefinitions, 'three', current)] })
      const first = await ran(host, three, { input: { who: 'ann' } })
      const before = calls.length
      if (typeof expected === 'string') {
        const again = await replayed(host, first.id, { from: 'b', definition: 'current' })
        expect([again.result, calls.slice(before)]).to.deep.equal([expected, ['b', 'c']])
        continue
      }
      const thrown = await host
        .service(Workflows)
        .replay(first.id, { from: 'b', definition: 'current' }, ctx)
        .then(
          () => 'started',
          (error: Error) => error.message
        )
      expect(thrown).to.match(expected)
      expect([calls.length, (await host.service(Workflows).runs({ limit: 10 }, ctx)).runs.length]).to.deep.equal([before, 1])
    }
  })

  it('does not undo what it has not done, and reuses nothing that was undone', async () => {
    const { calls, nodes } = counting()
    await using host = await openEngine({ nodes })
    const trip: WorkflowDefinition = {
      name: 'trip',
      nodes: {
        book: { type: 'count', compensate: { type: 'count', value: 'unbook' }, next: 'pay' },
        pay: { type: 'count', compensate: { type: 'count', value: 'refund' }, next: 'send' },
        send: { type: 'count', fails: '${{ input.fails }}' },
      },
    }
    const first = await ran(host, trip, { input: { fails: false } })
    expect(first.status).to.equal('completed')
    const failed = await replayed(host, first.id, { from: 'pay', input: { fails: true } })
    expect(failed.status).to.equal('failed')
    expect(calls.slice(3)).to.deep.equal(['pay', 'send', 'undo/pay/do'])
    expect(await refusal(host, failed.id, { from: 'send' })).to.match(/must be "pay" or an earlier node/)
    expect((await replayed(host, failed.id, { from: 'pay', input: { fails: false } })).status).to.equal('completed')
    expect(calls.slice(6)).to.deep.equal(['pay', 'send'])
  })

  it('is refused for a running run, for nodes that are unknown or were not reached, for other principals, and with bad input', async () => {
    const { nodes } = counting()
    await using host = await openEngine({ nodes })
    const workflows = host.service(Workflows)
    const ask: WorkflowDefinition = { name: 'ask', nodes: { q: { type: 'human', message: '?' } } }
    const { id: open } = await workflows.start({ workflow: ask }, ctx)
    expect(await refusal(host, open, {})).to.equal('has not ended')
    const branching: WorkflowDefinition = {
      name: 'branching',
      inputs: { type: 'object', properties: { way: { type: 'boolean' } }, required: ['way'], additionalProperties: false },
      nodes: {
        which: { type: 'condition', if: 'input.way', branches: { true: 'left', false: 'right' } },
        left: { type: 'count' },
        right: { type: 'count' },
      },
    }
    const { id } = await ran(host, branching, { input: { way: true } })
    for (const from of ['none', '__proto__', 'constructor', 'left/do', '', 'left#x', 'undo/left', 'a'.repeat(5_000)])
      expect(await refusal(host, id, { from }), from).to.match(/not a node of the definition/)
    for (const from of ['right', 'left#2']) expect(await refusal(host, id, { from }), from).to.match(/was not reached/)
    for (const input of [{}, { way: 'x' }, { way: true, more: 1 }, [], null] as Json[])
      expect(await refusal(host, id, { from: 'left', input }), JSON.stringify(input)).to.not.equal('started')
    expect(await refusal(host, id, { from: 'left', parameters: { none: 1 } })).to.not.equal('started')
    expect(await refusal(host, id, { definition: 'current' })).to.equal('not found')
    const other = testContext({ principal: { id: 'other', scopes: ['workflows'] } })
    expect(await workflows.replay(id, {}, other).catch(codeOf)).to.equal('RUN_UNKNOWN')
    expect((await workflows.runs({ limit: 10 }, ctx)).runs.length).to.equal(2)
  })

  it('begins once for a key, and not for the key of another request', async () => {
    const { calls, nodes } = counting()
    await using host = await openEngine({ nodes })
    const workflows = host.service(Workflows)
    const { id } = await ran(host, three, { input: { who: 'ann' } })
    const both = await Promise.all([1, 2].map(() => workflows.replay(id, { from: 'c', idempotencyKey: 'k' }, ctx)))
    expect(both[0]!.id).to.equal(both[1]!.id)
    await workflows.settled(both[0]!.id, 10_000, ctx)
    expect(calls.slice(3)).to.deep.equal(['c'])
    expect(await refusal(host, id, { from: 'b', idempotencyKey: 'k' })).to.match(/already used/)
  })
})
