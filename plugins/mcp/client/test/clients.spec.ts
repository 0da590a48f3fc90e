// Not a unit test: it starts tool servers.
import { Events } from '@svc/core'
import { Checks, type McpTool, MetricSources } from '@svc/core/contracts'
import { testUse } from '@svc/testing'
import { expect } from 'chai'
import { type House, hostile, openHouse } from './support/house.ts'

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => 'nothing was refused',
    (error: { code: string; message: string; hint?: string }) => `${error.code} ${error.message} ${error.hint}`
  )

const toolOf = async (house: House, server: string, name: string): Promise<McpTool> =>
  (await house.clients.tools(server, testUse())).find(tool => tool.name === name)!

/** The figures of a metric, by its labels. */
async function metrics(house: House, name: string): Promise<Record<string, number>> {
  const families = await house.host.slot(MetricSources).get('mcp-client')!.read(testUse())
  const values = families.find(one => one.name === name)!.values
  return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels).join(' '), value]))
}

describe('the tool servers of a host', () => {
  it('are connected when they are asked for, and tell how they stand', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile(), effects: ['read'], timeout: 2 }])
    const before = await house.info('one')
    expect(before).to.deep.include({ state: 'disconnected', tools: [], effects: ['read'], callLimitMs: 20_000 })
    expect((await house.clients.tools('one', testUse())).map(tool => tool.name)).to.include.members(['echo', 'fail'])
    const info = await house.info('one')
    expect(info).to.deep.include({ state: 'connected', protocolVersion: '2025-11-25' })
    expect(info.tools).to.include.members(['echo', 'fail'])
    expect(await house.say('one', 'echo', { text: 'hello' })).to.equal('hello')
  })

  it('are refused by the name that nobody has, with the nearest one', async () => {
    await using house = await openHouse([{ name: 'files', ...hostile() }])
    expect(await refusal(house.clients.tools('flies', testUse())))
      .to.include('MCP_SERVER_UNKNOWN')
      .and.include('"files"?')
  })

  it('yield what a tool tells while it works, then its result', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile() }])
    const steps = await house.steps('one', 'progress', { times: 3 })
    expect(steps.map(step => (step.type === 'progress' ? step.message : step.type))).to.deep.equal([
      'step 1',
      'step 2',
      'step 3',
      'result',
    ])
    const [failed] = await house.steps('one', 'fail')
    expect(failed).to.deep.include({ type: 'result' }).and.to.have.nested.property('result.isError', true)
  })

  it('ask whom they are called for, and go on with the answer', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile() }])
    const ask = (more: object) =>
      house.clients.call('one', 'ask', {}, { dialog: { can: ['elicitation/create'], ...more } }, testUse())
    const [asked] = await Array.fromAsync(ask({}))
    if (asked?.type !== 'input') return expect.fail(`it did not ask, but ${asked?.type}`)
    const [key = ''] = Object.keys(asked.requests)
    const answers = { [key]: { action: 'accept', content: { name: 'Ada' } } }
    const last = (await Array.fromAsync(ask({ answers, ...(asked.state === undefined ? {} : { state: asked.state }) }))).at(-1)
    expect(JSON.stringify(last)).to.include('Ada')
  })

  it('lose a call that takes too long, or that nobody wants any more', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile(), timeout: 60 }])
    expect(await house.say('one', 'echo', { text: 'a' })).to.equal('a')
    expect(await house.say('one', 'never', {}, { timeoutMs: 50 })).to.equal('MCP_CALL_FAILED timeout')
    const ending = new AbortController()
    const call = house.say('one', 'never', {}, { signal: ending.signal })
    ending.abort()
    expect(await call).to.match(/cancelled|undefined/)
    expect(await house.say('one', 'echo', { text: 'b' })).to.equal('b')
  })

  it('cost their own calls only, where one dies or cannot be started', async () => {
    await using house = await openHouse([
      { name: 'mortal', ...hostile() },
      { name: 'missing', command: '/nowhere/at/all', retry_attempts: 0 },
      { name: 'good', ...hostile() },
    ])
    const said = [house.say('mortal', 'die'), house.say('missing', 'echo'), house.say('good', 'echo', { text: 'fine' })]
    expect(await Promise.all(said)).to.deep.equal([
      'MCP_CALL_FAILED connection_refused',
      'MCP_CALL_FAILED connection_refused',
      'fine',
    ])
    expect(await house.say('mortal', 'echo', { text: 'again' })).to.equal('again')
    expect((await house.info('missing')).lastError).to.deep.equal({
      class: 'connection_refused',
      message: 'its command could not be started: there is no such program, or no such working directory',
    })
    const check = await house.host.slot(Checks).get('mcp')!.probe(testUse())
    expect(check).to.deep.include({ status: 'degraded', reason: 'MCP servers: missing is failed (connection_refused)' })
    expect(await metrics(house, 'svc_mcp_client_calls_total')).to.deep.equal({ mortal: 2, missing: 1, good: 1 })
    expect(await metrics(house, 'svc_mcp_client_errors_total')).to.deep.equal({
      'mortal connection_refused': 1,
      'missing connection_refused': 1,
    })
    expect(await metrics(house, 'svc_mcp_client_connections_total')).to.deep.equal({ mortal: 2, missing: 0, good: 1 })
    expect(await metrics(house, 'svc_mcp_client_state')).to.include({ 'good connected': 1, 'missing failed': 1 })
  })

  it('have the tools that the configuration leaves in', async () => {
    await using house = await openHouse([
      { name: 'few', ...hostile(), allow: ['e*', 'sleep'], deny: ['env'] },
      { name: 'named', ...hostile(), tools: ['echo', 'sleep', 'nothing'] },
    ])
    await house.clients.tools('few', testUse())
    await house.clients.tools('named', testUse())
    expect((await house.info('few')).tools).to.deep.equal(['echo', 'sleep'])
    expect((await house.info('named')).tools).to.deep.equal(['echo', 'sleep'])
    expect(await toolOf(house, 'few', 'env')).to.include({ standing: 'hidden' })
    expect(await house.say('few', 'env')).to.equal('MCP_CALL_FAILED tool_not_found')
    expect(await house.say('few', 'no_such_tool')).to.equal('MCP_CALL_FAILED tool_not_found')
  })

  it('have words without hidden characters, which are shown', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile({ hidden: true }) }])
    const tool = await toolOf(house, 'one', 'echo')
    expect(tool.description).to.equal('Does echo.')
    expect(tool.stripped?.join()).to.include('U+200B × 1').and.include('U+E0041 × 1')
  })

  it('get a tool that changes out of use, until somebody approves it', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile({ fickle: true }) }])
    expect(await house.say('one', 'echo', { text: 'first' })).to.equal('first')
    const info = await house.until('one', ({ tools, state }) => !tools.includes('echo') && state === 'degraded')
    expect(info.tools, 'only that tool').to.include('sleep')
    expect(info.lastError?.message).to.include('echo').and.include('svc mcp approve one')
    expect(info.changed).to.deep.equal(['echo'])
    expect(await house.host.slot(Checks).get('mcp')!.probe(testUse()), 'health tells the same').to.deep.include({
      status: 'degraded',
      reason: 'MCP servers: one is degraded (tools that changed: echo; svc mcp approve one)',
    })
    const tool = await toolOf(house, 'one', 'echo')
    expect(tool).to.include({ standing: 'changed' })
    expect(tool.difference).to.deep.equal(['description: "Does echo. For the 1. time." → "Does echo. For the 2. time."'])
    expect(await house.say('one', 'echo', { text: 'no' })).to.equal('MCP_CALL_FAILED tool_not_found')
    expect(await refusal(house.clients.approve('one', ['ekko'], testUse()))).to.include('MCP_TOOL_UNKNOWN')
    await house.clients.approve('one', ['echo'], testUse())
    await house.until('one', ({ state, changed }) => state === 'connected' && changed === undefined)
    expect(await house.host.slot(Checks).get('mcp')!.probe(testUse())).to.include({ status: 'healthy' })
    expect(await house.say('one', 'echo', { text: 'now' })).to.equal('now')
  })

  it('are ended where they are switched off, and come back where they are switched on', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile() }])
    const { pid } = JSON.parse(await house.say('one', 'pid')) as { pid: number }
    await house.clients.setEnabled('one', false, testUse())
    expect(await house.info('one')).to.deep.include({ state: 'disabled', tools: [] })
    expect(await house.say('one', 'echo')).to.equal('MCP_CALL_FAILED connection_refused')
    expect(await refusal(house.clients.call('one', 'echo', {}, {}, testUse())[Symbol.asyncIterator]().next())).to.include(
      'svc mcp enable one'
    )
    await house.clients.setEnabled('one', true, testUse())
    const again = JSON.parse(await house.say('one', 'pid')) as { pid: number }
    expect(again.pid).to.not.equal(pid)
    expect(() => process.kill(pid, 0)).to.throw()
  })

  it('tell the bus that they came and went', async () => {
    await using house = await openHouse([{ name: 'one', ...hostile() }])
    const reading = house.host
      .service(Events)
      .subscribe({ types: ['mcp_server_connected', 'mcp_server_disconnected'] }, testUse())
    const events = reading[Symbol.asyncIterator]()
    const first = events.next()
    await house.say('one', 'die')
    const connected = (await first).value as { data: object }
    expect(connected.data).to.include({ source: 'mcp', tool_name: null, server: 'one', protocol_version: '2025-11-25' })
    const lost = (await events.next()).value as { type: string; data: object }
    expect(lost.type).to.equal('mcp_server_disconnected')
    expect(lost.data).to.include({ source: 'mcp', server: 'one' }).and.to.have.property('reason').that.is.a('string')
    await events.return?.()
  })

  it('see of the variables of this process only those that are named', async () => {
    process.env.SVC_TEST_SECRET = 'the-secret'
    try {
      await using house = await openHouse([
        { name: 'bare', ...hostile() },
        { name: 'given', ...hostile(), env: { TOKEN: 'x-${SVC_TEST_SECRET}' } },
        { name: 'lacks', ...hostile(), env: { TOKEN: '${SVC_TEST_NOWHERE}' } },
        { name: 'keyless', url: 'http://127.0.0.1:9/mcp', api_key_env: 'SVC_TEST_NOWHERE' },
      ])
      expect(await house.say('bare', 'env')).to.not.include('the-secret')
      expect(await house.say('given', 'env')).to.include('"TOKEN":"x-the-secret"')
      expect(await house.say('lacks', 'env')).to.equal('MCP_CALL_FAILED connection_refused')
      expect(await house.say('keyless', 'env')).to.equal('MCP_CALL_FAILED authentication_failed')
      expect((await house.info('keyless')).lastError?.message).to.include('SVC_TEST_NOWHERE')
    } finally {
      delete process.env.SVC_TEST_SECRET
    }
  })

  it('show no secret in their addresses and arguments', async () => {
    await using house = await openHouse([
      { name: 'http', url: 'https://docs.example/mcp?key=abc123' },
      {
        name: 'args',
        command: 'x',
        args: ['--api-key', 'abc123', '--token=abc123', '--header', 'Authorization: Bearer abc123', '/data'],
      },
    ])
    const all = await house.clients.list(testUse())
    expect(JSON.stringify(all)).to.not.include('abc123')
    expect(all[0]?.url).to.equal('https://docs.example/mcp')
    expect(all[1]?.command).to.deep.equal(['x', '--api-key', '…', '--token=…', '--header', 'Authorization: …', '/data'])
  })

  it('never run open where the sandbox that they ask for is not there', async () => {
    await using house = await openHouse([{ name: 'boxed', ...hostile(), sandbox: true }])
    expect(await house.say('boxed', 'pid')).to.equal('MCP_CALL_FAILED connection_refused')
    expect((await house.info('boxed')).lastError?.message).to.include('@svc/plugin-sandbox-process')
    expect(await house.info('boxed')).to.deep.include({ callLimitMs: 30_000 })
  })

  it('cost nothing where there are none', async () => {
    await using house = await openHouse([])
    expect(await house.clients.list(testUse())).to.deep.equal([])
    const report = house.host.report().plugins.find(one => one.name === '@svc/plugin-mcp-client')
    expect(report?.added).to.deep.equal({})
    expect(await refusal(house.clients.tools('one', testUse()))).to.include('svc mcp add')
  })
})
