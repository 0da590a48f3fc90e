import type { Tool, ToolStep } from '@svc/core/contracts'
import { expect } from 'chai'
import { CLIENTS } from './support/clients.ts'
import { startMcpHost, toolOf } from './support/host.ts'
import { asked, begin } from './support/wire.ts'

const STEPS: ToolStep[] = [
  { type: 'progress', progress: 1, total: 2, message: 'half' },
  { type: 'log', level: 'debug', data: 'a detail' },
  { type: 'log', level: 'warning', data: { hot: true }, logger: 'stove' },
  { type: 'progress', progress: 2, total: 2 },
]

const cook: Tool = {
  ...toolOf(async () => ({ content: [] })),
  async *run() {
    yield* STEPS
    yield { type: 'result', result: { content: [{ type: 'text', text: 'done' }] } }
  },
}
const CALL = { name: 'cook', arguments: {} }
const done = [{ type: 'text', text: 'done' }]

const kinds = (events: readonly object[]) => events.map(event => ('method' in event ? event.method : 'answer'))

describe('notifications of a tool', () => {
  for (const [name, connect] of Object.entries(CLIENTS))
    it(`as progress reaches ${name}, which asks for it`, async () => {
      await using mcpHost = await startMcpHost({ tools: { cook } })
      await using two = await connect(mcpHost.url)
      const reported: object[] = []
      const { content } = await two.follow(CALL, progress => void reported.push(progress))
      expect(content).to.deep.equal(done)
      expect(reported).to.deep.equal([
        { progress: 1, total: 2, message: 'half' },
        { progress: 2, total: 2 },
      ])
    })

  it('are dropped if the caller does not want them: the answer is plain JSON', async () => {
    await using mcpHost = await startMcpHost({ tools: { cook } })
    const stateless = await asked(mcpHost.url, 'tools/call', CALL)
    const session = await begin(mcpHost.url)
    for (const answer of [stateless, await session.request('tools/call', CALL)]) {
      expect(answer.headers.get('content-type')).to.equal('application/json')
      expect(answer.body.result).to.deep.include({ content: done })
    }
  })

  it('as logs comes from the level on that a stateless request names', async () => {
    await using mcpHost = await startMcpHost({ tools: { cook } })
    const meta = { 'io.modelcontextprotocol/logLevel': 'warning' }
    const { events, body } = await asked(mcpHost.url, 'tools/call', CALL, { meta })
    expect(kinds(events)).to.deep.equal(['notifications/message', 'answer'])
    expect(events[0])
      .to.have.property('params')
      .that.deep.equals({ level: 'warning', data: { hot: true }, logger: 'stove' })
    expect(body.result).to.deep.include({ content: done })
  })

  it('as logs comes from the level on that a session has set', async () => {
    await using mcpHost = await startMcpHost({ tools: { cook } })
    const session = await begin(mcpHost.url)
    await session.request('logging/setLevel', { level: 'debug' }, 2)
    const { events } = await session.request('tools/call', CALL, 3)
    expect(kinds(events)).to.deep.equal(['notifications/message', 'notifications/message', 'answer'])
  })

  it('are bounded: dropped ones are not buffered', async () => {
    const data = 'x'.repeat(100_000)
    const flood: Tool = {
      ...cook,
      async *run() {
        for (let at = 0; at < 1_000; at++) yield { type: 'log', level: 'error', data }
        yield { type: 'result', result: { content: [{ type: 'text', text: 'done' }] } }
      },
    }
    await using mcpHost = await startMcpHost({ tools: { flood } })
    const meta = { 'io.modelcontextprotocol/logLevel': 'debug' }
    const { events, body } = await asked(mcpHost.url, 'tools/call', { name: 'flood', arguments: {} }, { meta })
    expect(events.length).to.be.within(2, 110)
    expect(body.result).to.deep.include({ content: done })
  })
})
