import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { AUDIENCE, startIssuer } from '../plugins/api/auth-oidc/test/support/issuer.ts'
import { wait } from './support/wait.ts'
import { runSvc } from './support/command.ts'
import { inNewHome, newHome, type Service, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { configureFew } from './support/tides.ts'

const ENV = { SVC_API_KEY: 'the-key-of-the-house', SVC_SERVER__AUTH__ENABLED: 'true' }
const TOKEN = /^svc_[A-Za-z0-9_-]{43}\n$/

interface Place {
  readonly home: string
  svc(...args: string[]): ReturnType<typeof runSvc>
  /** The token that `svc tokens create` prints. */
  create(...args: string[]): Promise<string>
}

describe('svc tokens', () => {
  const it = sideBySideIn<Place>(run =>
    inNewHome(async home => {
      await configureFew(home, {}, ['auth-api-key', 'auth-bearer', 'auth-oidc', 'mcp-server'])
      const svc: Place['svc'] = (...args) => runSvc(args, { home, share: true })
      await run({ home, svc, create: async (...args) => (await svc('tokens', 'create', ...args)).out.trim() })
    })
  )
  const status = async ({ url }: Service, token: string) =>
    (await fetch(`${url}/api/v1/status`, { headers: { authorization: `Bearer ${token}` } })).status

  it('gives a running server a token that works at once', async ({ home, create }) => {
    await using service = await startService({ home, env: ENV })
    const token = await create('--name', 'anna')
    expect(await status(service, token)).to.equal(200)
    expect(await status(service, `${token.slice(0, -4)}AAAA`)).to.equal(401)
  })

  /** The stream of a session of the tool server, which has no end of its own. */
  const openStream = async ({ url }: Service, token: string) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    const begun = await fetch(`${url}/mcp`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body })
    await begun.text()
    const session = { ...headers, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' }
    const stream = await fetch(`${url}/mcp`, { headers: session })
    expect(stream.status).to.equal(200)
    return { text: stream.text().catch(() => 'cut off') }
  }

  it('revokes on every server of the home before the command ends, though the token was in use and holds streams open', async ({
    home,
    svc,
    create,
  }) => {
    const env = { ...ENV, SVC_MCP__SERVER__ENABLED: 'true' }
    await using found = await startService({ home, env, args: ['--workers', '2'] })
    await using two = await startService({ home, env })
    const token = await create('--name', 'anna')
    const streams = await Promise.all([found, found, two].map(service => openStream(service, token)))
    let ended = false
    /** The first answer that is not 200, and how many were before; one that is still 200 after the end counts too. */
    const lastsOn = async (service: Service) => {
      for (let taken = 0; ; taken++) {
        const isLast = ended
        const answer = await status(service, token)
        if (answer !== 200 || isLast) return { answer, wasInUse: taken > 0 }
        await wait()
      }
    }
    const using = Promise.all([found, two].map(lastsOn))
    const { code, out } = await svc('tokens', 'revoke', 'anna')
    ended = true
    expect(await using).to.deep.equal([found, two].map(() => ({ answer: 401, wasInUse: true })))
    expect(await Promise.all(streams.map(({ text }) => text))).to.deep.equal(Array(3).fill('cut off'))
    expect(code).to.equal(0)
    expect(out).to.match(/^revoked tok_[0-9a-f]{12} \(anna\)\n$/)
  })

  it('keeps later revocations and tokens through a restore; without the former store it lists the restored tokens', async ({
    home,
    svc,
    create,
  }) => {
    await using service = await startService({ home, env: ENV })
    const revoked = await create('--name', 'anna')
    const kept = await create('--name', 'ben')
    expect(await svc('store', 'backup', 'b.db')).to.include({ code: 0 })
    const later = await create('--name', 'eve')
    await svc('tokens', 'revoke', 'anna')
    const restored = await svc('store', 'restore', 'b.db')
    expect(restored.code, restored.err).to.equal(0)
    expect(restored.err).to.not.contain('take care')
    expect(await Promise.all([revoked, kept, later].map(item => status(service, item)))).to.deep.equal([401, 200, 200])
    expect((await svc('tokens', 'list')).out).to.not.contain('anna')
    expect(await service.stop()).to.equal(0)
    for (const side of ['', '-wal', '-shm']) await rm(join(home, `svc.db${side}`), { force: true })
    const { err } = await svc('store', 'restore', 'b.db')
    expect(err).to.contain('2 records of auth_tokens').and.contain('svc tokens revoke <id>')
  })

  it('holds a token to its scopes, beside those of an OpenID Connect issuer, which are held to their audience', async ({
    home,
    create,
  }) => {
    await using issuer = await startIssuer()
    const oidc = { SVC_SERVER__AUTH__OIDC__ISSUER: issuer.url, SVC_SERVER__AUTH__OIDC__AUDIENCE: AUDIENCE }
    await using service = await startService({ home, env: { ...ENV, ...oidc } })
    expect(await status(service, await create('--scope', 'chat'))).to.equal(403)
    expect(await status(service, await issuer.token({ scope: 'read' }))).to.equal(200)
    expect(await status(service, await issuer.token({ scope: 'chat' }))).to.equal(403)
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: issuer.url, aud: AUDIENCE, sub: 'anna', scope: 'read', exp: now + 60 }
    const refused = [
      await issuer.token({ scope: 'read', aud: 'another' }),
      await issuer.token({ scope: 'read', iss: 'https://another.example' }),
      await issuer.token({ scope: 'read', exp: now - 3600 }),
      await issuer.token({ scope: 'read' }, { kid: 'unknown' }),
      `${part({ alg: 'none', typ: 'JWT' })}.${part(claims)}.`,
    ]
    expect(await Promise.all(refused.map(item => status(service, item)))).to.deep.equal(refused.map(() => 401))
  })

  it('prints only the token to the standard output, and everything else to the standard error stream', async ({ svc }) => {
    const { code, out, err } = await svc('tokens', 'create', '--name', 'anna', '--scope', 'read,chat', '--ttl', '12h')
    expect(code).to.equal(0)
    expect(out).to.match(TOKEN)
    expect(err).to.match(/tok_[0-9a-f]{12} \(anna\): chat read, until \d{4}-.*shown only once/)
    const { out: json } = await svc('tokens', 'create', '--json')
    expect(JSON.parse(json)).to.have.all.keys('token', 'id', 'name', 'scopes', 'created', 'expires')
  })

  it('lists what was given out, and no token', async ({ svc, create }) => {
    const token = await create('--name', 'anna')
    const { out } = await svc('tokens', 'list')
    expect(out).to.contain('anna').and.contain('chat read workflows tools').and.contain('never')
    expect(out).to.not.contain(token.slice(4, 20))
    const { out: json } = await svc('tokens', 'list', '--json')
    const { tokens } = JSON.parse(json) as { tokens: Record<string, string>[] }
    expect(tokens.map(item => item.name)).to.deep.equal(['anna'])
    const days = (Date.parse(tokens[0]!.expires!) - Date.parse(tokens[0]!.created!)) / 86_400_000
    expect(days).to.equal(30)
  })

  for (const [what, args, words] of [
    ['a scope that is none', ['create', '--scope', 'root'], /"root"/],
    ['a ttl of another form', ['create', '--ttl', '1 month'], /--ttl/],
    ['a ttl of nothing', ['create', '--ttl', '0d'], /--ttl/],
    ['an endless ttl', ['create', '--ttl', '999999d'], /--ttl/],
    ['a name of strange characters', ['create', '--name', 'a b'], /name/],
    ['an option that is none', ['list', '--all'], /--all/],
    ['no name to revoke', ['revoke'], /Name or id of the token/],
    ['a name that nobody has', ['revoke', 'eve'], /no token "eve"/],
  ] as const)
    it(`refuses ${what}`, async ({ svc }) => {
      const { code, out, err } = await svc('tokens', ...args)
      expect(code).to.not.equal(0)
      expect(out).to.equal('')
      expect(err).to.match(words)
    })

  it('does not print a token that was passed instead of a name', async ({ svc, create }) => {
    const token = await create()
    const { code, err } = await svc('tokens', 'revoke', token)
    expect(code).to.equal(1)
    expect(err).to.contain('TOKEN_UNKNOWN').and.not.contain(token.slice(4))
  })

  it('refuses to create a token in a store that no server shares', async ({ home, svc }) => {
    await writeFile(
      join(home, 'svc.config.json'),
      JSON.stringify({ plugins: ['@svc/plugin-store-memory', { use: '@svc/plugin-store-sqlite', enabled: false }] })
    )
    const { code, err } = await svc('tokens', 'create')
    expect(code).to.equal(1)
    expect(err).to.contain('STORE_NOT_SHARED')
  })

  it('leaves nothing of a token in the log', async ({ home, create }) => {
    await using service = await startService({ home, env: ENV, args: ['--debug'] })
    const token = await create()
    await status(service, token)
    await status(service, `${token}x`)
    expect(await service.stop()).to.equal(0)
    expect(service.output()).to.not.contain(token.slice(4, 24)).and.not.contain(ENV.SVC_API_KEY)
  })
})

describe('authentication that is switched on', () => {
  it('fails the start without a key, and says what to do', async () => {
    const home = await newHome()
    const failed = await startService({ home, env: { SVC_SERVER__AUTH__ENABLED: 'true' } }).then(
      () => expect.fail('it started'),
      (error: Error) => error.message
    )
    expect(failed).to.contain('API_KEY_MISSING').and.contain('SVC_API_KEY').and.contain('@svc/plugin-auth-api-key')
    await rm(home, { recursive: true, force: true })
  })
})
