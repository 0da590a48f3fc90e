import { expect } from 'chai'
import { type AuthScheme, AuthSchemes, CREDENTIAL_HEADERS, Mounts, type Route } from '@svc/core/contracts'
import { credentialIn } from '@svc/plugin-kit'
import { item } from '@svc/testing'
import { call, raw, serve } from './support/client.ts'
import { who } from './support/who.ts'

/** A scheme that reads its keys in all three headers, as those of svc do. */
const reading = (known: Readonly<Record<string, string>>): AuthScheme => ({
  headers: CREDENTIAL_HEADERS.names,
  challenge: 'Key',
  async authenticate({ headers }) {
    const given = credentialIn(headers) ?? ''
    const id = Object.hasOwn(known, given) ? known[given] : undefined
    return id === undefined ? undefined : { id, scopes: ['*'] }
  },
})
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
const key = (value: string) => ({ 'x-api-key': value })
const google = (value: string) => ({ 'x-goog-api-key': value })

const echo: Route = {
  method: 'GET',
  path: '/echo',
  summary: 'Shows its headers',
  scope: 'read',
  handle: async ({ headers }, ctx) => ({ body: { headers, id: ctx.requestId } }),
}
const mount = {
  path: '/raw',
  scope: 'read' as const,
  handle: async ({ rawHeaders }: { rawHeaders: string[] }, response: { end(text: string): void }) =>
    response.end(JSON.stringify(rawHeaders)),
}

describe('a key in the headers Authorization, X-API-Key and X-Goog-Api-Key', () => {
  const lines: string[] = []
  let server: Awaited<ReturnType<typeof serve>>
  before(async () => {
    const gifts = [
      item(AuthSchemes, 'people', reading({ 'key-of-ada': 'ada' })),
      item(AuthSchemes, 'machines', reading({ 'key-of-bot': 'bot' })),
      item(Mounts, 'raw', mount as never),
    ]
    const log = { level: 'debug' as const, destination: { write: (line: string) => void lines.push(line) } }
    const config = { auth: { enabled: true }, trusted_proxies: ['127.0.0.1'] }
    server = await serve({ who, echo }, config, log, gifts)
  })
  after(() => server.host.close())
  let addresses = 0
  /** Each case has an address, so that refusals of one do not slow down another. */
  const ask = (headers: Readonly<Record<string, string>>, path = '/who', from = `203.0.113.${++addresses}`) =>
    call(`${server.url}${path}`, { headers: { ...headers, 'x-forwarded-for': from } })
  const rawly = (...headers: string[]) =>
    raw(
      server.url,
      `GET /who HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.${++addresses}\r\n${headers.join('\r\n')}\r\n\r\n`
    )

  it('is the same key in each of them', async () => {
    for (const headers of [bearer('key-of-ada'), key('key-of-ada'), google('key-of-ada')])
      expect((await ask(headers)).body, JSON.stringify(headers)).to.include({ id: 'ada' })
    for (const headers of [bearer('key-of-bot'), key('key-of-bot'), google('key-of-bot')])
      expect((await ask(headers)).body, JSON.stringify(headers)).to.include({ id: 'bot' })
  })

  it('can be in several of them', async () => {
    const all = { ...bearer('key-of-ada'), ...key('key-of-ada'), ...google('key-of-ada') }
    expect((await ask(all)).body).to.include({ id: 'ada' })
    expect((await ask({ ...key('key-of-ada'), authorization: 'Basic cHJveHk6cHJveHk=' })).status, 'of a proxy').to.equal(200)
  })

  const REFUSED: Readonly<Record<string, Record<string, string>>> = {
    'two good ones': { ...bearer('key-of-ada'), ...key('key-of-bot') },
    'a good one and an unknown one': { ...bearer('key-of-ada'), ...google('nothing') },
    'a good one and an empty one': { ...bearer('key-of-ada'), ...key('') },
    'a good one and a Bearer without a token': { authorization: 'Bearer', ...key('key-of-ada') },
    'a good one twice in a list': key('key-of-ada, key-of-ada'),
    'a good one with others in a list': bearer('key-of-ada,key-of-bot'),
    'a good one with the word of another header': key('Bearer key-of-ada'),
    'a good one without the word Bearer': { authorization: 'key-of-ada' },
    'the word twice': { authorization: 'Bearer Bearer key-of-ada' },
    'a good one in other letters': key('KEY-OF-ADA'),
    'a name of the prototype': google('constructor'),
    'a word that begins like Bearer': { ...key('key-of-ada'), authorization: 'Bearer-x key-of-ada' },
  }
  for (const [what, headers] of Object.entries(REFUSED))
    it(`is refused: ${what}`, async () => {
      const { status, body, headers: answer } = await ask(headers)
      expect([status, body.error_code, body.details]).to.deep.equal([401, 'AUTHENTICATION_FAILED', {}])
      expect(answer.get('www-authenticate')).to.equal('Key')
    })

  it('is refused in a header that is sent twice, however it is written', async () => {
    for (const name of ['Authorization: Bearer ', 'X-API-Key: ', 'X-Goog-Api-Key: ']) {
      const line = `${name}key-of-ada`
      for (const twice of [
        [line, line],
        [line, line.toUpperCase().replace('KEY-OF-ADA', 'key-of-ada')],
        [line, name.trim()],
      ])
        expect((await rawly(...twice)).status, twice.join(' | ')).to.equal(401)
      expect((await rawly(line)).status, line).to.equal(200)
    }
  })

  it('is refused with a second one behind a folded line or a control character', async () => {
    for (const lines of [['X-API-Key: key-of-ada', ' X-Goog-Api-Key: key-of-bot'], ['X-API-Key: key-of-ada\u0000key-of-bot']])
      expect((await rawly(...lines)).status, JSON.stringify(lines)).to.be.oneOf([400, 401])
    expect((await rawly('X_API_Key: key-of-ada')).status, 'a name with other characters is another header').to.equal(401)
  })

  it('counts as one credential for the limit of guesses, in whichever header it comes', async () => {
    const from = '198.51.100.1'
    expect((await ask(key('key-of-ada'), '/who', from)).status).to.equal(200)
    for (let n = 0; n < 10; n++) {
      const headers = [bearer, key, google][n % 3]!(`wrong-${n}`)
      expect((await ask(headers, '/who', from)).status).to.equal(401)
    }
    expect((await ask(google('key-of-bot'), '/who', from)).status, 'good, and never seen').to.equal(429)
    for (const headers of [bearer('key-of-ada'), google('key-of-ada'), key('key-of-ada')])
      expect((await ask(headers, '/who', from)).status, 'seen in another header').to.equal(200)
    const both = { ...key('key-of-ada'), ...google('key-of-bot') }
    expect((await ask(both, '/who', from)).status, 'beside a guess').to.equal(429)
  })

  it('reaches neither routes nor mounts nor the log, while headers of model APIs do', async () => {
    const headers = {
      'anthropic-beta': 'a-2026,b-2026',
      'anthropic-version': '2023-06-01',
      'x-session-id': 's-1',
      'openai-organization': 'org',
      'openai-beta': 'responses=v1',
      'x-request-id': 'req-7',
    }
    for (const credential of [bearer('key-of-ada'), key('key-of-ada'), google('key-of-ada')]) {
      const { body, headers: answer, text } = await ask({ ...headers, ...credential }, '/echo')
      expect(body.headers).to.include({ ...headers })
      expect(body.id).to.equal('req-7')
      expect(answer.get('x-request-id')).to.equal('req-7')
      expect(text).to.not.include('key-of-ada')
      expect((await ask(credential, '/raw')).text).to.not.include('key-of-ada')
    }
    expect(lines.join('')).to.not.match(/key-of-(ada|bot)|wrong-\d/)
  })
})

describe('a scheme that names its cookies', () => {
  const seen: object[] = []
  const session: AuthScheme = {
    headers: ['cookie'],
    cookies: ['session'],
    challenge: 'Cookie',
    async authenticate({ headers, fetchSite }) {
      seen.push({ ...headers, fetchSite })
      return headers.cookie === 'session=good' ? { id: 'ada', scopes: ['*'] } : undefined
    },
  }
  let server: Awaited<ReturnType<typeof serve>>
  before(async () => {
    server = await serve({ who, echo }, { auth: { enabled: true } }, undefined, [item(AuthSchemes, 'session', session)])
  })
  after(() => server.host.close())
  const ask = (cookie: string, more = {}) => call(`${server.url}/who`, { headers: { cookie, ...more } })

  it('sees no others, and which site caused the request', async () => {
    expect((await ask('theme=dark; session=good;other=1', { 'sec-fetch-site': 'same-origin' })).status).to.equal(200)
    expect(seen.at(-1)).to.deep.equal({ cookie: 'session=good', fetchSite: 'same-origin' })
    const before = seen.length
    expect((await ask('theme=dark; xsession=good; sessionx=good; session')).status).to.equal(401)
    expect(seen).to.have.length(before)
  })

  it('counts as guesses only requests with them', async () => {
    for (let i = 0; i < 15; i++) expect((await ask(`other=${i}`)).status).to.equal(401)
    const statuses: number[] = []
    for (let i = 0; i < 11; i++) statuses.push((await ask(`session=${i}`)).status)
    expect(statuses.at(-1)).to.equal(429)
  })
})
