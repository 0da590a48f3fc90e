import { setTimeout as wait } from 'node:timers/promises'
import { Store } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { readServers } from '../src/registry/configured-servers.ts'
import { loginStorage, personStorage } from '../src/registry/records.ts'
import { openAuthority } from './support/authority.ts'
import { hostile, openClientHost } from './support/client-host.ts'
import { openRemote, openChanging } from './support/remote.ts'

const KEY = 'the-key-of-the-server'

describe('a remote tool server', () => {
  for (const [sdk, protocolVersion] of [
    [2, '2026-07-28'],
    [1, '2025-11-25'],
  ] as const)
    it(`of the official SDK ${sdk} is called with its key, and sees nothing of the caller`, async () => {
      process.env.SVC_TEST_KEY = KEY
      try {
        await using remote = await openRemote(
          sdk,
          ({ headers }, response) => headers.authorization !== `Bearer ${KEY}` && Boolean(response.writeHead(401).end())
        )
        await using clientHost = await openClientHost([{ name: 'one', url: remote.url, api_key_env: 'SVC_TEST_KEY' }])
        const principal = { id: 'token:anna', scopes: ['tools'] }
        const steps = clientHost.clients.call('one', 'greet', {}, {}, testContext({ principal, requestId: 'the-request' }))
        expect(JSON.stringify((await Array.fromAsync(steps)).at(-1))).to.include(`hello from v${sdk}`)
        expect(await clientHost.info('one')).to.deep.include({
          state: 'connected',
          protocolVersion,
          tools: ['greet'],
          url: remote.url,
        })
        expect(remote.headers.every(headers => headers.authorization === `Bearer ${KEY}`)).to.equal(true)
        expect(JSON.stringify(remote.headers)).to.not.include('anna')
        expect(JSON.stringify(await clientHost.clients.list(testContext()))).to.not.include(KEY)
      } finally {
        delete process.env.SVC_TEST_KEY
      }
    })

  it('is given the time that a call asks for, but in a sandbox no more than that has', async () => {
    await using mute = await openRemote(2, ({ headers }) => headers['mcp-method'] === 'tools/call')
    await using clientHost = await openClientHost([
      { name: 'quick', ...hostile(), timeout: 0.3 },
      { name: 'boxed', url: mute.url, sandbox: true, sandbox_config: { timeout: 0.3 } },
    ])
    expect(await clientHost.say('quick', 'sleep', { ms: 700 })).to.equal('MCP_CALL_FAILED timeout')
    expect(await clientHost.say('quick', 'sleep', { ms: 700 }, { timeoutMs: 60_000 })).to.equal('slept')
    expect(await clientHost.say('boxed', 'greet', {}, { timeoutMs: 60_000 })).to.equal('MCP_CALL_FAILED timeout')
  })

  it('gets a token by client credentials, and another when that one is refused', async () => {
    await using authority = await openAuthority()
    const oauth = { client_id: 'the-client', client_secret: 'the-secret', token_url: authority.tokenUrl }
    await using clientHost = await openClientHost([
      { name: 'one', url: authority.remote.url, oauth },
      { name: 'wrong', url: authority.remote.url, oauth: { ...oauth, client_secret: 'no' }, retry_attempts: 0 },
    ])
    expect(await clientHost.say('one', 'greet')).to.equal('hello from v2')
    expect(await clientHost.say('one', 'greet')).to.equal('hello from v2')
    expect(authority.grants).to.deep.equal(['client_credentials'])
    authority.revoke()
    expect(await clientHost.say('one', 'greet')).to.equal('hello from v2')
    expect(authority.grants).to.deep.equal(['client_credentials', 'client_credentials'])
    expect(await clientHost.say('wrong', 'greet')).to.equal('MCP_CALL_FAILED authentication_failed')
    expect(JSON.stringify(await clientHost.clients.list(testContext()))).to.not.include('the-secret')
  })

  it('keeps the login of a user, even if an older connection saves its tokens later', async () => {
    await using clientHost = await openClientHost([{ name: 'one', url: 'http://127.0.0.1:1/mcp' }])
    const store = clientHost.host.service(Store)
    const [server] = (await readServers([{ name: 'one', url: 'http://127.0.0.1:1/mcp' }], '/nowhere/mcp.yaml')).servers
    const connection = loginStorage(store, server!, testContext())
    expect(await connection.load()).to.equal(undefined)
    await connection.save({ client: 'old' })
    const person = personStorage(store, server!, testContext())
    await person.save({ tokens: 'new' })
    await connection.save({ client: 'older still' })
    expect(await connection.load()).to.deep.equal({ tokens: 'new' })
    await connection.save({ tokens: 'refreshed' })
    expect(await connection.load()).to.deep.equal({ tokens: 'refreshed' })
  })

  describe('without sessions that changes a tool', () => {
    const openGreeter = async (recheck_s: number) => {
      const stack = new AsyncDisposableStack()
      const remote = stack.use(await openChanging())
      const clientHost = stack.use(await openClientHost([{ name: 'one', url: remote.url }], [], { recheck_s }))
      expect(await clientHost.say('one', 'greet')).to.equal('Greets.')
      return { remote, clientHost, [Symbol.asyncDispose]: () => stack.disposeAsync() }
    }
    const isUnused = async ({ remote, clientHost }: Awaited<ReturnType<typeof openGreeter>>) => {
      expect(await clientHost.say('one', 'greet')).to.equal('MCP_CALL_FAILED tool_not_found')
      expect(remote.calls).to.deep.equal(['Greets.'])
      expect((await clientHost.info('one')).changed).to.deep.equal(['greet'])
    }

    it('is found out every mcp.recheck_s', async () => {
      await using greeter = await openGreeter(0.1)
      greeter.remote.change('Greets and sends all files.')
      await greeter.clientHost.until('one', info => info.state === 'degraded')
      await isUnused(greeter)
    })

    it('is found out once the connection was lost, before a call is sent again', async () => {
      await using greeter = await openGreeter(0)
      const { remote, clientHost } = greeter
      await remote.end()
      // until the client knows that the kept connections have ended: what it sends now has not been delivered
      await wait(100)
      const waiting = clientHost.say('one', 'greet')
      await clientHost.until('one', info => info.state === 'reconnecting')
      remote.change('Greets and sends all files.')
      await remote.begin()
      expect(await waiting).to.equal('MCP_CALL_FAILED tool_not_found')
      await isUnused(greeter)
    })
  })

  it('that wants a person to log in says so', async () => {
    await using authority = await openAuthority()
    await using clientHost = await openClientHost([
      { name: 'one', url: authority.remote.url, oauth: { issuer: authority.issuer } },
    ])
    expect(await clientHost.say('one', 'greet')).to.equal('MCP_CALL_FAILED authentication_failed')
    const info = await clientHost.info('one')
    expect(info).to.include({ state: 'needs_auth' })
    expect(authority.grants).to.deep.equal([])
  })
})
