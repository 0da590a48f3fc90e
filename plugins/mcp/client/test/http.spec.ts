import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { createMcpRegistry, createMcpSandbox, bridgeTool } from '@svc/plugin-mcp-client/client'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { openHostile } from '../../../../test/support/hostile.ts'
import { forever, remote, steps } from './support/client.ts'
import { open, toolServer } from './support/servers.ts'

const ONCE = { retryAttempts: 0 } as const

describe('a key', () => {
  it('goes with each request as bearer, or in a header of its own', async () => {
    await using server = await toolServer(() => true)
    await using bearer = remote(server.url, { apiKey: 'k-1' })
    await bearer.callTool('now', {})
    expect(new Set(server.seen.map(item => item.headers.authorization))).to.deep.equal(new Set(['Bearer k-1']))
    server.seen.length = 0
    await using own = remote(server.url, { apiKey: 'k-2', apiKeyHeader: 'x-api-key' })
    await own.callTool('now', {})
    expect(new Set(server.seen.map(item => item.headers['x-api-key']))).to.deep.equal(new Set(['k-2']))
    expect(server.seen[0]?.headers.authorization).to.equal(undefined)
  })

  it('that is wrong is authentication_failed, and is not said', async () => {
    await using server = await toolServer(header => header === 'Bearer right')
    await using client = remote(server.url, { apiKey: 'wrong-secret', ...ONCE })
    const { error } = await client.callTool('now', {})
    expect(error?.class).to.equal('authentication_failed')
    expect(JSON.stringify([error, client.status()])).to.not.include('wrong-secret')
    expect(client.status().state).to.equal('failed')
  })
})

describe('a server that refuses one call for its load', () => {
  it('goes on with the others', async () => {
    const [began, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let calls = 0
    await using server = await toolServer(
      () => true,
      async () => {
        if (++calls > 1) return 503
        began.resolve()
        await held.promise
        return 200
      }
    )
    await using client = remote(server.url)
    await client.connect()
    const first = client.callTool('now', {})
    await began.promise
    const { error } = await client.callTool('now', {})
    expect(error).to.deep.include({ class: 'connection_refused' })
    expect(error?.message).to.include('HTTP 503')
    held.resolve()
    expect((await first).error).to.equal(null)
    expect(client.status().state).to.equal('connected')
  })
})

describe('client credentials', () => {
  interface Asked {
    readonly basic: string | undefined
    readonly form: Record<string, string>
  }
  /** Gives tokens t1, t2, …; in the body only where `inBody`. */
  async function tokenServer(inBody: boolean, expiresIn = 3_600) {
    const asked: Asked[] = []
    let given = 0
    const server = await open(async request => {
      const form = Object.fromEntries(new URLSearchParams(await text(request)))
      asked.push({ basic: request.headers.authorization, form })
      if (inBody !== (form['client_secret'] !== undefined)) return { status: 401, body: { error: 'invalid_client' } }
      return { body: { access_token: `t${++given}`, token_type: 'bearer', expires_in: expiresIn } }
    })
    return { ...server, asked, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  }
  const credentials = { clientId: 'me:1', clientSecret: 's é', scope: 'tools' }

  for (const inBody of [false, true])
    it(`bring a token, with the client in ${inBody ? 'the body where the server wants it there' : 'a header'}, and one is enough`, async () => {
      await using tokens = await tokenServer(inBody)
      await using server = await toolServer(header => header === 'Bearer t1')
      await using client = remote(server.url, { oauth: { ...credentials, tokenUrl: tokens.url } })
      const answers = await Promise.all([1, 2, 3].map(() => client.callTool('now', {})))
      expect(answers.map(answer => answer.error)).to.deep.equal([null, null, null])
      const basic = `Basic ${Buffer.from('me%3A1:s+%C3%A9').toString('base64')}`
      const form = { grant_type: 'client_credentials', resource: server.url, scope: 'tools' }
      const inForm = { basic: undefined, form: { ...form, client_id: 'me:1', client_secret: 's é' } }
      expect(tokens.asked).to.deep.equal(inBody ? [{ basic, form }, inForm] : [{ basic, form }])
    })

  it('are requested again after a rejected token, once for all requests', async () => {
    await using tokens = await tokenServer(false)
    let good = 't1'
    await using server = await toolServer(header => header === `Bearer ${good}`)
    await using client = remote(server.url, { oauth: { ...credentials, tokenUrl: tokens.url }, ...ONCE })
    expect((await client.callTool('now', {})).error).to.equal(null)
    good = 't2'
    const answers = await Promise.all([1, 2, 3, 4].map(() => client.callTool('now', {})))
    expect(answers.map(answer => answer.error)).to.deep.equal([null, null, null, null])
    expect(tokens.asked.length).to.be.at.most(3)
    good = 'none'
    expect((await client.callTool('now', {})).error?.class).to.equal('authentication_failed')
  })

  it('are requested again a minute before the token expires', async () => {
    await using tokens = await tokenServer(false, 60.2)
    await using server = await toolServer(header => header?.startsWith('Bearer t') === true)
    await using client = remote(server.url, { oauth: { ...credentials, tokenUrl: tokens.url } })
    await client.callTool('now', {})
    await client.callTool('now', {})
    expect(tokens.asked).to.have.length(1)
    await pause(250)
    await client.callTool('now', {})
    expect(tokens.asked).to.have.length(2)
  })

  it('that are refused are authentication_failed, without the secret', async () => {
    await using tokens = await open(() => ({ status: 400, body: { error: 'invalid_scope', error_description: 'sé' } }))
    await using server = await toolServer(() => true)
    await using client = remote(server.url, { oauth: { ...credentials, tokenUrl: tokens.url }, ...ONCE })
    const { error } = await client.callTool('now', {})
    expect(error).to.deep.equal({ class: 'authentication_failed', message: 'the token server refuses: invalid_scope' })
  })

  for (const [what, answer, message] of [
    ['an error page', { status: 502, body: '<html>sé' }, 'the token server answers HTTP 502'],
    ['no token', { body: { token_type: 'bearer' } }, 'the token server answers HTTP 200 without a token'],
    ['no JSON', { body: 'sé' }, 'the token server answers HTTP 200 without a token'],
    [
      'a token of another kind',
      { body: { access_token: 'a', token_type: 'mac' } },
      'the token server returns a token that is not of type bearer',
    ],
  ] as const)
    it(`that are answered with ${what} are authentication_failed, without what was answered`, async () => {
      await using tokens = await open(() => answer)
      await using server = await toolServer(() => true)
      await using client = remote(server.url, { oauth: { ...credentials, tokenUrl: tokens.url }, ...ONCE })
      expect((await client.callTool('now', {})).error).to.deep.equal({ class: 'authentication_failed', message })
    })

  it('are sent over https, or on the loopback, only', async () => {
    await using server = await toolServer(() => true)
    await using client = remote(server.url, { oauth: { ...credentials, tokenUrl: 'http://login.example/token' }, ...ONCE })
    const { error } = await client.callTool('now', {})
    expect(error?.class).to.equal('authentication_failed')
    expect(error?.message).to.contain('http://login.example/token')
  })
})

describe('a server that requires a login', () => {
  it('is needs_auth until a user has logged in, and gets no request meanwhile', async () => {
    await using server = await open(() => ({ status: 401, body: {} }))
    await using client = remote(server.url, { oauth: { clientId: 'me' }, ...ONCE })
    expect((await client.callTool('now', {})).error?.class).to.equal('authentication_failed')
    expect(client.status().state).to.equal('needs_auth')
    const asked = server.seen.length
    expect((await client.callTool('now', {})).error?.message).to.equal('a user has to log in')
    expect(server.seen.length).to.equal(asked)
  })

  it('is sent to no address but its own where the network is off', async () => {
    await using canary = await open(() => ({ body: {} }))
    const challenge = `Bearer resource_metadata="${canary.url}/.well-known/oauth-protected-resource"`
    await using server = await open(() => ({ status: 401, headers: { 'www-authenticate': challenge }, body: {} }))
    await using client = remote(server.url, { oauth: { clientId: 'me' }, networkAccess: false, ...ONCE })
    expect((await client.callTool('now', {})).error).to.not.equal(null)
    expect(canary.seen).to.deep.equal([])
  })
})

describe('the library', () => {
  it('keeps servers by name', async () => {
    await using server = await toolServer(() => true)
    await using registry = createMcpRegistry()
    registry.register('clock', server.url, ['now'])
    expect(registry.listAll()).to.deep.equal([{ name: 'clock', url: server.url, tools: ['now'] }])
    expect(registry.getClient('clock')).to.equal(registry.getClient('clock'))
    expect((await registry.getClient('clock').callTool('now', {})).content).to.deep.equal([{ type: 'text', text: 'noon' }])
    expect(() => registry.register('clock', server.url))
      .to.throw()
      .with.property('code', 'NAME_TAKEN')
    await registry.remove('clock')
    registry.register('clock', server.url)
    expect(registry.listAll()).to.deep.equal([{ name: 'clock', url: server.url }])
    await registry.remove('clock')
    expect(() => registry.getClient('clock'))
      .to.throw()
      .with.property('code', 'MCP_SERVER_UNKNOWN')
  })

  it('limits a registered server to the named tools: they alone are listed, described and called', async () => {
    await using server = await openHostile()
    await using registry = createMcpRegistry()
    registry.register('some', server.url, ['echo'])
    registry.register('none', server.url, [])
    const some = registry.getClient('some')
    expect((await some.listTools()).tools.map(({ name }) => name)).to.deep.equal(['echo'])
    expect((await some.getToolSchema('echo')).name).to.equal('echo')
    expect((await some.callTool('echo', { text: 'x' })).error).to.equal(null)
    const refused = { class: 'tool_not_found', message: 'it has no tool "pid"' }
    const error = await some.getToolSchema('pid').catch((item: unknown) => item)
    expect(error)
      .to.have.property('details')
      .that.includes({ ...refused, delivered: 'no' })
    expect((await some.callTool('pid', {})).error).to.deep.equal(refused)
    expect(await steps(some.call('pid', {}, {}, forever())).catch((item: unknown) => item))
      .to.have.property('details')
      .that.includes(refused)
    const none = registry.getClient('none')
    expect((await none.listTools()).tools).to.deep.equal([])
    expect((await none.callTool('echo', { text: 'x' })).error?.class).to.equal('tool_not_found')
  })

  it('honours the time limit and the attempts of a client', async () => {
    await using server = await openHostile()
    await using quick = remote(server.url, { timeout: 0.2 })
    const begun = performance.now()
    expect((await quick.callTool('never', {})).error?.message).to.equal('it did not answer within 0.2 s')
    expect(performance.now() - begun).to.be.below(5_000)
    await using once = remote('http://127.0.0.1:1/mcp', { retryAttempts: 2 })
    await once.connect().catch(() => {})
    expect(once.status()).to.deep.include({ state: 'failed', attempts: 3 })
  })

  it('makes one tool of a server one of ours', async () => {
    await using server = await toolServer(() => true)
    await using bridged = await bridgeTool({ serverUrl: server.url, toolName: 'now', name: 'clock' })
    expect(bridged.name).to.equal('clock__now')
    expect(bridged.tool).to.deep.include({
      description: 'The time.',
      category: 'mcp',
      effects: ['execute', 'network'],
      parameters: { type: 'object' },
    })
    expect(await bridged.tool.call({}, testContext())).to.deep.equal({ content: [{ type: 'text', text: 'noon' }] })
    const none = await bridgeTool({ serverUrl: server.url, toolName: 'then' }).catch((error: unknown) => error)
    expect(none).to.have.nested.property('details.class', 'tool_not_found')
  })

  it('calls an untrusted server within limits', async () => {
    await using server = await openHostile()
    const sandbox = createMcpSandbox({ timeout: 5, memoryLimit: '1M' })
    expect((await sandbox.execute('echo', { text: 'x' }, server.url)).content).to.deep.equal([{ type: 'text', text: 'x' }])
    expect((await sandbox.execute('big', { bytes: 2_000_000 }, server.url)).error?.message).to.include('1048576 bytes')
    expect((await createMcpSandbox({ timeout: 0.2 }).execute('never', {}, server.url)).error?.class).to.equal('timeout')
    for (const config of [
      { filesystemReadonly: false },
      { allowedPaths: ['/tmp'] },
      { memoryLimit: 'much' },
      { memoryLimit: '0' },
    ])
      expect(() => createMcpSandbox(config))
        .to.throw()
        .with.property('code', 'CONFIG_INVALID')
  })
})
