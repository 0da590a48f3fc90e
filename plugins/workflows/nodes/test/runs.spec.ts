import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PluginRef, RunningHost, CallContext } from '@svc/core'
import { type Run, type Tool, Tools, type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { item, testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const ALL = [
  'store-memory',
  'conversations',
  'selection',
  'modes',
  'chat',
  'model-calls',
  'provider-local',
  'queue-store',
  'workflow-nodes',
  'workflows',
]
const ctx = testContext()

const keys: (string | undefined)[] = []
const careful: Tool = {
  description: 'for a test',
  category: 'text',
  effects: ['write'],
  asks: true,
  parameters: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  call: async ({ to }, { idempotencyKey }) => (keys.push(idempotencyKey), { content: [], structured: { sent: to ?? null } }),
}
const open = (give: PluginRef[] = []) =>
  testHost(ALL.map(pluginFolder), { give: [item(Tools, 'send', careful), ...give], config: { providers: { local: {} } } })

/** The run once it has ended, with what it waits for answered. */
async function ran(
  host: RunningHost,
  workflow: WorkflowDefinition,
  input: object = {},
  answers: readonly unknown[] = []
): Promise<Run> {
  const service = host.service(Workflows)
  const { id } = await service.start({ workflow, input: input as never }, ctx)
  const left = [...answers]
  for await (const { type, step } of service.events(id, 0, ctx))
    if (type === 'node_waiting' && left.length > 0) await service.answer(id, { step: step!, value: left.shift() as never }, ctx)
  return service.get(id, ctx)
}

describe('nodes in a run', () => {
  it('loop until an expression on the last output holds, with what the body answered before', async () => {
    await using host = await open()
    const { result, error } = await ran(host, {
      name: 'growing',
      nodes: {
        grow: {
          type: 'loop',
          until: 'last.size > 4.0',
          do: { type: 'transform', value: { size: '${{ last == null ? 1.0 : last.size * 2.0 }}' } },
        },
      },
    })
    expect([result, error]).to.deep.equal([{ last: { size: 8 }, rounds: 4, done: true }, undefined])
  })

  it('ask a person before a tool that asks, and hand it the key of the step', async () => {
    await using host = await open()
    const workflow: WorkflowDefinition = {
      name: 'sending',
      nodes: { post: { type: 'tool', name: 'send', arguments: { to: '${{ input.to }}' } } },
    }
    const sent = await ran(host, workflow, { to: 'Ann' }, [true])
    expect([sent.result, sent.spent.toolCalls]).to.deep.equal([{ sent: 'Ann' }, 1])
    expect(keys.splice(0)).to.deep.equal([`${sent.id}:post`])
    const refused = await ran(host, workflow, { to: 'Ann' }, [false])
    expect([refused.status, refused.error?.code, keys]).to.deep.equal(['failed', 'TOOL_DENIED', []])
  })

  it('do not go on with what a person has not approved', async () => {
    await using host = await open()
    const nodes = { ask: { type: 'human', message: 'Ship it?', next: 'ship' }, ship: { type: 'transform', value: 'shipped' } }
    expect((await ran(host, { name: 'shipping', nodes }, {}, [true])).result).to.equal('shipped')
    expect((await ran(host, { name: 'shipping', nodes }, {}, [false])).error?.code).to.equal('NOT_APPROVED')
    const kept = {
      ...nodes,
      ask: { ...nodes.ask, branches: { approved: 'ship', rejected: 'keep' } },
      keep: { type: 'transform', value: 'kept' },
    }
    expect((await ran(host, { name: 'shipping', nodes: kept }, {}, [false])).result).to.equal('kept')
  })

  it('hold the budget round them, all agents together', async () => {
    await using host = await open()
    const agent = (words: string) => ({ type: 'agent', prompt: words, tools: [] })
    const both = (tokens: number): WorkflowDefinition => ({
      name: 'talking',
      budget: { tokens },
      nodes: { one: { ...agent('hello'), next: 'two' }, two: agent('hello again') },
    })
    const free = await ran(host, both(10_000))
    expect([free.status, free.error]).to.deep.equal(['completed', undefined])
    const tight = await ran(host, both(free.spent.tokens - 10))
    expect([tight.completedNodes, tight.error?.code]).to.deep.equal([['one'], 'BUDGET_EXHAUSTED'])
    expect(tight.spent.tokens).to.be.at.most(free.spent.tokens - 10)
  })

  it('take an agent at its word where it answers data', async () => {
    await using host = await open()
    const output = { type: 'object', properties: { agreed: { type: 'boolean' } }, required: ['agreed'] }
    const { result } = await ran(host, {
      name: 'deciding',
      nodes: {
        judge: { type: 'agent', prompt: 'Is it good?', tools: [], output, next: 'way' },
        way: { type: 'condition', if: 'nodes.judge.data.agreed', branches: { true: 'yes', false: 'no' } },
        yes: { type: 'transform', value: 'good' },
        no: { type: 'transform', value: 'bad' },
      },
    })
    expect(result).to.equal('good')
  })

  it('wait for an event', async () => {
    await using host = await open()
    const service = host.service(Workflows)
    const { id } = await service.start(
      { workflow: { name: 'waiting', nodes: { paid: { type: 'wait', event: 'paid', for: '1h' } } } },
      ctx
    )
    for await (const { type } of service.events(id, 0, ctx))
      if (type === 'node_waiting') await service.signal(id, { name: 'paid', data: { sum: 3 } }, ctx)
    expect((await service.get(id, ctx)).result).to.deep.equal({ by: 'event', data: { sum: 3 } })
  })

  for (const [effects, ending] of [
    [['read'], { status: 'completed', result: 'done' }],
    [['write'], { status: 'failed' }],
  ] as const)
    it(`are ${effects[0] === 'read' ? 'run again' : 'not run twice'} where their process ended while a tool ran that may ${effects[0]}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-nodes-'))
      try {
        const began = Promise.withResolvers<void>()
        const hangs = (_args: unknown, { signal }: CallContext) =>
          new Promise<never>((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true })
            began.resolve()
          })
        const openWith = (call: Tool['call']) =>
          testHost(['store-sqlite', 'modes', 'queue-store', 'workflow-nodes', 'workflows'].map(pluginFolder), {
            give: [item(Tools, 'act', { ...careful, effects, asks: false, parameters: { type: 'object' }, call })],
            config: { store: { path: join(folder, 'svc.db') } },
          })
        const first = await openWith(hangs)
        const { id } = await first
          .service(Workflows)
          .start({ workflow: { name: 'acting', nodes: { act: { type: 'tool', name: 'act' } } } }, ctx)
        await began.promise
        await first.close({ limitMs: 0 })
        await using second = await openWith(async () => ({ content: [{ type: 'text', text: 'done' }] }))
        await second.service(Workflows).work(id, ctx)
        const run = await second.service(Workflows).get(id, ctx)
        expect(run).to.include(ending)
        expect(run.error?.code).to.equal(ending.status === 'failed' ? 'NODE_INTERRUPTED' : undefined)
      } finally {
        await rm(folder, { recursive: true })
      }
    })
})
