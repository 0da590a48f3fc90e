import { type BusEvent, Events, systemContext } from '@svc/core'
import { expect } from 'chai'
import { echo, type McpHost, startMcpHost, toolOf } from './support/host.ts'
import { asked, begin } from './support/wire.ts'

type Event = BusEvent<{ readonly [name: string]: unknown }>

/** Reads the bus: `next` is the next so many events. */
function reading(mcpHost: McpHost) {
  const ctx = systemContext(new AbortController().signal)
  const items = mcpHost.host
    .service(Events)
    .subscribe({ categories: ['TOOL'] }, ctx)
    [Symbol.asyncIterator]()
  let first: Promise<IteratorResult<BusEvent>> | undefined = items.next()
  return {
    async next(count: number): Promise<Event[]> {
      const all: Event[] = []
      for (let at = 0; at < count; at++) {
        all.push(((await (first ?? items.next())) as { value: Event }).value)
        first = undefined
      }
      return all
    },
    [Symbol.asyncDispose]: async () => void (await items.return?.()),
  }
}

const SECRET = 'a secret of the caller'

describe('the event bus', () => {
  it('hears of each call once when it begins and once when it ends, by whatever way it came, without arguments and results', async () => {
    await using mcpHost = await startMcpHost({ mcp: { sets: { some: ['echo'] } } })
    await using bus = reading(mcpHost)
    const call = { name: 'echo', arguments: { text: SECRET } }
    await mcpHost.ask.post('/tools/echo/call', { arguments: call.arguments })
    await asked(mcpHost.url, 'tools/call', call, { path: '/mcp/some' })
    await (await begin(mcpHost.url)).request('tools/call', call)
    const events = await bus.next(6)
    expect(events.map(({ type }) => type)).to.deep.equal([1, 2, 3].flatMap(() => ['mcp_tool_called', 'mcp_tool_completed']))
    expect(events.map(({ data }) => data.server)).to.deep.equal(['mcp', 'mcp', 'mcp/some', 'mcp/some', 'mcp', 'mcp'])
    for (const [at, { data }] of events.entries()) {
      expect(data).to.include({ source: 'mcp', tool_name: 'echo', direction: 'inbound' })
      expect(data.duration).to.satisfy((seconds: number) => (at % 2 === 0 ? seconds === 0 : seconds > 0 && seconds < 10))
      expect(data.call_id).to.equal(events[at - (at % 2)]!.data.call_id)
    }
    expect(JSON.stringify(events)).to.not.contain(SECRET)
  })

  it('hears of calls that fail by the class of what went wrong, and not in the words of the tool', async () => {
    const fails = toolOf(async () => {
      throw new Error(SECRET)
    })
    const says = toolOf(async () => ({ content: [{ type: 'text', text: SECRET }], isError: true }))
    const hangs = toolOf(() => new Promise(() => {}), { timeoutMs: 20 })
    await using mcpHost = await startMcpHost({ tools: { echo, fails, says, hangs } })
    await using bus = reading(mcpHost)
    for (const [name, text] of [
      ['fails', 'x'],
      ['says', 'x'],
      ['hangs', 'x'],
      ['echo', 7],
    ] as const)
      await asked(mcpHost.url, 'tools/call', { name, arguments: { text } })
    const ends = (await bus.next(8)).filter(({ type }) => type === 'mcp_tool_error')
    expect(ends.map(({ data }) => [data.tool_name, data.error_class, data.error])).to.deep.equal([
      ['fails', 'tool_error', 'the tool failed'],
      ['says', 'tool_error', 'the tool reported a failure'],
      ['hangs', 'timeout', 'the call timed out'],
      ['echo', 'tool_error', 'the arguments do not match the schema'],
    ])
  })

  it('hears that a call was cancelled', async () => {
    const begun = Promise.withResolvers<void>()
    const endless = toolOf(async (_args, { signal }) => {
      begun.resolve()
      await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
      throw signal.reason
    })
    await using mcpHost = await startMcpHost({ tools: { endless } })
    await using bus = reading(mcpHost)
    const session = await begin(mcpHost.url)
    const answer = session.request('tools/call', { name: 'endless', arguments: {} }, 7)
    await begun.promise
    await session.send({ method: 'notifications/cancelled', params: { requestId: 7 } })
    await answer
    const [, end] = await bus.next(2)
    expect(end).to.deep.include({ type: 'mcp_tool_error' })
    expect(end!.data.error_class).to.equal('cancelled')
  })
})
