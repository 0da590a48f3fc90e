import { expect } from 'chai'
import { codeThrown, openNode, provesNode, nodeSteps } from './support/host.ts'

describe('a node compute', () => {
  provesNode(
    'compute',
    {
      good: [
        {
          settings: { code: 'input.list.map(n => n * 2)', input: { list: [1, 2] } },
          expect: output => expect(output).to.deep.equal([2, 4]),
        },
        { settings: { code: 'console.log("hello"); typeof fetch' }, expect: output => expect(output).to.equal('undefined') },
      ],
      bad: [{ settings: {} }, { settings: { code: 'throw new Error("no")' }, code: 'SANDBOX_FAILED' }],
      slow: { settings: { code: 'for (;;);' } },
      concurrent: 4,
    },
    { plugins: ['sandbox-quickjs'] }
  )

  it('tells what its code writes to the console', async () => {
    await using node = await openNode('compute', { plugins: ['sandbox-quickjs'] })
    expect(await nodeSteps(node, { settings: { code: 'console.log("half"); 1' } })).to.deep.equal([
      { type: 'progress', message: 'half' },
      { type: 'output', output: 1 },
    ])
  })

  it('says what to add where there is no sandbox', async () => {
    await using node = await openNode('compute')
    expect((await codeThrown(nodeSteps(node, { settings: { code: '1' } }))).code).to.equal('SERVICE_MISSING')
  })
})
