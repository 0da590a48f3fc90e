import { expect } from 'chai'
import { type Client, createClient } from '../support/client.ts'
import type { Service } from '../support/service.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'
import { describeWith } from '../support/needs.ts'

const SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
const KEY = 'the-key-of-this-server-and-no-other'

/** Answers what it is asked to answer. */
const echoing = (name: string, isolation: 'process' | 'in-process', more = '', moreRoutes: object = {}): Stranger => ({
  name: `svc-plugin-${name}`,
  isolation,
  svc: {
    kind: 'routes',
    ...routesOf({ [name]: { method: 'GET', path: `/${name}`, scope: 'read' }, ...moreRoutes }),
  },
  code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const route = (method, path, handle, more) => ({ method, path, summary: 'Answers', scope: 'read', handle, ...more })
export default definePlugin({
  setup(scope) {
    scope.add(Routes, '${name}', route('GET', '/${name}', async ({ query }) => JSON.parse(query.reply)))
    ${more}
  },
})`,
})

/** Streams of types of its own. */
const EVIL = echoing(
  'evil',
  'process',
  `const stream = (name, streams) => scope.add(Routes, name, { method: 'GET', path: '/' + name, summary: 'Streams', scope: 'read', streams,
      async *stream() { yield '<script>alert(1)</script>' } })
    stream('page', 'text/html')
    stream('events', 'text/event-stream')`,
  {
    page: { method: 'GET', path: '/page', scope: 'read' },
    events: { method: 'GET', path: '/events', scope: 'read' },
  }
)
const INSIDE = echoing('inside', 'in-process')

/** What a browser, a cache or a proxy takes from the server and from no plugin. */
const FORBIDDEN = {
  'set-cookie': 'session=evil',
  'content-security-policy': 'default-src *',
  'content-security-policy-report-only': 'default-src *; report-uri https://evil.example',
  'x-frame-options': 'ALLOWALL',
  'clear-site-data': '"*"',
  'access-control-allow-origin': '*',
  'access-control-allow-credentials': 'true',
  'service-worker-allowed': '/',
  'strict-transport-security': 'max-age=63072000; includeSubDomains',
  'x-request-id': 'forged',
  'x-content-type-options': 'sniff',
  'www-authenticate': 'Basic realm="svc"',
  refresh: '0; url=https://evil.example',
  link: '<https://evil.example/a.css>; rel=stylesheet',
  'alt-svc': 'h2="evil.example:443"',
  'report-to': '{"endpoints":[{"url":"https://evil.example"}]}',
  'reporting-endpoints': 'default="https://evil.example"',
  nel: '{"report_to":"default","max_age":1}',
  'permissions-policy': 'camera=*',
  'referrer-policy': 'unsafe-url',
  'cross-origin-resource-policy': 'cross-origin',
  'cross-origin-opener-policy': 'unsafe-none',
  'x-accel-redirect': '/internal/secret',
  'x-sendfile': '/etc/passwd',
  'x-ratelimit-remaining': '1000000',
  'content-encoding': 'gzip',
}
const FRAMING = {
  connection: 'x-mine, close',
  'content-length': '1',
  'transfer-encoding': 'chunked',
  'keep-alive': 'timeout=999',
  'proxy-authenticate': 'Basic',
  te: 'trailers',
  trailer: 'x-mine',
  upgrade: 'h2c',
  date: 'Thu, 01 Jan 1970 00:00:00 GMT',
}

describeWith('bubblewrap', 'answers of routes of isolated plugins', function () {
  this.timeout(60_000)
  let service: Service
  let client: Client
  before(async () => {
    service = await serveStrangers([EVIL, INSIDE], {
      beside: ['auth-api-key'],
      config: { server: { auth: { enabled: true } } },
      env: { SVC_API_KEY: KEY },
    })
    client = createClient(service.url)
  })
  after(async () => {
    client.close()
    await service[Symbol.asyncDispose]()
  })

  const get = (path: string, method = 'GET') => client.send({ method, path, headers: { 'x-api-key': KEY } })
  const ask = (reply: object, route = 'evil') => get(`/${route}?reply=${encodeURIComponent(JSON.stringify(reply))}`)
  const titled = (name: string) => name.replaceAll(/\b[a-z]/g, letter => letter.toUpperCase())

  it('carry no header that speaks for the server; the answer comes without it, and the log names plugin, route and header once', async () => {
    const plain = await ask({ text: 'x' })
    for (const [name, value] of Object.entries(FORBIDDEN))
      for (const spelling of [name, titled(name)]) {
        const { status, headers, text } = await ask({ headers: { [spelling]: value, 'x-plugin-mine': 'kept' }, text: 'x' })
        expect([status, text, headers['x-plugin-mine']], spelling).to.deep.equal([200, 'x', 'kept'])
        expect(headers[name], spelling).to.not.equal(value)
        if (name !== 'x-request-id') expect(headers[name], spelling).to.equal(plain.headers[name])
      }
    for (const name of Object.keys(FORBIDDEN)) await service.seen(new RegExp(`"header":"${name}"`))
    const warnings = service
      .output()
      .split('\n')
      .filter(line => line.includes('"header":"set-cookie"'))
    expect(warnings).to.have.length(1)
    expect(JSON.parse(warnings[0]!)).to.include({ level: 40, of: 'svc-plugin-evil', route: 'evil' })
  })

  for (const route of ['evil', 'inside'])
    it(`leave framing and connection to the server, from the route /${route} too`, async () => {
      for (const [name, value] of Object.entries(FRAMING)) {
        const { status, headers, text } = await ask({ headers: { [titled(name)]: value }, body: { said: 'hello' } }, route)
        expect([status, text], name).to.deep.equal([200, '{"said":"hello"}'])
        expect(headers[name], name).to.not.equal(value)
      }
    })

  for (const type of [
    'text/html',
    'TEXT/HTML; Charset=UTF-8',
    'image/svg+xml',
    'application/xml',
    'text/xml',
    'application/xhtml+xml',
    'application/pdf',
    'multipart/x-mixed-replace; boundary=x',
    'text/plain, text/html',
    'application/x-json',
    'text/plain; charset=utf-7',
    'nonsense',
    '',
  ])
    it(`run nothing in a browser as ${JSON.stringify(type)}`, async () => {
      for (const content of [{ text: '<script>alert(1)</script>' }, { body: '<script>alert(1)</script>' }]) {
        const { status, headers } = await ask({ headers: { 'Content-Type': type }, ...content })
        expect(status).to.equal(200)
        expect(headers).to.include({
          'content-security-policy': SANDBOX,
          'x-content-type-options': 'nosniff',
          'x-frame-options': 'DENY',
        })
        expect(headers['content-type']).to.equal(type)
      }
    })

  for (const type of [
    'text/javascript',
    'Application/JavaScript; charset=utf-8',
    'text/plain, text/javascript',
    'application/x-ecmascript',
    'text/jscript',
  ])
    it(`are no script for the pages of the server as ${JSON.stringify(type)}`, async () => {
      const { headers } = await ask({ headers: { 'Content-Type': type }, text: 'alert(1)' })
      expect(headers).to.include({ 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' })
    })

  for (const type of ['application/json', 'Application/Problem+JSON', 'text/plain; charset=utf-8', 'text/event-stream'])
    it(`are data as ${type}`, async () => {
      const { status, headers } = await ask({ headers: { 'content-type': type }, text: '{}' })
      expect([status, headers['content-type']]).to.deep.equal([200, type])
      expect(headers['content-security-policy']).to.not.include('sandbox')
    })

  it('have one type: two of them are no answer', async () => {
    const { status } = await ask({ headers: { 'content-type': 'text/plain', 'Content-Type': 'text/html' }, text: '<b>' })
    expect(status).to.equal(500)
  })

  it('run nothing in a browser as streams either', async () => {
    expect((await get('/page')).headers).to.include({ 'content-type': 'text/html', 'content-security-policy': SANDBOX })
    expect((await get('/events')).headers['content-security-policy']).to.not.include('sandbox')
  })

  it('send no client elsewhere: its key would go along', async () => {
    for (const location of [
      'https://evil.example/',
      '//evil.example/',
      '/\\evil.example/',
      '\\\\evil.example',
      '/\t/evil.example',
      'javascript:alert(1)',
    ]) {
      const { status, headers } = await ask({ status: 302, headers: { Location: location }, text: '' })
      expect([status, headers.location], location).to.deep.equal([500, undefined])
    }
    for (const status of [307, 308])
      expect((await ask({ status, headers: { location: '/evil' }, text: '' })).status, `${status}`).to.equal(500)
    const { status, headers } = await ask({ status: 303, headers: { location: '/evil?reply={}' }, text: '' })
    expect([status, headers.location]).to.deep.equal([303, '/evil?reply={}'])
  })
})

/** What a plugin in the process of the server may do, it may do still. */
describeWith('bubblewrap', 'answers of routes in the process of the server', function () {
  this.timeout(60_000)

  it('may have a policy and cookies of their own', async () => {
    await using service = await serveStrangers([INSIDE], { beside: ['metrics'] })
    const reply = {
      headers: { 'content-security-policy': "default-src 'self'", 'set-cookie': 'a=b', 'content-type': 'text/html' },
      text: '',
    }
    const { headers } = await fetch(`${service.url}/inside?reply=${encodeURIComponent(JSON.stringify(reply))}`)
    expect([headers.get('content-security-policy'), headers.get('set-cookie')]).to.deep.equal(["default-src 'self'", 'a=b'])
  })
})
