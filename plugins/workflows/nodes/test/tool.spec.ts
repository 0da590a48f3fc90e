import { type Tool, Tools } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { codeThrown, type HostOptions, openNode, provesNode, nodeSteps } from './support/host.ts'

const text = (words: string) => ({ content: [{ type: 'text', text: words }] }) as const
const tool = (parts: Partial<Tool>): Tool => ({
  description: 'for a test',
  category: 'text',
  effects: ['read'],
  parameters: { type: 'object', properties: { n: { type: 'integer', default: 4 } }, additionalProperties: false },
  call: async ({ n }) => text(`n is ${JSON.stringify(n)}`),
  ...parts,
})
const keys: (string | undefined)[] = []
const never = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
const TOOLS: Readonly<Record<string, Tool>> = {
  say: tool({}),
  count: tool({ call: async ({ n }) => ({ ...text('counted'), structured: { n: n ?? null } }), result: { type: 'object' } }),
  save: tool({ effects: ['write'], call: async (_args, { idempotencyKey }) => (keys.push(idempotencyKey), text('saved')) }),
  hang: tool({ call: (_args, { signal }) => never(signal) }),
  late: tool({ timeoutMs: 20, call: (_args, { signal }) => never(signal) }),
  fails: tool({ call: async () => ({ ...text('no wind'), isError: true }) }),
  throws: tool({ call: async () => Promise.reject(new Error('it broke')) }),
  breaks: tool({ call: async () => Promise.reject(Object.assign(new Error('it broke'), { code: 'WIND_LOST' })) }),
  asks: tool({ asks: true, call: async () => text('done') }),
  delegate: tool({ modes: ['delegate'] }),
  steps: tool({
    async *run() {
      yield { type: 'progress', progress: 1, total: 2, message: 'half' }
      yield { type: 'result', result: text('whole') }
    },
  }),
  needy: tool({
    async *run() {
      yield { type: 'input', requests: {} }
    },
  }),
  picture: tool({ call: async () => ({ content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] }) }),
}
const options: HostOptions = { give: Object.entries(TOOLS).map(([name, entry]) => item(Tools, name, entry)) }

interface LoggedFailure {
  readonly level: number
  readonly tool?: string
  readonly of?: string
  readonly code?: string
  readonly err: { readonly stack: string }
}

describe('a node tool', () => {
  provesNode(
    'tool',
    {
      good: [
        { settings: { name: 'say' }, expect: output => expect(output).to.equal('n is 4') },
        { settings: { name: 'count', arguments: { n: 2 } }, expect: output => expect(output).to.deep.equal({ n: 2 }) },
        { settings: { name: 'steps' }, expect: output => expect(output).to.equal('whole') },
        { settings: { name: 'asks' }, expect: output => expect(output).to.equal('done') },
        { settings: { name: 'save' } },
        { settings: { name: 'picture' }, expect: output => expect(output).to.have.nested.property('[0].mimeType', 'image/png') },
      ],
      bad: [
        { settings: {} },
        { settings: { name: 'say', arguments: 7 } },
        { settings: { name: 'unknown' }, code: 'TOOL_UNKNOWN' },
        { settings: { name: 'delegate' }, code: 'TOOL_UNKNOWN' },
        { settings: { name: 'say', arguments: { n: 'two' } }, code: 'INVALID_VALUE' },
        { settings: { name: 'fails' }, code: 'TOOL_EXECUTION_FAILED' },
        { settings: { name: 'throws' }, code: 'TOOL_EXECUTION_FAILED' },
        { settings: { name: 'late' }, code: 'TOOL_EXECUTION_FAILED' },
        { settings: { name: 'needy' }, code: 'TOOL_EXECUTION_FAILED' },
        { settings: { name: 'asks' }, woken: () => ({ by: 'answer', data: false }), code: 'TOOL_DENIED' },
        { settings: { name: 'say' }, allowance: { tool_calls: 0 }, code: 'BUDGET_EXHAUSTED' },
      ],
      slow: { settings: { name: 'hang' } },
      keyed: { settings: { name: 'save' }, keys: () => keys },
    },
    options
  )

  it('leaves one line in the log for what the tool throws, and none for an error that it returns', async () => {
    const lines: string[] = []
    await using node = await openNode('tool', { ...options, log: { destination: { write: line => void lines.push(line) } } })
    for (const name of ['breaks', 'fails'])
      expect(await codeThrown(nodeSteps(node, { settings: { name } }))).to.include({ code: 'TOOL_EXECUTION_FAILED' })
    const logged = lines.map(line => JSON.parse(line) as LoggedFailure).filter(({ tool }) => tool !== undefined)
    expect(logged.map(({ level, tool, of, code }) => ({ level, tool, of, code }))).to.deep.equal([
      { level: 40, tool: 'breaks', of: 'test:tools/breaks', code: 'WIND_LOST' },
    ])
    expect(logged[0]!.err.stack).to.match(/it broke\n +at /)
  })

  it('tells its progress and what it spends, and asks a person with the arguments before', async () => {
    await using node = await openNode('tool', options)
    expect(await nodeSteps(node, { settings: { name: 'steps' } })).to.deep.equal([
      { type: 'spent', tool_calls: 1 },
      { type: 'progress', message: 'half', fraction: 0.5 },
      { type: 'output', output: 'whole' },
    ])
    const ask = { kind: 'approval', message: 'Allow the tool "asks" to run with {"n":1}?' }
    expect(await nodeSteps(node, { settings: { name: 'asks', arguments: { n: 1 } } })).to.deep.equal([{ type: 'wait', ask }])
  })

  it('is run again after its process has ended where it only reads', async () => {
    await using node = await openNode('tool', options)
    expect(await nodeSteps(node, { settings: { name: 'say' }, interrupted: true })).to.have.lengthOf(2)
    const { code, message } = await codeThrown(nodeSteps(node, { settings: { name: 'save' }, interrupted: true }))
    expect([code, message]).to.deep.equal([
      'NODE_INTERRUPTED',
      'the process exited while it ran the node "s", and the tool "save" may have done its work',
    ])
  })
})
