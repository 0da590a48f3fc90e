import type { RunningHost } from '@svc/core'
import { WorkflowNodes } from '@svc/core/contracts'
import { nodeKit, type NodeSamples, testHost } from '@svc/testing'
import { expect } from 'chai'
import { inSandbox, WHERE } from '../support/in-sandbox.ts'

/** One that answers at once, one that waits for a person, one that forks. */
const NODES: Readonly<Record<string, NodeSamples>> = {
  transform: {
    good: [{ settings: { value: { a: [1] } }, expect: output => expect(output).to.deep.equal({ a: [1] }) }],
    bad: [{ settings: {} }],
  },
  human: {
    good: [
      {
        settings: { message: 'Ship it?' },
        branches: ['approved', 'rejected'],
        woken: () => ({ by: 'answer', data: false }),
        expect: (_output, branch) => expect(branch).to.equal('rejected'),
      },
    ],
    bad: [
      { settings: { message: 'Ship it?', for: 'soon' } },
      { settings: { message: 'Ship it?', for: '1s' }, woken: () => ({ by: 'time' }), code: 'NOT_ANSWERED' },
    ],
  },
  parallel: {
    good: [
      {
        settings: { join: 'first' },
        child: ({ key }) => (key === 'one' ? { status: 'completed', output: 1 } : { status: 'cancelled' }),
        expect: output => expect(output).to.deep.equal({ one: 1 }),
      },
    ],
    bad: [{ settings: { width: 0 } }],
  },
}

describe(`the nodes of workflow-nodes ${WHERE}, by the node kit`, () => {
  let host: RunningHost
  before(async () => {
    host = await testHost(await inSandbox('workflow-nodes'), { strict: false })
  })
  after(() => host.close())

  for (const [type, samples] of Object.entries(NODES))
    describe(type, () => {
      const open = () => ({ node: host.slot(WorkflowNodes).get(type)! })
      for (const testCase of nodeKit(open, samples)) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
    })
})
