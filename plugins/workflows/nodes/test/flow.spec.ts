import { expect } from 'chai'
import { codeThrown, openNode, provesNode, nodeSteps } from './support/host.ts'

describe('a node transform', () => {
  provesNode('transform', {
    good: [{ settings: { value: { a: [1] } }, expect: output => expect(output).to.deep.equal({ a: [1] }) }],
    bad: [{ settings: {} }],
  })
})

describe('a node condition', () => {
  provesNode('condition', {
    good: [true, false].map(yes => ({
      settings: { if: yes },
      written: { if: 'input.n > 2' },
      expect: (output, branch) => expect([output, branch]).to.deep.equal([yes, String(yes)]),
    })),
    bad: [{ settings: {} }, { settings: { if: '' } }],
  })
})

describe('a node parallel', () => {
  provesNode('parallel', {
    good: [
      { settings: {}, expect: output => expect(output).to.deep.equal({ one: {}, two: {} }) },
      { settings: { join: 'any', width: 1 } },
      {
        settings: { join: 'first' },
        child: ({ key }) => (key === 'one' ? { status: 'completed', output: 1 } : { status: 'cancelled' }),
        expect: output => expect(output).to.deep.equal({ one: 1 }),
      },
    ],
    bad: [{ settings: { join: 'none' } }, { settings: { width: 0 } }],
  })

  it('fails with what failed where all are needed, and where nothing else came', async () => {
    await using node = await openNode('parallel')
    const broke = { status: 'failed', error: { code: 'BROKE', message: 'it broke', details: { a: 1 } } } as const
    const done = { status: 'completed', output: 1 } as const
    const error = await codeThrown(nodeSteps(node, { settings: {}, children: { a: done, b: broke } }))
    expect(error).to.deep.include({ code: 'BROKE', message: 'it broke', details: { a: 1 } })
    expect((await codeThrown(nodeSteps(node, { settings: { join: 'any' }, children: { a: broke, b: broke } }))).code).to.equal(
      'BROKE'
    )
    const [answer] = await nodeSteps(node, { settings: { join: 'any' }, children: { a: broke, b: done } })
    expect(answer).to.deep.include({ output: { b: 1 } })
  })
})

describe('a node map', () => {
  provesNode('map', {
    good: [
      {
        settings: { over: ['a', 'b'] },
        written: { over: 'input.list' },
        expect: output =>
          expect(output).to.deep.equal([
            { item: 'a', index: 0 },
            { item: 'b', index: 1 },
          ]),
      },
      { settings: { over: [] }, written: { over: 'input.list' }, expect: output => expect(output).to.deep.equal([]) },
      {
        settings: { over: [1, 2], keep_going: true, width: 1 },
        child: ({ key }) => (key === '0' ? { status: 'completed', output: 1 } : { status: 'cancelled' }),
        expect: output => expect(output).to.deep.equal([1, null]),
      },
    ],
    bad: [
      { settings: {} },
      { settings: { over: [], width: 0 } },
      { settings: { over: 7 }, written: { over: 'input.n' }, code: 'INVALID_VALUE' },
    ],
  })

  it('keeps the order of a long list', async () => {
    await using node = await openNode('map')
    const over = Array.from({ length: 200 }, (_, at) => at)
    const children = Object.fromEntries(over.map(at => [at, { status: 'completed', output: at } as const]))
    expect(await nodeSteps(node, { settings: { over }, children })).to.deep.equal([{ type: 'output', output: over }])
  })

  it('fails with what failed, unless it keeps going', async () => {
    await using node = await openNode('map')
    const children = {
      0: { status: 'cancelled' },
      1: { status: 'failed', error: { code: 'BROKE', message: 'it broke', details: {} } },
    } as const
    expect((await codeThrown(nodeSteps(node, { settings: { over: [1, 2] }, children }))).code).to.equal('BROKE')
    const [answer] = await nodeSteps(node, { settings: { over: [1, 2], keep_going: true }, children })
    expect(answer).to.deep.include({ output: [null, null] })
  })
})

describe('a node loop', () => {
  const isThird = (children: object) => ({ until: Object.keys(children).includes('2') })
  provesNode('loop', {
    good: [
      {
        settings: {},
        written: { until: 'last.done' },
        late: isThird,
        child: ({ vars }) => ({ status: 'completed', output: [vars?.index ?? null, vars?.last ?? null] }),
        expect: output => expect(output).to.deep.equal({ last: [2, [1, [0, null]]], rounds: 3, done: true }),
      },
      {
        settings: { max: 2, at_max: 'end' },
        written: { until: 'last.done', max: 2, at_max: 'end' },
        late: () => ({ until: false }),
        expect: output => expect(output).to.deep.include({ rounds: 2, done: false }),
      },
    ],
    bad: [
      { settings: {} },
      { settings: { until: true, max: 0 }, written: { until: 'x', max: 0 } },
      { settings: { max: 2 }, written: { until: 'last.done', max: 2 }, late: () => ({ until: false }), code: 'LOOP_EXHAUSTED' },
    ],
  })
})

describe('a node subworkflow', () => {
  provesNode('subworkflow', {
    good: [
      {
        settings: { workflow: 'inner', input: { a: 1 } },
        child: ({ body }) => ({ status: 'completed', output: body as never }),
        expect: output => expect(output).to.deep.equal({ workflow: 'inner', input: { a: 1 }, parameters: {} }),
      },
    ],
    bad: [{ settings: {} }, { settings: { workflow: 'inner', input: 7 } }],
  })
})
