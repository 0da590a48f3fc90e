import { Conversations, type Tool, Tools } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { codeThrown, type HostOptions, openNode, provesNode, nodeSteps } from './support/host.ts'

const keys: (string | undefined)[] = []
const tool = (effects: Tool['effects']): Tool => ({
  description: 'for a test',
  category: 'text',
  effects,
  parameters: { type: 'object' },
  call: async (_args, { idempotencyKey }) => (keys.push(idempotencyKey), { content: [{ type: 'text', text: 'done' }] }),
})
const options: HostOptions = {
  plugins: ['store-memory', 'conversations', 'selection', 'modes', 'chat', 'model-calls', 'provider-local'],
  give: [item(Tools, 'look', tool(['read'])), item(Tools, 'save', tool(['write']))],
  config: { providers: { local: {} } },
}
const SIZE = { type: 'object', properties: { size: { type: 'integer' } }, required: ['size'] }

describe('a node agent', () => {
  provesNode(
    'agent',
    {
      good: [
        {
          settings: { prompt: 'hello', tools: [] },
          expect: output =>
            expect(output).to.deep.include({ text: 'You said: hello', provider: 'local', model: 'local-1', tools_used: [] }),
        },
        {
          settings: { prompt: 'how tall?', output: SIZE, mode: 'plan', profile: 'default', system: 'Be brief.' },
          expect: output => expect(output).to.have.nested.property('data.size', 0),
        },
        {
          settings: { prompt: '/tool look {}', tools: ['look'], budget: { tool_calls: 1, tokens: 2_000 } },
          expect: output => expect(output).to.have.deep.property('tools_used', [{ tool: 'look', success: true }]),
        },
      ],
      bad: [
        { settings: {} },
        { settings: { prompt: 'hi', budget: { calls: 1 } } },
        { settings: { prompt: 'hi', profile: 'none' }, code: 'INVALID_VALUE' },
        { settings: { prompt: 'hi', mode: 'none' }, code: 'INVALID_VALUE' },
        { settings: { prompt: 'hi', tools: ['none'] }, code: 'INVALID_VALUE' },
        { settings: { prompt: 'hi', provider: 'none' }, code: 'PROVIDER_NOT_FOUND' },
        { settings: { prompt: '/fail overloaded' }, code: 'MODEL_FAILED' },
        { settings: { prompt: '/fail overloaded after 1\nso it is' }, code: 'MODEL_FAILED' },
        { settings: { prompt: 'hi' }, allowance: { tokens: 0 }, code: 'BUDGET_EXHAUSTED' },
        { settings: { prompt: 'word '.repeat(100), tools: [], budget: { tokens: 20 } }, code: 'BUDGET_EXHAUSTED' },
      ],
      slow: { settings: { prompt: '/delay 60000\nhi' } },
      keyed: { settings: { prompt: '/tool look {}', tools: ['look'] }, keys: () => keys },
      concurrent: 5,
    },
    options
  )

  it('tells its tools and what it has spent, no more than it was granted, and when it fails, too', async () => {
    await using node = await openNode('agent', options)
    const words = await nodeSteps(node, {
      settings: { prompt: '/tool look {"a":1}\n/tool look {"a":2}', tools: ['look'] },
      allowance: { tool_calls: 1 },
    })
    expect(words.map(({ type }) => type)).to.deep.equal(['progress', 'progress', 'spent', 'output'])
    expect(words[2]).to.deep.include({ tool_calls: 1 }).and.have.nested.property('tokens.input').above(0)
    const spent: unknown[] = []
    const work = async () => {
      const task = {
        run: { id: 'r', workflow: 'w' },
        step: 's',
        node: 's',
        attempt: 1,
        idempotencyKey: 'k',
        bodies: [],
        branches: [],
        allowance: {},
      }
      const ctx = { signal: new AbortController().signal, principal: { id: 'me', scopes: ['*'] }, requestId: 'r' }
      const settings = { prompt: '/tool look {}\n/fail overloaded', tools: ['look'] }
      for await (const word of node.node.run({ ...task, settings }, ctx)) if (word.type === 'spent') spent.push(word.tool_calls)
    }
    expect((await codeThrown(work())).code).to.equal('MODEL_FAILED')
    expect(spent).to.deep.equal([1])
  })

  it('is asked again after its process has ended where its tools only read', async () => {
    await using node = await openNode('agent', options)
    for (const tools of [[], ['look']])
      expect((await nodeSteps(node, { settings: { prompt: 'hi', tools }, interrupted: true })).at(-1)?.type).to.equal('output')
    for (const settings of [{ prompt: 'hi' }, { prompt: 'hi', tools: ['look', 'save'] }])
      expect((await codeThrown(nodeSteps(node, { settings, interrupted: true }))).code).to.equal('NODE_INTERRUPTED')
  })

  it('leaves no conversation', async () => {
    await using node = await openNode('agent', options)
    await nodeSteps(node, { settings: { prompt: 'hi' } })
    expect((await node.host.service(Conversations).list({ limit: 9 }, testContext())).conversations).to.deep.equal([])
  })

  it('says what to add where there is no chat', async () => {
    await using node = await openNode('agent')
    expect(await codeThrown(nodeSteps(node, { settings: { prompt: 'hi' } }))).to.include({
      code: 'SERVICE_MISSING',
      hint: 'Add "@svc/plugin-chat" to "plugins"',
    })
  })
})
