import { expect } from 'chai'
import type { RunningHost } from '@svc/core'
import { type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const plugin = (name: string) => ({ name: `@svc/plugin-${name}`, use: pluginFolder(name) })
const PLUGINS = ['store-memory', 'queue-store', 'workflow-nodes', 'workflows'].map(plugin)

const open = (): Promise<RunningHost> => testHost(PLUGINS)
const ctx = testContext()

async function ran(host: RunningHost, workflow: WorkflowDefinition, input: object = {}) {
  const service = host.service(Workflows)
  const { id } = await service.start({ workflow, input: input as never }, ctx)
  return service.settled(id, 5_000, ctx)
}

describe('workflows', () => {
  it('runs its nodes one after the other', async () => {
    await using host = await open()
    const run = await ran(
      host,
      {
        name: 'sum',
        nodes: {
          one: { type: 'transform', value: { n: '${{ input.n + 1 }}' }, next: 'two' },
          two: { type: 'transform', value: '${{ nodes.one.n * 2 }}' },
        },
      },
      { n: 3 }
    )
    expect(run).to.include({ status: 'completed', result: 8, progress: 1 })
    expect(run.completedNodes).to.deep.equal(['one', 'two'])
  })

  it('goes the way that a condition says, with branches that are written as true and false', async () => {
    await using host = await open()
    const workflow: WorkflowDefinition = {
      name: 'ways',
      nodes: {
        ask: { type: 'condition', if: 'input.n > 2', branches: { true: 'big', false: 'small' } },
        big: { type: 'transform', value: 'big' },
        small: { type: 'transform', value: 'small' },
      },
    }
    expect((await ran(host, workflow, { n: 3 })).result).to.equal('big')
    expect((await ran(host, workflow, { n: 1 })).result).to.equal('small')
  })

  it('does several things at once, and the same with each item of a list', async () => {
    await using host = await open()
    const run = await ran(
      host,
      {
        name: 'many',
        nodes: {
          both: {
            type: 'parallel',
            bodies: { a: { type: 'transform', value: 1 }, b: { type: 'transform', value: '${{ input.list.size() }}' } },
            next: 'each',
          },
          each: {
            type: 'map',
            over: 'input.list',
            do: { nodes: { x: { type: 'transform', value: '${{ item * 2 + index }}' } } },
          },
        },
        result: { both: '${{ nodes.both }}', each: '${{ nodes.each }}' },
      },
      { list: [5, 6, 7] }
    )
    expect(run.error).to.equal(undefined)
    expect(run.result).to.deep.equal({ both: { a: 1, b: 3 }, each: [10, 13, 16] })
  })
})
