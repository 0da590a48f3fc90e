import { expect } from 'chai'
import { codeThrown, openNode, provesNode, nodeSteps } from './support/host.ts'

describe('a node human', () => {
  provesNode('human', {
    good: [
      {
        settings: { message: 'Ship it?' },
        branches: ['approved', 'rejected'],
        expect: (output, branch) => expect([output, branch]).to.deep.equal([{ answer: true, timed_out: false }, 'approved']),
      },
      {
        settings: { message: 'Ship it?' },
        branches: ['rejected'],
        woken: () => ({ by: 'answer', data: false }),
        expect: (_output, branch) => expect(branch).to.equal('rejected'),
      },
      {
        settings: { kind: 'choice', message: 'Which?', choices: ['red', 'blue'], for: '2h' },
        expect: (_output, branch) => expect(branch).to.equal('red'),
      },
      {
        settings: { kind: 'input', message: 'How many?', schema: { type: 'integer' }, fallback: 3, for: '1s' },
        woken: () => ({ by: 'time' }),
        expect: (output, branch) => expect([output, branch]).to.deep.equal([{ answer: 3, timed_out: true }, 'answered']),
      },
      {
        settings: { message: 'Ship it?', for: '1s' },
        branches: ['timeout'],
        woken: () => ({ by: 'time' }),
        expect: (output, branch) => expect([output, branch]).to.deep.equal([{ answer: null, timed_out: true }, 'timeout']),
      },
    ],
    bad: [
      { settings: {} },
      { settings: { kind: 'choice', message: 'Which?' } },
      { settings: { message: 'Ship it?', for: 'soon' } },
      { settings: { kind: 'input', message: 'How many?', schema: { type: 'many' } }, code: 'INVALID_VALUE' },
      { settings: { message: 'Ship it?', for: '1s', fallback: 'approved' }, code: 'INVALID_VALUE' },
      { settings: { kind: 'choice', message: 'Which?', choices: ['red'], for: '1s', fallback: 'blue' }, code: 'INVALID_VALUE' },
      { settings: { kind: 'input', message: '?', schema: { type: 'integer' }, for: '1s', fallback: 'x' }, code: 'INVALID_VALUE' },
      { settings: { message: 'Ship it?' }, woken: () => ({ by: 'answer', data: false }), code: 'NOT_APPROVED' },
      { settings: { message: 'Ship it?', for: '1s', fallback: false }, woken: () => ({ by: 'time' }), code: 'NOT_APPROVED' },
      { settings: { message: 'Ship it?', for: '1s' }, woken: () => ({ by: 'time' }), code: 'NOT_ANSWERED' },
    ],
  })

  it('asks the configured question for the configured time', async () => {
    await using node = await openNode('human')
    const before = Date.now()
    const [word] = await nodeSteps(node, { settings: { kind: 'choice', message: 'Which?', choices: ['a', 'b'], for: '2h' } })
    expect(word).to.deep.include({ type: 'wait', ask: { kind: 'choice', message: 'Which?', choices: ['a', 'b'] } })
    expect((word as { until: number }).until).to.be.within(before + 7_200_000, Date.now() + 7_200_000)
    expect((await nodeSteps(node, { settings: { message: 'Well?' } }))[0]).to.deep.equal({
      type: 'wait',
      ask: { kind: 'approval', message: 'Well?' },
    })
  })
})

describe('a node wait', () => {
  provesNode('wait', {
    good: [
      {
        settings: { for: '10m' },
        expect: (output, branch) => expect([output, branch]).to.deep.equal([{ by: 'time', data: null }, undefined]),
      },
      { settings: { until: '2027-01-31T12:00:00Z' } },
      { settings: { until: 1_800_000_000_000 } },
      {
        settings: { event: 'paid', for: '2d' },
        woken: () => ({ by: 'event', data: { sum: 3 } }),
        expect: (output, branch) => expect([output, branch]).to.deep.equal([{ by: 'event', data: { sum: 3 } }, 'event']),
      },
      {
        settings: { event: 'paid', for: '2d' },
        branches: ['timeout'],
        woken: () => ({ by: 'time' }),
        expect: (_output, branch) => expect(branch).to.equal('timeout'),
      },
    ],
    bad: [
      { settings: {} },
      { settings: { for: '1s', until: '2027-01-31T12:00:00Z' } },
      { settings: { event: 'no blanks' } },
      { settings: { until: 'tomorrow' }, code: 'INVALID_VALUE' },
      { settings: { event: 'paid', for: '1s' }, woken: () => ({ by: 'time' }), code: 'EVENT_MISSED' },
    ],
  })

  it('waits until the given time', async () => {
    await using node = await openNode('wait')
    expect(await nodeSteps(node, { settings: { until: '2027-01-31T12:00:00Z' } })).to.deep.equal([
      { type: 'wait', until: Date.UTC(2027, 0, 31, 12) },
    ])
    expect(await nodeSteps(node, { settings: { event: 'paid' } })).to.deep.equal([{ type: 'wait', event: 'paid' }])
    expect((await codeThrown(nodeSteps(node, { settings: { for: 'long' } }))).code).to.equal('INVALID_VALUE')
  })
})
