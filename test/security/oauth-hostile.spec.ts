import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Json } from '@svc/core/contracts'
import { createMcpClient, type HttpOptions, loginMcp } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { SVC } from '../support/entry.ts'
import { listening, type Opened, openAuthority, openGuarded } from '../support/hostile-authority.ts'
import { inNewHome, startService } from '../support/service.ts'

/** What a browser does. */
const browse = async (page: URL) => void (await fetch(page).then(answer => answer.text()))
const canary = () =>
  listening((_, __, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
const tokens = ({ got }: Opened) => got.filter(item => item.path === '/token').map(item => new URLSearchParams(item.body))

/** Logs in, and answers what is said of it and what was kept. */
async function logIn(options: HttpOptions, show: (page: URL) => void | Promise<void> = browse) {
  let kept: Json | undefined
  const pages: URL[] = []
  const storage = { load: async () => kept, save: async (value: Json | undefined) => void (kept = value) }
  const error = await loginMcp(
    { ...options, oauth: { storage, ...options.oauth } },
    { show: page => (pages.push(page), show(page)), waitMs: 3_000 }
  ).catch((item: Error) => item)
  return { said: String((error as Error | undefined)?.message), kept: JSON.stringify(kept), pages }
}

describe('a login at a hostile authorization server', () => {
  it('is a login with state and PKCE where the server is honest', async () => {
    await using authority = await openAuthority()
    await using server = await openGuarded(authority.url)
    const { kept, pages } = await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } })
    expect(Object.fromEntries(pages[0]!.searchParams)).to.include({ code_challenge_method: 'S256', response_type: 'code' })
    expect(pages[0]!.searchParams.get('state')).to.have.lengthOf.above(15)
    expect(tokens(authority)[0]!.get('code_verifier')).to.have.lengthOf.above(42)
    expect(kept).to.contain('token-')
  })

  it('reaches no other port of the host of the tool server, which that names for the login', async () => {
    await using inner = await canary()
    await using server = await openGuarded(inner.url)
    const { said } = await logIn({ url: `${server.url}/mcp`, oauth: {} })
    expect(inner.got).to.deep.equal([])
    expect(said).to.contain(inner.url).and.contain('oauth.issuer')
  })

  it('reaches no other port where the tool server says that its own metadata are there', async () => {
    await using inner = await canary()
    await using server = await openGuarded(inner.url, { metadataAt: `${inner.url}/latest/meta-data/` })
    await logIn({ url: `${server.url}/mcp`, oauth: {} })
    expect(inner.got).to.deep.equal([])
  })

  for (const place of [
    'http://169.254.169.254/latest/meta-data/',
    'http://[::1]:1/',
    'http://localhost:1/',
    'file:///etc/passwd',
  ])
    it(`asks nothing of ${place}`, async () => {
      await using server = await openGuarded(place)
      const { said, pages } = await logIn({ url: `${server.url}/mcp`, oauth: {} })
      expect(said).to.match(/not public|does not connect to|https|URL/i)
      expect(pages).to.deep.equal([])
    })

  it('follows no redirect of metadata', async () => {
    await using inner = await canary()
    await using authority = await openAuthority({ redirects: `${inner.url}/secret` })
    await using server = await openGuarded(authority.url)
    await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } })
    expect(inner.got).to.deep.equal([])
  })

  for (const endpoint of ['registration_endpoint', 'token_endpoint'])
    it(`sends nothing to a ${endpoint} that points inward`, async () => {
      await using inner = await canary()
      await using authority = await openAuthority({ metadata: () => ({ [endpoint]: `${inner.url}/admin` }) })
      await using server = await openGuarded(authority.url)
      await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } })
      expect(inner.got).to.deep.equal([])
    })

  it('takes no metadata that name another issuer', async () => {
    await using authority = await openAuthority({ metadata: () => ({ issuer: 'https://login.example' }) })
    await using server = await openGuarded(authority.url)
    const { pages } = await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } })
    expect([pages, tokens(authority)]).to.deep.equal([[], []])
  })

  it('redeems no code whose answer names another issuer, or none where the server says that it names it', async () => {
    for (const iss of ['https://login.example', undefined]) {
      await using authority = await openAuthority({
        metadata: () => ({ authorization_response_iss_parameter_supported: true }),
        answer: answer => ({ ...answer, iss }),
      })
      await using server = await openGuarded(authority.url)
      await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } })
      expect(tokens(authority)).to.deep.equal([])
    }
  })

  it('redeems no code of another server, to whose page it has sent the person (mix-up)', async () => {
    await using honest = await openAuthority()
    await using hostile = await openAuthority({ metadata: () => ({ authorization_endpoint: `${honest.url}/authorize` }) })
    await using server = await openGuarded(hostile.url)
    const { said } = await logIn({ url: `${server.url}/mcp`, oauth: {}, allow: ['127.0.0.1'] })
    expect(honest.got.map(item => item.path.split('?')[0])).to.deep.equal(['/authorize'])
    expect(tokens(hostile)).to.deep.equal([])
    expect(said).to.contain('oauth.issuer')
  })

  it('redeems no code that comes without the state of the login, or with another, and waits on', async () => {
    await using authority = await openAuthority()
    await using server = await openGuarded(authority.url)
    const forgedFirst = async (page: URL) => {
      for (const query of ['code=forged', 'code=forged&state=', 'code=forged&state=other'])
        expect((await fetch(`${page.searchParams.get('redirect_uri')}?${query}`)).status).to.equal(400)
      await browse(page)
    }
    const { kept } = await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } }, forgedFirst)
    expect(tokens(authority).map(form => form.get('code')))
      .to.have.length(1)
      .and.not.include('forged')
    expect(kept).to.contain('token-')
  })

  it('shows no page of a server that does not support PKCE with SHA-256', async () => {
    await using authority = await openAuthority({ metadata: () => ({ code_challenge_methods_supported: ['plain'] }) })
    await using server = await openGuarded(authority.url)
    const { pages } = await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } })
    expect(pages).to.deep.equal([])
  })

  for (const page of [
    'http://login.example/authorize',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'data:text/html,x',
    'ssh://a',
  ])
    it(`shows no page at ${page}`, async () => {
      await using authority = await openAuthority({ metadata: () => ({ authorization_endpoint: page }) })
      await using server = await openGuarded(authority.url)
      const { pages } = await logIn({ url: `${server.url}/mcp`, oauth: { issuer: authority.url } }, () => {})
      expect(pages).to.deep.equal([])
    })

  it('gets no configured secret where the operator has named another server', async () => {
    await using authority = await openAuthority()
    await using hostile = await openAuthority()
    await using server = await openGuarded(authority.url, { names: hostile.url })
    const oauth = { clientId: 'svc', clientSecret: 'the-client-secret', issuer: authority.url }
    const { said, pages } = await logIn({ url: `${server.url}/mcp`, oauth, allow: ['127.0.0.1'] })
    expect([pages, tokens(hostile)]).to.deep.equal([[], []])
    expect(said).to.contain(hostile.url).and.contain(authority.url)
  })

  it('cannot make an error repeat a code, verifier, token or secret', async () => {
    const status = [400, 500, 200]
    for (const item of status) {
      await using authority = await openAuthority({
        token: (form, { headers }) => ({
          status: item,
          body: JSON.stringify({
            error: 'invalid_request',
            error_description: `${[...form.values()].join(' ')} ${headers.authorization}`,
          }),
        }),
      })
      await using server = await openGuarded(authority.url)
      const secret = 'the-client-secret'
      const { said } = await logIn({
        url: `${server.url}/mcp`,
        oauth: { clientId: 'svc', clientSecret: secret, issuer: authority.url },
      })
      const [form] = tokens(authority)
      const secrets = [secret, form!.get('code')!, form!.get('code_verifier')!]
      for (const found of secrets) expect(said).to.not.contain(found)
      await using client = createMcpClient({
        url: `${server.url}/mcp`,
        oauth: { clientId: 'svc', clientSecret: secret, tokenUrl: `${authority.url}/token` },
      })
      expect(String(await client.connect().catch((error: Error) => error.message))).to.not.contain(secret)
    }
  })

  it('leaves no token, code or verifier in the output of svc mcp login and of the server, though the tool server repeats them', () =>
    inNewHome(async home => {
      await using authority = await openAuthority()
      await using server = await openGuarded(authority.url)
      const clients = [{ name: 'one', url: `${server.url}/mcp`, retry_attempts: 0, oauth: { issuer: authority.url } }]
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ mcp: { clients }, log: { level: 'debug' } }))
      const env = { PATH: process.env.PATH, SVC_HOME: home }
      const login = spawn(process.execPath, [...SVC, 'mcp', 'login', 'one'], {
        cwd: home,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const errors = text(login.stderr)
      const lines = createInterface({ input: login.stdout })
      const [page] = (await once(lines, 'line')) as [string]
      await browse(new URL(page))
      await once(login, 'exit')
      await using service = await startService({ home, cwd: home })
      const health = await fetch(`${service.url}/health`).then(answer => answer.text())
      const [form] = tokens(authority)
      const sent = server.got.flatMap(item => item.authorization ?? []).map(item => item.replace(/^Bearer /, ''))
      expect(sent).to.not.deep.equal([])
      const said = (await errors) + service.output() + health
      for (const secret of [form!.get('code')!, form!.get('code_verifier')!, ...sent, 'refresh-'])
        expect(said).to.not.contain(secret)
    }))
})
