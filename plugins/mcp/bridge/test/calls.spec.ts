import { MetricSources, Tools, type ToolStep } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { bridged, failing, heard, names, Sea } from './support/sea.ts'

describe('calls over the bridge', () => {
  it('reports each call on the bus: called, and exactly one end', async () => {
    const sea = new Sea()
    await using host = await bridged(sea)
    await names(host, 'sea__fish')
    const bus = await heard(host)
    await host.slot(Tools).get('sea__fish')!.call({ kind: 'secret-argument' }, testContext())
    expect(await bus.types(2)).to.deep.equal(['mcp_tool_called', 'mcp_tool_completed'])
    const [called, completed] = bus.all.map(({ data }) => data)
    expect(called).to.include({ source: 'mcp', tool_name: 'sea__fish', server: 'sea', direction: 'outbound', duration: 0 })
    expect(completed).to.include({ source: 'mcp', tool_name: 'sea__fish', call_id: called!.call_id })
    expect(completed!.duration).to.be.a('number').above(0)
    expect(JSON.stringify(bus.all)).to.not.match(/secret-argument|cod/)
    await bus.end()
  })

  it('passes the deadline of the caller to the call, and sets none without it', async () => {
    const sea = new Sea()
    await using host = await bridged(sea)
    await names(host, 'sea__fish')
    const fish = host.slot(Tools).get('sea__fish')!
    await fish.call({}, testContext())
    await fish.call({}, { ...testContext(), deadline: Date.now() + 90_000 })
    await fish.call({}, { ...testContext(), deadline: Date.now() - 1 })
    const [unsaid, long, over] = sea.times
    expect([unsaid, over]).to.deep.equal([undefined, 1])
    expect(long).to.be.within(60_000, 90_000)
  })

  for (const [title, steps, outcome] of [
    [
      'a tool that reports a failure',
      () => [{ type: 'result', result: { content: [], isError: true } }] as ToolStep[],
      'tool_error',
    ],
    ['a server that is down', () => failing('connection_refused'), 'connection_refused'],
    ['an upstream time-out', () => failing('timeout'), 'timeout'],
    ['a call without a result', () => [], 'protocol_error'],
  ] as const)
    it(`ends the call of ${title} as an error of the class ${outcome}`, async () => {
      const sea = new Sea()
      sea.steps = steps
      const lines: string[] = []
      await using host = await bridged(sea, lines)
      await names(host, 'sea__fish')
      const bus = await heard(host)
      await host
        .slot(Tools)
        .get('sea__fish')!
        .call({}, testContext())
        .catch(() => {})
      expect(await bus.types(2)).to.deep.equal(['mcp_tool_called', 'mcp_tool_error'])
      expect(bus.all[1]!.data.error_class).to.equal(outcome)
      expect(lines.join('')).to.include(`"outcome":"${outcome}"`)
      const families = await host.slot(MetricSources).get('mcp-bridge')!.read(testContext())
      expect(families[0]!.values).to.deep.equal([{ labels: { server: 'sea', tool: 'sea__fish', outcome }, value: 1 }])
      await bus.end()
    })

  it('aborts the far call of a caller that leaves, which ends as cancelled', async () => {
    const sea = new Sea()
    const aborted = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    sea.steps = async function* (signal) {
      yield* []
      signal.addEventListener('abort', () => aborted.resolve(), { once: true })
      begun.resolve()
      await aborted.promise
      signal.throwIfAborted()
    }
    await using host = await bridged(sea)
    await names(host, 'sea__fish')
    const bus = await heard(host)
    const leaving = new AbortController()
    const call = host
      .slot(Tools)
      .get('sea__fish')!
      .call({}, testContext({ signal: leaving.signal }))
      .catch((error: Error) => error)
    await begun.promise
    leaving.abort()
    expect(await call).to.be.instanceOf(Error)
    expect(await bus.types(2)).to.deep.equal(['mcp_tool_called', 'mcp_tool_error'])
    expect(bus.all[1]!.data.error_class).to.equal('cancelled')
    await bus.end()
  })
})
