import type { RunningHost } from '@svc/core'
import { WorkflowNodes } from '@svc/core/contracts'
import { nodeKit, testHost } from '@svc/core/testing'
import { expect } from 'chai'
import { inSandbox, WHERE } from '../support/in-sandbox.ts'

describe(`the nodes of workflow-nodes ${WHERE}, by the node kit`, () => {
  let host: RunningHost
  before(async () => {
    host = await testHost(await inSandbox('workflow-nodes'), { strict: false })
  })
  after(() => host.close())

  const open = () => ({ node: host.slot(WorkflowNodes).get('transform')! })
  const samples = {
    good: [{ settings: { value: { a: [1] } }, expect: (output: unknown) => expect(output).to.deep.equal({ a: [1] }) }],
    bad: [{ settings: {} }],
  }
  for (const one of nodeKit(open, samples)) if (one.skipped === undefined) it(one.title, one.run)
})
