import { type McpTool, Tools, type ToolStep } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { bridged, FISH, INFO, names, OWN, Sea } from './support/sea.ts'

describe('the bridge', () => {
  it("makes tools of what servers offer, with their text and schemas and the operator's effects", async () => {
    await using host = await bridged(new Sea())
    await names(host, 'sea__fish')
    const { description, category, effects, parameters, result, timeoutMs } = host.slot(Tools).get('sea__fish')!
    expect({ description, category, effects, timeoutMs }).to.deep.equal({
      description: 'Catches a fish',
      category: 'mcp',
      effects: ['read'],
      timeoutMs: 5_000,
    })
    expect([parameters, result]).to.deep.equal([FISH.inputSchema, FISH.outputSchema])
  })

  it('passes arguments and results through as they are', async () => {
    const sea = new Sea()
    const content = [
      { type: 'text', text: 'a cod' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource_link', uri: 'sea://1', name: 'one', _meta: { depth: 3 } },
      { type: 'newer', than: 'this' },
    ]
    sea.steps = () => [{ type: 'result', result: { content: content as never, structured: { fish: ['cod'] } } }]
    await using host = await bridged(sea)
    await names(host, 'sea__fish')
    const answer = await host
      .slot(Tools)
      .get('sea__fish')!
      .call({ kind: 'cod', more: [1] }, testContext())
    expect(answer).to.deep.equal({ content, structured: { fish: ['cod'] } })
    expect(sea.asked).to.deep.equal([['sea', 'fish', { kind: 'cod', more: [1] }, { can: [] }]])
  })

  it('follows what comes, changes and goes, and leaves out what may not be used', async () => {
    const sea = new Sea()
    await using host = await bridged(sea)
    await names(host, 'sea__fish')
    const before = host.slot(Tools).get('sea__fish')
    sea.tools.sea = [FISH, { ...FISH, name: 'sail' }, { ...FISH, name: 'dive', status: 'changed' }, { ...FISH, name: 'sink' }]
    sea.servers = [{ ...INFO, tools: ['fish', 'sail', 'dive'] }]
    await sea.notify()
    await names(host, 'sea__fish', 'sea__sail')
    expect(host.slot(Tools).get('sea__fish')).to.equal(before)
    sea.servers = [{ ...INFO, tools: ['sail'], effects: ['execute'] }]
    await sea.notify()
    await names(host, 'sea__sail')
    while (host.slot(Tools).get('sea__sail')?.effects[0] !== 'execute') await wait(5)
    sea.servers = []
    await sea.notify()
    await names(host)
  })

  it('never overwrites a name that is taken, and says so', async () => {
    const lines: string[] = []
    const mine = { ...OWN, description: 'Mine, and it stays so' }
    await using host = await bridged(new Sea(), lines, item(Tools, 'sea__fish', mine))
    while (!lines.join('').includes('MCP_NAME_CLASH')) await wait(5)
    expect(host.slot(Tools).get('sea__fish')!.description).to.equal('Mine, and it stays so')
  })

  it('passes progress and questions to callers that take steps, and rejects questions for other callers', async () => {
    const sea = new Sea()
    const ask: ToolStep = {
      type: 'input',
      requests: { sure: { method: 'elicitation/create', params: { message: 'Sure?' } } },
      state: 's',
    }
    sea.steps = () => [{ type: 'progress', progress: 1, total: 2 }, ask]
    await using host = await bridged(sea)
    await names(host, 'sea__fish')
    const tool = host.slot(Tools).get('sea__fish')!
    const dialog = { can: ['elicitation/create'], answers: { sure: { action: 'accept' } }, state: 's' } as const
    expect(await Array.fromAsync(tool.run!({}, dialog, testContext()))).to.deep.equal([
      { type: 'progress', progress: 1, total: 2 },
      { ...ask, requests: { sure: { method: 'elicitation/create', params: { message: 'The tool server "sea" asks: Sure?' } } } },
    ])
    expect(sea.asked).to.deep.equal([['sea', 'fish', {}, dialog]])
    const refused = await tool.call({}, testContext()).catch((error: Error & { code: string }) => error.code)
    expect(refused).to.equal('TOOL_NEEDS_ANSWER')
  })

  it('waits for no server at its start, and is not held up by one that never answers', async () => {
    const sea = new Sea()
    sea.servers = [{ ...INFO, name: 'mud', tools: ['stuck'] }, INFO]
    const stuck = Promise.withResolvers<McpTool[]>()
    Object.defineProperty(sea.tools, 'mud', { get: () => stuck.promise })
    await using host = await bridged(sea)
    await names(host, 'sea__fish')
    stuck.resolve([{ ...FISH, name: 'stuck' }])
    await names(host, 'sea__fish', 'mud__stuck')
  })
})
