// Not a unit test: it starts tool servers.
import { Events } from '@svc/core'
import { Checks, type McpTool, MetricSources } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { type ClientHost, hostile, openClientHost } from './support/client-host.ts'

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => 'nothing was refused',
    (error: { code: string; message: string; hint?: string }) => `${error.code} ${error.message} ${error.hint}`
  )

const toolOf = async (clientHost: ClientHost, server: string, name: string): Promise<McpTool> =>
  (await clientHost.clients.tools(server, testContext())).find(tool => tool.name === name)!

/** The values of a metric, by its labels. */
async function metrics(clientHost: ClientHost, name: string): Promise<Record<string, number>> {
  const families = await clientHost.host.slot(MetricSources).get('mcp-client')!.read(testContext())
  const values = families.find(family => family.name === name)!.values
  return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels).join(' '), value]))
}

describe('the tool servers of a host', () => {
  it('connect on demand and report their state', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile(), effects: ['read'], timeout: 2 }])
    const before = await clientHost.info('one')
    expect(before).to.deep.include({ state: 'disconnected', tools: [], effects: ['read'], callLimitMs: 20_000 })
    expect((await clientHost.clients.tools('one', testContext())).map(tool => tool.name)).to.include.members(['echo', 'fail'])
    const info = await clientHost.info('one')
    expect(info).to.deep.include({ state: 'connected', protocolVersion: '2025-11-25' })
    expect(info.tools).to.include.members(['echo', 'fail'])
    expect(await clientHost.say('one', 'echo', { text: 'hello' })).to.equal('hello')
  })

  it('are refused by an unknown name, with the nearest one', async () => {
    await using clientHost = await openClientHost([{ name: 'files', ...hostile() }])
    expect(await refusal(clientHost.clients.tools('flies', testContext())))
      .to.include('MCP_SERVER_UNKNOWN')
      .and.include('"files"?')
  })

  it('yield the progress of a tool, then its result', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile() }])
    const steps = await clientHost.steps('one', 'progress', { times: 3 })
    expect(steps.map(step => (step.type === 'progress' ? step.message : step.type))).to.deep.equal([
      'step 1',
      'step 2',
      'step 3',
      'result',
    ])
    const [failed] = await clientHost.steps('one', 'fail')
    expect(failed).to.deep.include({ type: 'result' }).and.to.have.nested.property('result.isError', true)
  })

  it('ask whom they are called for, and go on with the answer', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile() }])
    const ask = (more: object) =>
      clientHost.clients.call('one', 'ask', {}, { dialog: { can: ['elicitation/create'], ...more } }, testContext())
    const [asked] = await Array.fromAsync(ask({}))
    if (asked?.type !== 'input') return expect.fail(`it did not ask, but ${asked?.type}`)
    const [key = ''] = Object.keys(asked.requests)
    const answers = { [key]: { action: 'accept', content: { name: 'Ada' } } }
    const last = (await Array.fromAsync(ask({ answers, ...(asked.state === undefined ? {} : { state: asked.state }) }))).at(-1)
    expect(JSON.stringify(last)).to.include('Ada')
  })

  it('lose a call that takes too long, or that is cancelled', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile(), timeout: 60 }])
    expect(await clientHost.say('one', 'echo', { text: 'a' })).to.equal('a')
    expect(await clientHost.say('one', 'never', {}, { timeoutMs: 50 })).to.equal('MCP_CALL_FAILED timeout')
    const ending = new AbortController()
    const call = clientHost.say('one', 'never', {}, { signal: ending.signal })
    ending.abort()
    expect(await call).to.match(/cancelled|undefined/)
    expect(await clientHost.say('one', 'echo', { text: 'b' })).to.equal('b')
  })

  it('cost their own calls only, where one dies or cannot be started', async () => {
    await using clientHost = await openClientHost([
      { name: 'mortal', ...hostile() },
      { name: 'missing', command: '/nowhere/at/all', retry_attempts: 0 },
      { name: 'good', ...hostile() },
    ])
    const said = [
      clientHost.say('mortal', 'die'),
      clientHost.say('missing', 'echo'),
      clientHost.say('good', 'echo', { text: 'fine' }),
    ]
    expect(await Promise.all(said)).to.deep.equal([
      'MCP_CALL_FAILED connection_refused',
      'MCP_CALL_FAILED connection_refused',
      'fine',
    ])
    expect(await clientHost.say('mortal', 'echo', { text: 'again' })).to.equal('again')
    expect((await clientHost.info('missing')).lastError).to.deep.equal({
      class: 'connection_refused',
      message: 'its command could not be started: there is no such program, or no such working directory',
    })
    const check = await clientHost.host.slot(Checks).get('mcp')!.probe(testContext())
    expect(check).to.deep.include({ status: 'degraded', reason: 'MCP servers: missing is failed (connection_refused)' })
    expect(await metrics(clientHost, 'svc_mcp_client_calls_total')).to.deep.equal({ mortal: 2, missing: 1, good: 1 })
    expect(await metrics(clientHost, 'svc_mcp_client_errors_total')).to.deep.equal({
      'mortal connection_refused': 1,
      'missing connection_refused': 1,
    })
    expect(await metrics(clientHost, 'svc_mcp_client_connections_total')).to.deep.equal({ mortal: 2, missing: 0, good: 1 })
    expect(await metrics(clientHost, 'svc_mcp_client_state')).to.include({ 'good connected': 1, 'missing failed': 1 })
  })

  it('have the tools that the configuration leaves in', async () => {
    await using clientHost = await openClientHost([
      { name: 'few', ...hostile(), allow: ['e*', 'sleep'], deny: ['env'] },
      { name: 'named', ...hostile(), tools: ['echo', 'sleep', 'nothing'] },
    ])
    await clientHost.clients.tools('few', testContext())
    await clientHost.clients.tools('named', testContext())
    expect((await clientHost.info('few')).tools).to.deep.equal(['echo', 'sleep'])
    expect((await clientHost.info('named')).tools).to.deep.equal(['echo', 'sleep'])
    expect(await toolOf(clientHost, 'few', 'env')).to.include({ status: 'hidden' })
    expect(await clientHost.say('few', 'env')).to.equal('MCP_CALL_FAILED tool_not_found')
    expect(await clientHost.say('few', 'no_such_tool')).to.equal('MCP_CALL_FAILED tool_not_found')
  })

  it('have words without hidden characters, which are shown', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile({ hidden: true }) }])
    const tool = await toolOf(clientHost, 'one', 'echo')
    expect(tool.description).to.equal('Does echo.')
    expect(tool.stripped?.join()).to.include('U+200B × 1').and.include('U+E0041 × 1')
  })

  it('get a tool that changes out of use, until somebody approves it', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile({ fickle: true }) }])
    expect(await clientHost.say('one', 'echo', { text: 'first' })).to.equal('first')
    const info = await clientHost.until('one', ({ tools, state }) => !tools.includes('echo') && state === 'degraded')
    expect(info.tools, 'only that tool').to.include('sleep')
    expect(info.lastError?.message).to.include('echo').and.include('svc mcp approve one')
    expect(info.changed).to.deep.equal(['echo'])
    expect(await clientHost.host.slot(Checks).get('mcp')!.probe(testContext()), 'health tells the same').to.deep.include({
      status: 'degraded',
      reason: 'MCP servers: one is degraded (tools that changed: echo; svc mcp approve one)',
    })
    const tool = await toolOf(clientHost, 'one', 'echo')
    expect(tool).to.include({ status: 'changed' })
    expect(tool.difference).to.deep.equal(['description: "Does echo. For the 1. time." → "Does echo. For the 2. time."'])
    expect(await clientHost.say('one', 'echo', { text: 'no' })).to.equal('MCP_CALL_FAILED tool_not_found')
    expect(await refusal(clientHost.clients.approve('one', ['ekko'], testContext()))).to.include('MCP_TOOL_UNKNOWN')
    await clientHost.clients.approve('one', ['echo'], testContext())
    await clientHost.until('one', ({ state, changed }) => state === 'connected' && changed === undefined)
    expect(await clientHost.host.slot(Checks).get('mcp')!.probe(testContext())).to.include({ status: 'healthy' })
    expect(await clientHost.say('one', 'echo', { text: 'now' })).to.equal('now')
  })

  it('are ended where they are switched off, and come back where they are switched on', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile() }])
    const { pid } = JSON.parse(await clientHost.say('one', 'pid')) as { pid: number }
    await clientHost.clients.setEnabled('one', false, testContext())
    expect(await clientHost.info('one')).to.deep.include({ state: 'disabled', tools: [] })
    expect(await clientHost.say('one', 'echo')).to.equal('MCP_CALL_FAILED connection_refused')
    expect(
      await refusal(clientHost.clients.call('one', 'echo', {}, {}, testContext())[Symbol.asyncIterator]().next())
    ).to.include('svc mcp enable one')
    await clientHost.clients.setEnabled('one', true, testContext())
    const again = JSON.parse(await clientHost.say('one', 'pid')) as { pid: number }
    expect(again.pid).to.not.equal(pid)
    expect(() => process.kill(pid, 0)).to.throw()
  })

  it('publish events when they connect and disconnect, with the seconds that each took', async () => {
    const begun = performance.now()
    const secondsSince = (start: number) => (performance.now() - start) / 1000
    await using clientHost = await openClientHost([{ name: 'one', ...hostile() }])
    const reading = clientHost.host
      .service(Events)
      .subscribe({ types: ['mcp_server_connected', 'mcp_server_disconnected'] }, testContext())
    const events = reading[Symbol.asyncIterator]()
    const first = events.next()
    await clientHost.say('one', 'echo')
    const connected = (await first).value as { data: { readonly duration: number } }
    expect(connected.data.duration).to.be.within(0.001, secondsSince(begun))
    const open = performance.now()
    await clientHost.say('one', 'sleep', { ms: 100 })
    const before = secondsSince(open)
    await clientHost.say('one', 'die')
    expect(connected.data).to.include({ source: 'mcp', tool_name: null, server: 'one', protocol_version: '2025-11-25' })
    const lost = (await events.next()).value as { type: string; data: { readonly duration: number } }
    expect(lost.data.duration).to.be.within(before, secondsSince(begun))
    expect(lost.type).to.equal('mcp_server_disconnected')
    expect(lost.data).to.include({ source: 'mcp', server: 'one' }).and.to.have.property('reason').that.is.a('string')
    await events.return?.()
  })

  it('have a short last error, however many of their tools have changed', async () => {
    await using clientHost = await openClientHost([{ name: 'one', ...hostile({ fickle: 'all' }) }])
    await clientHost.say('one', 'echo')
    const { changed, lastError } = await clientHost.until('one', ({ state }) => state === 'degraded')
    expect(changed).to.have.length(14)
    expect(lastError?.message).to.equal('tools that changed: echo, sleep, big, fail, never and 9 more; svc mcp approve one')
  })

  it('see of the variables of this process only those that are named', async () => {
    process.env.SVC_TEST_SECRET = 'the-secret'
    try {
      await using clientHost = await openClientHost([
        { name: 'bare', ...hostile() },
        { name: 'given', ...hostile(), env: { TOKEN: 'x-${SVC_TEST_SECRET}' } },
        { name: 'lacks', ...hostile(), env: { TOKEN: '${SVC_TEST_NOWHERE}' } },
        { name: 'keyless', url: 'http://127.0.0.1:9/mcp', api_key_env: 'SVC_TEST_NOWHERE' },
      ])
      expect(await clientHost.say('bare', 'env')).to.not.include('the-secret')
      expect(await clientHost.say('given', 'env')).to.include('"TOKEN":"x-the-secret"')
      expect(await clientHost.say('lacks', 'env')).to.equal('MCP_CALL_FAILED connection_refused')
      expect(await clientHost.say('keyless', 'env')).to.equal('MCP_CALL_FAILED authentication_failed')
      expect((await clientHost.info('keyless')).lastError?.message).to.include('SVC_TEST_NOWHERE')
    } finally {
      delete process.env.SVC_TEST_SECRET
    }
  })

  it('show no secret in their addresses and arguments', async () => {
    await using clientHost = await openClientHost([
      { name: 'http', url: 'https://docs.example/mcp?key=abc123' },
      {
        name: 'args',
        command: 'x',
        args: ['--api-key', 'abc123', '--token=abc123', '--header', 'Authorization: Bearer abc123', '/data'],
      },
    ])
    const all = await clientHost.clients.list(testContext())
    expect(JSON.stringify(all)).to.not.include('abc123')
    expect(all[0]?.url).to.equal('https://docs.example/mcp')
    expect(all[1]?.command).to.deep.equal(['x', '--api-key', '…', '--token=…', '--header', 'Authorization: …', '/data'])
  })

  it('never run open where the sandbox that they ask for is not there', async () => {
    await using clientHost = await openClientHost([{ name: 'boxed', ...hostile(), sandbox: true }])
    expect(await clientHost.say('boxed', 'pid')).to.equal('MCP_CALL_FAILED connection_refused')
    expect((await clientHost.info('boxed')).lastError?.message).to.include('@svc/plugin-sandbox-process')
    expect(await clientHost.info('boxed')).to.deep.include({ callLimitMs: 30_000 })
  })

  it('cost nothing where there are none', async () => {
    await using clientHost = await openClientHost([])
    expect(await clientHost.clients.list(testContext())).to.deep.equal([])
    const report = clientHost.host.report().plugins.find(plugin => plugin.name === '@svc/plugin-mcp-client')
    expect(report?.added).to.deep.equal({})
    expect(await refusal(clientHost.clients.tools('one', testContext()))).to.include('svc mcp add')
  })
})
