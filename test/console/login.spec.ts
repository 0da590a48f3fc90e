import { createCipheriv, randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { request } from 'node:http'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { newHome, type Service, startService } from '../support/service.ts'

const KEY = 'the-key-of-the-operator'
const ENV = { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true' }
const SESSION = '/api/v1/console/session'
const OWN = { 'sec-fetch-site': 'same-origin' }

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: unknown
}

/** The server limits guesses by address, so each test has one of its own. */
let localAddress = '127.0.1.1'
let tests = 0
const newAddress = () => {
  localAddress = `127.0.1.${++tests}`
}

/** A request with exactly these headers: `fetch` of Node adds its own. */
function ask(url: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = request(
    url,
    { method, agent: false, localAddress, headers: { ...json, ...headers } as Record<string, string> },
    answer => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', piece => (text += piece))
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, text }))
    }
  )
  sent.on('error', reject)
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  return promise
}

const codeIn = ({ text }: Answer) => (JSON.parse(text) as { error_code?: string }).error_code

describe('the login of the console', function () {
  this.timeout(60_000)
  let home: string
  let service: Service
  const at = (path: string, asked?: Asked) => ask(`${service.url}${path}`, asked)
  const signIn = (credential: string, more: Readonly<Record<string, string>> = OWN) =>
    at(SESSION, { method: 'POST', headers: { authorization: `Bearer ${credential}`, ...more }, body: { credential } })
  /** The cookie of a session, as a browser sends it. */
  const cookieOf = async (credential: string) => {
    const answer = await signIn(credential)
    expect(answer.status, answer.text).to.equal(201)
    const [cookie = ''] = answer.headers['set-cookie'] ?? []
    return cookie.split(';', 1)[0]!
  }
  const me = (cookie: string, more: Readonly<Record<string, string>> = OWN) => at('/api/v1/me', { headers: { cookie, ...more } })
  const makeToken = async (name: string, ...more: string[]) => {
    const { out, err } = await runSvc(['tokens', 'create', '--name', name, ...more], { home })
    expect(out.trim(), err).to.match(/^svc_/)
    return out.trim()
  }
  beforeEach(newAddress)
  before(async () => {
    home = await newHome()
    service = await startService({ home, env: ENV })
  })
  after(async () => {
    await service?.stop()
    await rm(home, { recursive: true, force: true })
  })

  it('seals the credential into a cookie that scripts and other sites cannot use', async () => {
    const answer = await signIn(KEY)
    const [cookie = ''] = answer.headers['set-cookie'] ?? []
    expect(cookie).to.match(/^svc_console_[0-9a-f]{8}=1\./)
    expect(cookie).to.contain('; HttpOnly').and.contain('; SameSite=Strict').and.contain('; Path=/').and.contain('; Max-Age=')
    expect(cookie).not.to.contain(KEY)
    expect(Buffer.from(cookie.split('.')[2]!, 'base64url').toString('latin1')).not.to.contain(KEY)
    expect(answer.headers['cache-control']).to.equal('no-store')
    expect(JSON.parse((await me(cookie.split(';', 1)[0]!)).text)).to.include({ principal: 'api-key', scheme: 'console_session' })
  })

  it('begins at /, which sends a browser without a credential to the page, and no other client', async () => {
    const { status, headers } = await at('/', { headers: { accept: 'text/html' } })
    expect([status, headers.location]).to.deep.equal([302, '/console'])
    expect((await at('/', { headers: { accept: 'application/json' } })).status).to.equal(401)
  })

  it('marks the cookie as secure for a page over HTTPS', async () => {
    await using proxied = await startService({
      env: { ...ENV, SVC_SERVER__ALLOWED_HOSTS: '["svc.example"]', SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.0/8"]' },
    })
    const answer = await ask(`${proxied.url}${SESSION}`, {
      method: 'POST',
      headers: {
        ...OWN,
        host: 'svc.example',
        origin: 'https://svc.example',
        'x-forwarded-proto': 'https',
        authorization: `Bearer ${KEY}`,
      },
      body: { credential: KEY },
    })
    expect(answer.status, answer.text).to.equal(201)
    expect(String(answer.headers['set-cookie'])).to.contain('; Secure')
  })

  it('refuses the cookie from other sites, other ports, and without the header of browsers', async () => {
    const cookie = await cookieOf(KEY)
    for (const site of ['cross-site', 'same-site', 'none'])
      expect((await me(cookie, { 'sec-fetch-site': site })).status, site).to.equal(403)
    expect((await me(cookie, {})).status).to.equal(403)
    expect((await me(cookie, { ...OWN, origin: 'https://evil.example' })).status).to.equal(403)
    expect((await me(cookie)).status).to.equal(200)
  })

  it('refuses a login that another site begins', async () => {
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, {}]) {
      const answer = await signIn(KEY, headers as Record<string, string>)
      expect(answer.status).to.equal(400)
      expect(answer.headers['set-cookie']).to.equal(undefined)
    }
  })

  it('refuses forged cookies: another key, changed bytes, no seal, two cookies', async () => {
    await using other = await startService({ env: ENV })
    const cookie = await cookieOf(KEY)
    const [name, value] = cookie.split('=') as [string, string]
    const [version, id, sealed = ''] = value.split('.')
    const bytes = Buffer.from(sealed, 'base64url')
    bytes[40]! ^= 1
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', randomBytes(32), iv)
    const mine = Buffer.concat([
      cipher.update(JSON.stringify({ id: 'x', credential: KEY, expires: Date.now() + 1e6 })),
      cipher.final(),
    ])
    const forged = [
      `${version}.${id}.${bytes.toString('base64url')}`,
      `${version}.${id}.${Buffer.concat([iv, cipher.getAuthTag(), mine]).toString('base64url')}`,
      `${version}.AAAAAAAAAAA.${sealed}`,
      `2.${id}.${sealed}`,
      Buffer.from(KEY).toString('base64'),
      KEY,
      '',
    ]
    for (const text of forged.slice(0, 4)) expect((await me(`${name}=${text}`)).status, text).to.equal(401)
    for (const text of forged.slice(4))
      expect((await ask(`${other.url}/api/v1/me`, { headers: { ...OWN, cookie: `${name}=${text}` } })).status).to.equal(401)
    // a page of another port of this host can set a second cookie of the same name
    expect((await me(`${cookie}; ${name}=${version}.${id}.${sealed}`)).status).to.equal(401)
    // the keys of another server do not open it, whatever its name
    const [otherCookie = ''] =
      (
        await ask(`${other.url}${SESSION}`, {
          method: 'POST',
          headers: { ...OWN, authorization: `Bearer ${KEY}` },
          body: { credential: KEY },
        })
      ).headers['set-cookie'] ?? []
    expect((await me(`${name}=${otherCookie.split(';', 1)[0]!.split('=')[1]}`)).status).to.equal(401)
  })

  it('ends at the logout, also for a copy of the cookie', async () => {
    const cookie = await cookieOf(await makeToken('leaver'))
    expect((await me(cookie)).status).to.equal(200)
    const answer = await at(SESSION, { method: 'DELETE', headers: { ...OWN, cookie } })
    expect(answer.status).to.equal(204)
    expect(String(answer.headers['set-cookie'])).to.contain('Max-Age=0')
    expect((await me(cookie)).status).to.equal(401)
  })

  it('ends when the token is revoked or expires', async () => {
    const cookie = await cookieOf(await makeToken('revoked', '--scope', 'read'))
    expect(JSON.parse((await me(cookie)).text)).to.include({ principal: 'token:revoked' })
    await runSvc(['tokens', 'revoke', 'revoked'], { home })
    expect((await me(cookie)).status).to.equal(401)
    const short = await cookieOf(await makeToken('short', '--ttl', '3s'))
    expect((await me(short)).status).to.equal(200)
    await new Promise(resolve => setTimeout(resolve, 3_200))
    expect((await me(short)).status).to.equal(401)
  })

  it('has the scopes of the token, no others', async () => {
    const cookie = await cookieOf(await makeToken('reader', '--scope', 'read'))
    expect((await at('/api/v1/status', { headers: { ...OWN, cookie } })).status).to.equal(200)
    expect((await at('/api/v1/doctor', { headers: { ...OWN, cookie } })).status).to.equal(403)
    expect((await at('/api/v1/conversations', { headers: { ...OWN, cookie } })).status).to.equal(403)
    expect((await signIn(await makeToken('talker', '--scope', 'chat'))).status).to.equal(403)
  })

  it('does not seal a credential that the header does not have', async () => {
    const token = await makeToken('guesser', '--scope', 'read')
    for (const credential of [KEY, 'a-guess', `svc_${'A'.repeat(43)}`]) {
      const answer = await at(SESSION, {
        method: 'POST',
        headers: { ...OWN, authorization: `Bearer ${token}` },
        body: { credential },
      })
      expect(answer.status).to.equal(401)
      expect(answer.headers['set-cookie']).to.equal(undefined)
    }
    for (const body of [
      {},
      { credential: '' },
      { credential: 7 },
      { credential: KEY, more: 1 },
      { credential: 'x'.repeat(5_000) },
    ])
      expect((await at(SESSION, { method: 'POST', headers: { ...OWN, authorization: `Bearer ${KEY}` }, body })).status).to.equal(
        400
      )
  })

  it('leaves requests with another credential alone, whatever the cookie says', async () => {
    const cookie = await cookieOf(await makeToken('beside', '--scope', 'read'))
    const both = await me(cookie, { ...OWN, 'x-api-key': KEY })
    expect(JSON.parse(both.text)).to.include({ principal: 'api-key', scheme: 'api_key' })
    expect((await me(`${cookie.split('=')[0]}=broken`, { 'x-api-key': KEY })).status).to.equal(200)
  })

  it('signs in with a one-time code once, within its time', async () => {
    const { out, err, code } = await runSvc(['console', '--json', '--url', service.url], { home })
    expect(code, err).to.equal(0)
    const { url, expires } = JSON.parse(out) as { url: string; expires: string }
    expect(Date.parse(expires) - Date.now()).to.be.within(1, 30_000)
    expect(url)
      .to.match(/\/console#code=console_[\w-]{43}$/)
      .and.satisfy((text: string) => text.startsWith(service.url))
    const oneTime = url.split('code=')[1]!
    // it opens nothing but a session
    expect((await at('/api/v1/me', { headers: { ...OWN, authorization: `Bearer ${oneTime}` } })).status).to.equal(401)
    const answers = await Promise.all([signIn(oneTime), signIn(oneTime), signIn(oneTime)])
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).to.deep.equal([201, 401, 401])
    const [cookie = ''] = answers.find(({ status }) => status === 201)!.headers['set-cookie'] ?? []
    const session = cookie.split(';', 1)[0]!
    expect(JSON.parse((await me(session)).text)).to.include({ principal: 'token:console' })
    expect((await signIn(oneTime)).status).to.equal(401)
    // what it became can be seen and revoked
    await runSvc(['tokens', 'revoke', 'console'], { home })
    expect((await me(session)).status).to.equal(401)
  })

  it('limits guesses, also of cookies and codes, and counts no cookies of other programs', async () => {
    await using guarded = await startService({ env: ENV })
    const get = (headers: Record<string, string>) => ask(`${guarded.url}/api/v1/me`, { headers: { ...OWN, ...headers } })
    for (let i = 0; i < 15; i++) expect((await get({ cookie: `theme=dark; other_app=${i}` })).status).to.equal(401)
    const statuses = []
    for (let i = 0; i < 12; i++) {
      const credential = `console_${String(i).padStart(43, 'A')}`
      const guess = { method: 'POST', headers: { ...OWN, authorization: `Bearer ${credential}` }, body: { credential } }
      statuses.push((await ask(`${guarded.url}${SESSION}`, guess)).status)
    }
    expect(statuses).to.deep.equal([...Array.from({ length: 10 }, () => 401), 429, 429])
  })

  it('needs no session without authentication, and says so', async () => {
    await using open = await startService()
    const answer = await ask(`${open.url}${SESSION}`, { method: 'POST', headers: OWN, body: { credential: 'any' } })
    expect(answer.status).to.equal(400)
    expect(codeIn(answer)).to.equal('INVALID_VALUE')
    expect((await ask(`${open.url}/api/v1/me`)).status).to.equal(200)
  })

  it('keeps a session over a restart of the server', async () => {
    const place = await newHome()
    try {
      const first = await startService({ home: place, env: ENV })
      const [cookie = ''] =
        (
          await ask(`${first.url}${SESSION}`, {
            method: 'POST',
            headers: { ...OWN, authorization: `Bearer ${KEY}` },
            body: { credential: KEY },
          })
        ).headers['set-cookie'] ?? []
      await first.stop()
      const second = await startService({ home: place, env: ENV })
      expect((await ask(`${second.url}/api/v1/me`, { headers: { ...OWN, cookie: cookie.split(';', 1)[0]! } })).status).to.equal(
        200
      )
      await second.stop()
      // another key in the environment: the sealed one is not valid any more
      const third = await startService({ home: place, env: { ...ENV, SVC_API_KEY: 'another-key-of-the-operator' } })
      expect((await ask(`${third.url}/api/v1/me`, { headers: { ...OWN, cookie: cookie.split(';', 1)[0]! } })).status).to.equal(
        401
      )
      await third.stop()
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  })
})

describe('the files of the console', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    service = await startService()
  })
  after(() => service?.[Symbol.asyncDispose]())
  const at = (path: string, asked?: Asked) => ask(`${service.url}${path}`, asked)

  it('answers each place with the page, and sends browsers from / to it', async () => {
    for (const path of ['/console', '/console/', '/console/overview', '/console/conversations?q=a', '/console/a/b/c']) {
      const { status, headers, text } = await at(path)
      expect(status, path).to.equal(200)
      expect(headers['content-type']).to.equal('text/html; charset=utf-8')
      expect(text)
        .to.contain('<div id="root">')
        .and.not.contain('<style')
        .and.not.match(/<script>(?!<)/)
    }
    const start = await at('/', { headers: { accept: 'text/html' } })
    expect([start.status, start.headers.location]).to.deep.equal([302, '/console'])
    expect((await at('/', { headers: { accept: '*/*' } })).status).to.equal(404)
  })

  it('sends files with their type, compressed, and for ever', async () => {
    const { text } = await at('/console')
    const files = [...text.matchAll(/"(\/console\/files\/[^"]+)"/g)].map(([, path]) => path!)
    expect(files.length).to.be.greaterThan(2)
    for (const path of files) {
      const plain = await at(path)
      expect(plain.status, path).to.equal(200)
      expect(plain.headers['cache-control']).to.equal('public, max-age=31536000, immutable')
      expect(plain.headers['content-type']).to.match(/^(text\/javascript|text\/css|image\/svg)/)
      const packed = await at(path, { headers: { 'accept-encoding': 'gzip' } })
      expect(packed.headers['content-encoding']).to.equal('gzip')
      expect((await at(path, { headers: { 'if-none-match': String(plain.headers.etag) } })).status).to.equal(304)
    }
    const page = await at('/console')
    expect((await at('/console', { headers: { 'if-none-match': String(page.headers.etag) } })).status).to.equal(304)
    expect((await at('/console', { method: 'HEAD' })).text).to.equal('')
  })

  it('sends nothing else of the machine', async () => {
    for (const name of [
      '..%2findex.html',
      '../index.html',
      '%2e%2e/package.json',
      'index.html',
      'built.txt',
      '.gz',
      'a.js',
      'a.js.gz',
      'x'.repeat(5_000),
      'a%00.js',
      '....//package.json',
    ])
      expect((await at(`/console/files/${name}`)).text, name)
        .not.to.contain('"dependencies"')
        .and.not.match(/^[0-9a-f]{64}$/)
    expect((await at('/console/files/missing-AAAA.js')).status).to.equal(404)
    expect((await at('/console', { method: 'POST', body: {} })).status).to.equal(405)
  })

  it('stays within its budgets: 160 KiB of scripts and 20 KiB of styles at first, 100 KiB for each further part', async () => {
    const { text } = await at('/console')
    const first = [...text.matchAll(/"\/console\/files\/([^"]+)"/g)].map(([, name]) => name!)
    const packed = async (names: readonly string[]) => {
      const sizes = names.map(async name =>
        Number((await at(`/console/files/${name}`, { headers: { 'accept-encoding': 'gzip' } })).headers['content-length'])
      )
      return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
    }
    expect(await packed(first.filter(name => name.endsWith('.js')))).to.be.within(1, 160 * 1024)
    expect(await packed(first.filter(name => name.endsWith('.css')))).to.be.within(1, 20 * 1024)
    const entry = first.find(name => name.startsWith('index-'))!
    const others = [
      ...new Set([...(await at(`/console/files/${entry}`)).text.matchAll(/([\w-]+\.js)/g)].map(([, name]) => name!)),
    ]
    const parts = others.filter(name => !first.includes(name))
    expect(parts.length).to.be.greaterThan(3)
    for (const part of parts) expect(await packed([part]), part).to.be.within(1, 100 * 1024)
  })

  it('has a policy without exceptions', async () => {
    const policy = String((await at('/console')).headers['content-security-policy'])
    expect(policy)
      .to.contain("default-src 'none'")
      .and.contain("require-trusted-types-for 'script'")
      .and.contain('trusted-types svc-worker')
    expect(policy).not.to.contain('unsafe').and.not.contain('http').and.not.contain('*')
  })
})
