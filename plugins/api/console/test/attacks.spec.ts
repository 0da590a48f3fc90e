import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningHost, systemContext } from '@svc/core'
import { Http, type Route, Routes, Tokens } from '@svc/core/contracts'
import { item, testHost } from '@svc/testing'
import { expect } from 'chai'

const ctx = systemContext(new AbortController().signal)
const PLUGINS = ['../../http/', '../../../storage/sqlite/', '../../auth-bearer/', '../../rate-limit/', '..'].map(
  path => new URL(path, import.meta.url)
)
const SESSION = '/api/v1/console/session'
const OWN = { 'sec-fetch-site': 'same-origin' }
const who: Route = {
  method: 'GET',
  path: '/who',
  summary: 'Says who asks',
  scope: 'read',
  handle: async (_request, { principal }) => ({ body: { ...principal } }),
}

interface Answer {
  readonly status: number
  readonly cookie: string
  readonly text: string
}
type Headers = Readonly<Record<string, string | readonly string[]>>

/** A request over a connection of its own, with exactly these headers: `fetch` of Node adds its own. */
function ask(url: string, method: string, headers: Headers, body?: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const sent = request(url, { method, agent: false, headers: headers as Record<string, string> }, answer => {
    let text = ''
    answer.setEncoding('utf8')
    answer.on('data', piece => (text += piece))
    answer.on('error', reject)
    answer.on('end', () =>
      resolve({ status: answer.statusCode!, cookie: (answer.headers['set-cookie']?.[0] ?? '').split(';', 1)[0]!, text })
    )
  })
  sent.on('error', reject)
  sent.end(body)
  return promise
}

interface Server {
  readonly url: string
  readonly host: RunningHost
}
const signIn = ({ url }: Server, credential: string, more: Headers = {}) =>
  ask(
    `${url}${SESSION}`,
    'POST',
    { ...OWN, 'content-type': 'application/json', authorization: `Bearer ${credential}`, ...more },
    JSON.stringify({ credential })
  )
const signOut = ({ url }: Server, cookie: string, end = '') => ask(`${url}${SESSION}${end}`, 'DELETE', { ...OWN, cookie })
const whoIs = ({ url }: Server, cookie: string, more: Headers = OWN) => ask(`${url}/who`, 'GET', { cookie, ...more })
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)

const makeToken = async ({ host }: Server, name: string) =>
  (await host.service(Tokens).create({ name, scopes: ['read'], ttlMs: 600_000 }, ctx)).token

/** So many servers with one store, as workers have, and a token of theirs with its cookie. */
async function inSession(
  work: (servers: readonly Server[], token: string, cookie: string) => Promise<void>,
  { servers = 1, server = {} }: { readonly servers?: number; readonly server?: object } = {}
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-console-'))
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const all: Server[] = []
  for (let i = 0; i < servers; i++) {
    const config = { server: { port: 0, auth: { enabled: true }, ...server }, store: { path: join(folder, 'svc.db') } }
    const host = await testHost(PLUGINS, { config, give: [item(Routes, 'who', who)] })
    stack.defer(() => host.close())
    all.push({ host, url: (await host.service(Http).address(ctx))!.url })
  }
  const token = await makeToken(all[0]!, 'operator')
  const { status, cookie, text } = await signIn(all[0]!, token)
  expect(status, text).to.equal(201)
  await work(all, token, cookie)
}

describe('attacks on sessions of the console', function () {
  this.timeout(60_000)

  it('a logout ends the session, however its path is written', async () => {
    await inSession(async ([server], _token, cookie) => {
      expect((await signOut(server!, cookie, '/')).status).to.equal(204)
      expect((await whoIs(server!, cookie)).status).to.equal(401)
    })
  })

  it('a copy of the cookie is worthless at every worker when the logout is answered', async () => {
    await inSession(
      async (servers, _token, cookie) => {
        for (let i = 0; i < 3; i++)
          expect(statuses(await Promise.all(servers.map(server => whoIs(server, cookie))))).to.deep.equal([200, 200])
        expect((await signOut(servers[0]!, cookie)).status).to.equal(204)
        expect(statuses(await Promise.all(servers.map(server => whoIs(server, cookie))))).to.deep.equal([401, 401])
      },
      { servers: 2 }
    )
  })

  it('a page of another port cannot lock the operator out with images of this server, nor can typed addresses', async () => {
    await inSession(async ([server], _token, cookie) => {
      for (let i = 0; i < 12; i++)
        expect((await whoIs(server!, cookie, { 'sec-fetch-site': i % 2 ? 'same-site' : 'none' })).status).to.equal(403)
      expect((await whoIs(server!, cookie)).status).to.equal(200)
      expect((await signIn(server!, await makeToken(server!, 'never-seen'))).status).to.equal(201)
    })
  })

  it('logins are limited like other requests, so that sessions that have ended cannot fill the store', async () => {
    await inSession(
      async ([server], token) => {
        const seen = []
        for (let i = 0; i < 5; i++) seen.push((await signIn(server!, token)).status)
        expect(seen).to.deep.equal([201, 201, 201, 429, 429])
      },
      { server: { rate_limit: { enabled: true, requests_per_minute: 4 } } }
    )
  })

  it('a login takes no other form of a request', async () => {
    await inSession(async ([server], token) => {
      const body = JSON.stringify({ credential: token })
      const as = (headers: Headers, text = body) =>
        ask(`${server!.url}${SESSION}`, 'POST', { ...OWN, authorization: `Bearer ${token}`, ...headers }, text)
      const json = { 'content-type': 'application/json' }
      // a form of another site can send these types without a preflight
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
        expect((await as({ 'content-type': type })).status, type).to.be.oneOf([400, 415])
      for (const site of [['same-origin', 'same-origin'], ['cross-site', 'same-origin'], 'Same-Origin', 'same-origin;x'])
        expect((await as({ ...json, 'sec-fetch-site': site })).status, String(site)).to.equal(400)
      for (const text of [
        `{"credential":"${token}","constructor":{"prototype":{"id":"system"}}}`,
        `{"credential":["${token}"]}`,
        `{"credential":"${token}\\r\\nSet-Cookie: a=b"}`,
        `{"credential":"${token}","credential":"other"}`,
      ]) {
        const { status, cookie } = await as(json, text)
        expect([400, 401], text).to.include(status)
        expect(cookie, text).to.equal('')
      }
      // the server drops the member
      const { cookie } = await as(json, `{"credential":"${token}","__proto__":{"scopes":["*"],"credential":"x"}}`)
      expect(JSON.parse((await whoIs(server!, cookie)).text)).to.deep.include({ id: 'token:operator', scopes: ['read'] })
      for (const host of ['evil.example', '127.0.0.1.evil.example', 'localhost@evil.example', 'localhost, evil.example'])
        expect((await as({ ...json, host })).status, host).to.be.oneOf([400, 403])
      for (const origin of ['null', 'http://localhost:1', 'https://evil.example'])
        expect((await as({ ...json, origin })).status, origin).to.equal(403)
    })
  })
})
