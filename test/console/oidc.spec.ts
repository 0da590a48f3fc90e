import { request } from 'node:http'
import { freePort } from '@svc/testing/engines'
import { expect } from 'chai'
import { startIssuer } from '../../plugins/api/auth-oidc/test/support/issuer.ts'
import { describeWith } from '../support/needs.ts'
import { type Service, startService } from '../support/service.ts'
import { expectAccessible, openBrowser, openConsole } from './support/browser.ts'
import { type HostileIssuer, KEY, startAt, startHostile, startProvider } from './support/issuers.ts'

const LOGIN = '/api/v1/console/login'
const SESSION = '/api/v1/console/session'
const OWN = { 'sec-fetch-site': 'same-origin' }

interface Answer {
  readonly status: number
  readonly cookies: readonly string[]
  readonly body: Readonly<Record<string, unknown>>
}
type Headers = Readonly<Record<string, string>>

let localAddress = '127.0.2.1'
let tests = 0

/** A request with exactly these headers: `fetch` of Node adds its own. */
function ask(url: string, method: string, headers: Headers = {}, body?: unknown): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = request(url, { method, agent: false, localAddress, headers: { ...json, ...headers } }, answer => {
    let text = ''
    answer.setEncoding('utf8')
    answer.on('data', piece => (text += piece))
    answer.on('end', () =>
      resolve({
        status: answer.statusCode!,
        cookies: answer.headers['set-cookie'] ?? [],
        body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
      })
    )
  })
  sent.on('error', reject)
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  return promise
}

const cookieIn = ({ cookies }: Answer) => (cookies[0] ?? '').split(';', 1)[0]!

describeWith('chromium', 'the login of the console at an issuer, in a browser', function () {
  this.timeout(120_000)

  it('goes there and back to the place, refreshes the token, and signs out at the issuer too', async () => {
    const port = await freePort()
    await using issuer = await startProvider(`http://127.0.0.1:${port}`, { seconds: 3 })
    await using service = await startAt(issuer.url, port, ['--workers', '2'])
    await using browser = { close: await openBrowser(), [Symbol.asyncDispose]: () => browser.close.close() }
    await using console = await openConsole(browser.close, `${service.url}/console/usage?by=model`)
    const { page, context } = console
    const button = page.getByRole('button', { name: 'Sign in with Example' })
    await button.waitFor()
    await expectAccessible(page, 'the login with an issuer')
    await button.click()
    await page.locator('input[name=login]').fill('anna')
    await page.locator('input[name=password]').fill('any')
    await page.locator('button[type=submit]').click()
    await page.getByRole('button', { name: /continue/i }).click()
    await page.waitForURL(`${service.url}/console/usage?by=model`)
    await page.getByText(`${issuer.url}#anna`).first().waitFor()
    expect(issuer.grants).to.include('authorization_code')
    const session = (await context.cookies()).find(({ name }) => /^svc_console_[0-9a-f]{8}$/.test(name))!
    expect(session).to.include({ httpOnly: true, sameSite: 'Strict' })
    expect(session.value.length).to.be.lessThan(1_000)
    // no address of this server in the history has the answer of the issuer
    await page.goBack()
    expect(page.url()).not.to.contain('code=')
    await page.goto(`${service.url}/console/usage`)
    // the token lives for three seconds, and the issuer ends the grant if a refresh token comes twice: also not from two workers
    const me = () => page.evaluate("fetch('/api/v1/me').then(answer => answer.status)")
    for (let i = 0; i < 2; i++) {
      await page.waitForTimeout(3_500)
      const before = issuer.grants.length
      expect(await Promise.all(Array.from({ length: 6 }, me))).to.deep.equal([200, 200, 200, 200, 200, 200])
      expect(issuer.grants.slice(before)).to.include('refresh_token')
    }
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(url => url.href.startsWith(issuer.url))
    expect(page.url()).not.to.contain('id_token_hint')
    const copy = `${session.name}=${session.value}`
    expect((await ask(`${service.url}/api/v1/me`, 'GET', { ...OWN, cookie: copy })).status).to.equal(401)
    expect(service.output()).not.to.match(/code=|code_verifier|eyJ[\w-]{20}|the-secret-of-the-client/)
  })

  it('refuses an answer that was not begun in this tab, and shows no text of its address', async () => {
    const port = await freePort()
    await using hostile = await startHostile()
    await using service = await startAt(hostile.issuer.url, port)
    await using browser = { close: await openBrowser(), [Symbol.asyncDispose]: () => browser.close.close() }
    const address = `${service.url}/console/oidc?code=theirs&state=theirs&iss=${hostile.issuer.url}&error_description=Call+me`
    await using console = await openConsole(browser.close, address)
    await console.page.getByText('was not begun in this tab').waitFor()
    expect(console.page.url()).to.equal(`${service.url}/console/oidc`)
    expect(await console.page.content()).not.to.contain('Call me')
    expect(console.requests).not.to.include(`POST ${SESSION}`)
    expect(hostile.asked).to.deep.equal([])
  })

  it('is not offered where it is not configured', async () => {
    await using service = await startService({ env: { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true' } })
    await using browser = { close: await openBrowser(), [Symbol.asyncDispose]: () => browser.close.close() }
    await using console = await openConsole(browser.close, `${service.url}/console`)
    await console.page.getByLabel('Key or token').waitFor()
    await console.page.waitForTimeout(500)
    expect(await console.page.getByRole('button').allTextContents()).to.deep.equal(['Sign in'])
    expect((await ask(`${service.url}${LOGIN}`, 'GET')).body).to.deep.equal({})
    expect((await ask(`${service.url}${LOGIN}`, 'POST', OWN, {})).status).to.equal(404)
  })
})

describe('attacks on the login of the console at an issuer', function () {
  this.timeout(60_000)
  let hostile: HostileIssuer
  let service: Service
  let origin: string
  before(async () => {
    hostile = await startHostile()
    const port = await freePort()
    origin = `http://127.0.0.1:${port}`
    service = await startAt(hostile.issuer.url, port)
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await hostile?.[Symbol.asyncDispose]()
  })
  // the server limits guesses by address
  beforeEach(() => {
    localAddress = `127.0.2.${++tests}`
    hostile.next = {}
    hostile.asked.length = 0
  })

  const beginAs = (headers: Headers, body: unknown = {}) => ask(`${service.url}${LOGIN}`, 'POST', headers, body)
  interface Begun {
    readonly cookie: string
    readonly state: string
    readonly url: URL
  }
  /** Begins a login, whose tokens then have its nonce. */
  const begin = async (body: unknown = {}): Promise<Begun> => {
    const answer = await beginAs({ ...OWN, origin }, body)
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    const url = new URL(String(answer.body.url))
    hostile.next = { nonce: url.searchParams.get('nonce')! }
    return { cookie: cookieIn(answer), state: url.searchParams.get('state')!, url }
  }
  const finishAs = (answer: string, cookie: string, more: Headers = OWN) => {
    const credential = `console_oidc.${Buffer.from(answer).toString('base64url')}`
    const headers = { ...more, authorization: `Bearer ${credential}`, ...(cookie === '' ? {} : { cookie }) }
    return ask(`${service.url}${SESSION}`, 'POST', headers, { credential })
  }
  const answerOf = (state: string, more = '') => `code=c&state=${state}&iss=${encodeURIComponent(hostile.issuer.url)}${more}`
  const finish = ({ state, cookie }: Begun) => finishAs(answerOf(state), cookie)
  const expectRefused = ({ status, cookies }: Answer, why: string) => {
    expect(status, why).to.equal(401)
    expect(cookies, why).to.deep.equal([])
  }

  it('sends the verifier that fits the challenge, the secret in a header, and the exact redirect URI', async () => {
    const begun = await begin({ place: '/console/runs?status=failed' })
    const { searchParams } = begun.url
    expect(Object.fromEntries(searchParams)).to.include({
      client_id: 'console',
      response_type: 'code',
      redirect_uri: `${origin}/console/oidc`,
      code_challenge_method: 'S256',
      scope: 'openid offline_access read chat',
      resource: 'urn:svc',
    })
    const answer = await finish(begun)
    expect(answer.body).to.include({ principal: `${hostile.issuer.url}#anna`, place: '/console/runs?status=failed' })
    const [asked] = hostile.asked
    const digest = await crypto.subtle.digest('SHA-256', Buffer.from(asked!.get('code_verifier')!))
    expect(Buffer.from(digest).toString('base64url')).to.equal(searchParams.get('code_challenge'))
    expect(asked!.get('redirect_uri')).to.equal(`${origin}/console/oidc`)
    expect(asked!.has('client_secret')).to.equal(false)
    const cookie = cookieIn(answer)
    const me = await ask(`${service.url}/api/v1/me`, 'GET', { ...OWN, cookie })
    expect(me.body).to.include({ principal: `${hostile.issuer.url}#anna`, scheme: 'console_session' })
    const ended = await ask(`${service.url}${SESSION}`, 'DELETE', { ...OWN, cookie })
    expect(new URL(String(ended.body.end_session_url)).searchParams.get('post_logout_redirect_uri')).to.equal(`${origin}/console`)
    expect((await ask(`${service.url}/api/v1/me`, 'GET', { ...OWN, cookie })).status).to.equal(401)
  })

  it('begins for its own page only, at the configured origin', async () => {
    for (const site of ['cross-site', 'same-site', 'none'])
      expect((await beginAs({ 'sec-fetch-site': site, origin })).status, site).to.equal(400)
    expect((await beginAs({ origin })).status).to.equal(400)
    expect((await beginAs(OWN)).status).to.equal(400)
    const other = origin.replace('127.0.0.1', 'localhost')
    expect((await beginAs({ ...OWN, origin: other, host: new URL(other).host })).status).to.equal(400)
  })

  it('leads to no other place after the login', async () => {
    for (const place of [
      'https://evil.example',
      '//evil.example',
      '/console//evil.example',
      '/console/\\evil.example',
      '/consolevil',
      '/\\evil.example',
      '/api/v1/me',
      '/console/\t/evil.example',
      'javascript:alert(1)',
      `/console/${'x'.repeat(1_000)}`,
      7,
    ])
      expect((await beginAs({ ...OWN, origin }, { place })).status, String(place)).to.equal(400)
  })

  it('refuses the login of someone else: no cookie, their cookie, two cookies, another site', async () => {
    const [mine, theirs] = [await begin(), await begin()]
    expectRefused(await finishAs(answerOf(mine.state), ''), 'no cookie')
    expectRefused(await finishAs(answerOf(mine.state), theirs.cookie), 'the cookie of another login')
    expectRefused(await finishAs(answerOf(theirs.state), `${mine.cookie}; ${theirs.cookie}`), 'two cookies')
    expect((await finishAs(answerOf(theirs.state), theirs.cookie, { 'sec-fetch-site': 'cross-site' })).status).to.equal(403)
    expect(hostile.asked, 'no code went to the issuer').to.deep.equal([])
    // none of this has used the login up
    expect((await finish(theirs)).status).to.equal(201)
  })

  it('refuses a changed cookie, and the cookie of a session in its place', async () => {
    const begun = await begin()
    const [name, value = ''] = begun.cookie.split('=')
    const [version, id, sealed = ''] = value.split('.')
    const bytes = Buffer.from(sealed, 'base64url')
    bytes[40]! ^= 1
    expectRefused(await finishAs(answerOf(begun.state), `${name}=${version}.${id}.${bytes.toString('base64url')}`), 'changed')
    const session = cookieIn(await finish(begun))
    expectRefused(await finishAs(answerOf(begun.state), `${name}=${session.split('=')[1]}`), 'a session')
    const asSession = `${session.split('=')[0]}=${value}`
    expect((await ask(`${service.url}/api/v1/me`, 'GET', { ...OWN, cookie: asSession })).status).to.equal(401)
  })

  it('accepts an answer once, also from two requests at the same time', async () => {
    const begun = await begin()
    const answers = await Promise.all([finish(begun), finish(begun), finish(begun)])
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).to.deep.equal([201, 401, 401])
    expectRefused(await finish(begun), 'replayed')
    expect(hostile.asked.length).to.equal(1)
  })

  it('refuses the answer of another issuer, and one without a name', async () => {
    for (const iss of ['&iss=https%3A%2F%2Fevil.example', '']) {
      const { state, cookie } = await begin()
      expectRefused(await finishAs(`code=c&state=${state}${iss}`, cookie), iss)
    }
    const { state, cookie } = await begin()
    expectRefused(await finishAs(answerOf(state, `&state=${state}`), cookie), 'two states')
    expect(hostile.asked).to.deep.equal([])
  })

  it('refuses tokens with another nonce, of another audience, of another signer, for another client, or expired', async () => {
    await using foreign = await startIssuer()
    const past = Math.floor(Date.now() / 1_000) - 3_600
    const [claim, ours] = ['OAUTH_JWT_CLAIM_COMPARISON_FAILED', 'not for this server']
    const wrong: readonly [string, Partial<HostileIssuer['next']>, string][] = [
      ['another nonce', { nonce: 'another' }, claim],
      ['another audience', { access: { aud: 'other' } }, ours],
      ['another signer', { signer: foreign }, 'OAUTH_KEY_SELECTION_FAILED'],
      ['another client', { id: { aud: 'other' } }, claim],
      ['another issuer', { id: { iss: foreign.url } }, claim],
      ['expired', { access: { exp: past } }, ours],
    ]
    for (const [why, next, reason] of wrong) {
      const begun = await begin()
      hostile.next = { ...hostile.next, ...next }
      const answer = await finish(begun)
      expectRefused(answer, why)
      expect(JSON.stringify(answer.body), why).to.contain(reason)
    }
  })

  it('gives no rights that the token has not', async () => {
    const begun = await begin()
    hostile.next = { ...hostile.next, access: { scope: 'chat' } }
    const answer = await finish(begun)
    expect([answer.status, answer.cookies]).to.deep.equal([403, []])
  })

  it('opens nothing but a session with the answer, and counts guesses', async () => {
    const begun = await begin()
    const credential = `console_oidc.${Buffer.from(answerOf(begun.state)).toString('base64url')}`
    const headers = { ...OWN, cookie: begun.cookie, authorization: `Bearer ${credential}` }
    expect((await ask(`${service.url}/api/v1/me`, 'GET', headers)).status).to.be.oneOf([401, 404])
    const seen = []
    for (let i = 0; i < 12; i++) seen.push((await finishAs(answerOf(`guess${i}`), begun.cookie)).status)
    expect(seen.slice(-2)).to.deep.equal([429, 429])
    expect(hostile.asked).to.deep.equal([])
  })

  it('asks the issuer nothing for begun logins, however many', async () => {
    const asked = hostile.issuer.asked.length
    const answers = await Promise.all(Array.from({ length: 200 }, () => beginAs({ ...OWN, origin })))
    expect(answers.filter(({ status }) => status === 200).length).to.equal(200)
    expect(hostile.issuer.asked.length).to.equal(asked)
  })

  it('writes neither codes nor tokens nor the secret into the log', async () => {
    const begun = await begin()
    await finishAs(answerOf(begun.state).replace('code=c', 'code=a-secret-code'), begun.cookie)
    // the log is there, with each request
    expect(service.output()).to.contain('/api/v1/console/session')
    expect(service.output()).not.to.match(/a-secret-code|eyJ[\w-]{20}|the-refresh-token|the-secret-of-the-client/)
    expect(service.output()).not.to.contain(begun.state)
  })
})
