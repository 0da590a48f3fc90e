import { expect } from 'chai'
import { AUDIENCE, type Issuer, startIssuer } from '../../plugins/api/auth-oidc/test/support/issuer.ts'
import { type Client, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'

const KEY = 'the-key-of-this-server-and-no-other'

/** Says who asks, and shows the headers that it sees. */
const ASKED: Stranger = {
  name: 'svc-plugin-asked',
  isolation: 'in-process',
  svc: { kind: 'routes', ...routesOf({ asked: { method: 'GET', path: '/asked', scope: 'read' } }) },
  code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const handle = async ({ headers }, ctx) => ({ body: { id: ctx.principal.id, headers } })
export default definePlugin({
  setup: scope => void scope.add(Routes, 'asked', { method: 'GET', path: '/asked', summary: 'Says', scope: 'read', handle }),
})`,
}

describe('credentials of a real server', function () {
  this.timeout(60_000)
  let issuer: Issuer
  let service: Awaited<ReturnType<typeof serveStrangers>>
  let client: Client
  let credentials: Readonly<Record<string, string>>

  before(async () => {
    issuer = await startIssuer()
    const auth = { enabled: true, oidc: { issuer: issuer.url, audience: AUDIENCE } }
    service = await serveStrangers([ASKED], {
      beside: ['auth-api-key', 'auth-bearer', 'auth-oidc'],
      config: { server: { auth, trusted_proxies: ['127.0.0.1'] } },
      env: { SVC_API_KEY: KEY },
      args: ['--workers', '2', '--debug'],
    })
    client = createClient(service.url, { keepAlive: false })
    const { out } = await runSvc(['tokens', 'create', '--name', 'guest'], { home: service.home, cwd: service.folder })
    credentials = { 'api-key': KEY, 'token:guest': out.trim(), [`${issuer.url}#anna`]: await issuer.token() }
  })
  after(async () => {
    client.close()
    await service[Symbol.asyncDispose]()
    await issuer[Symbol.asyncDispose]()
  })

  const inEach = (value: string): Readonly<Record<string, string>>[] => [
    { authorization: `Bearer ${value}` },
    { 'x-api-key': value },
    { 'x-goog-api-key': value },
  ]
  let addresses = 0
  const ask = (headers: Readonly<Record<string, string>>) =>
    client.send({ method: 'GET', path: '/asked', headers: { ...headers, 'x-forwarded-for': `203.0.113.${++addresses}` } })

  it('work in each of the three headers: the API key, a token of svc, a token of an issuer', async () => {
    for (const [id, value] of Object.entries(credentials)) {
      for (const headers of inEach(value)) {
        const { status, body } = await ask(headers)
        expect([status, (body as { id?: string }).id], Object.keys(headers).join()).to.deep.equal([200, id])
        expect(JSON.stringify(body)).to.not.include(value)
      }
      const all = Object.assign({}, ...inEach(value)) as Record<string, string>
      expect((await ask(all)).status, `${id} in all of them`).to.equal(200)
    }
  })

  it('are refused in pairs, in whichever headers, and beside anything unknown', async () => {
    const values = [...Object.values(credentials), 'svc_unknown', 'eyJhbGciOiJSUzI1NiJ9.e30.x', '']
    for (const first of Object.values(credentials))
      for (const second of values.filter(value => value !== first))
        for (const [a, b] of [
          [0, 1],
          [1, 2],
          [2, 0],
        ] as const) {
          const headers = { ...inEach(first)[a], ...inEach(second)[b] }
          expect((await ask(headers)).status, Object.keys(headers).join()).to.equal(401)
        }
  })

  it('are refused when revoked, in each of them', async () => {
    expect((await runSvc(['tokens', 'revoke', 'guest'], { home: service.home, cwd: service.folder })).code).to.equal(0)
    for (const headers of inEach(credentials['token:guest']!)) expect((await ask(headers)).status).to.equal(401)
  })

  it('are in no log line', () => {
    for (const value of Object.values(credentials)) expect(service.output()).to.not.include(value)
  })
})
