import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Json } from '@svc/core/contracts'
import { loginMcp, type TokenStorage } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { remote } from './support/client.ts'
import { open, type Opened, toolServer } from './support/servers.ts'

/** A login server where everybody may in at once. It gives tokens t1, t2, …, each with a refresh token that is good once. */
async function loginServer() {
  const grants: string[] = []
  const good = { token: '', refresh: '' }
  let given = 0
  const server: Opened = await open(async request => {
    const { pathname, searchParams } = new URL(request.url!, server.url)
    if (pathname.startsWith('/.well-known/oauth-authorization-server')) return { body: metadataOf(server.url) }
    if (pathname === '/register')
      return { status: 201, body: { ...(JSON.parse(await text(request)) as object), client_id: 'c1' } }
    if (pathname === '/authorize') {
      const back = new URL(searchParams.get('redirect_uri')!)
      back.searchParams.set('code', 'good')
      back.searchParams.set('state', searchParams.get('state')!)
      return { status: 302, headers: { location: back.href } }
    }
    const form = new URLSearchParams(await text(request))
    grants.push(form.get('grant_type')!)
    if (form.has('refresh_token') && form.get('refresh_token') !== good.refresh)
      return { status: 400, body: { error: 'invalid_grant' } }
    good.token = `t${++given}`
    good.refresh = `r${given}`
    return { body: { access_token: good.token, refresh_token: good.refresh, token_type: 'bearer', expires_in: 3_600 } }
  })
  return { url: server.url, grants, good, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const metadataOf = (url: string) => ({
  issuer: url,
  authorization_endpoint: `${url}/authorize`,
  token_endpoint: `${url}/token`,
  registration_endpoint: `${url}/register`,
  response_types_supported: ['code'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none'],
})

/** A tool server that sends people to this login server. */
async function guardedBy(login: { readonly url: string; readonly good: { readonly token: string } }) {
  const tools = await toolServer(header => header !== undefined && header === `Bearer ${login.good.token}`)
  const server: Opened = await open(async request => {
    if (request.url!.startsWith('/.well-known/oauth-protected-resource'))
      return { body: { resource: `${server.url}/mcp`, authorization_servers: [login.url] } }
    if (request.headers.authorization !== `Bearer ${login.good.token}`)
      return {
        status: 401,
        headers: { 'www-authenticate': `Bearer resource_metadata="${server.url}/.well-known/oauth-protected-resource/mcp"` },
        body: {},
      }
    const { authorization = '' } = request.headers
    const answer = await fetch(tools.url, { method: 'POST', headers: { authorization }, body: await text(request) })
    return { status: answer.status, body: answer.status === 202 ? undefined : await answer.json() }
  })
  return {
    url: `${server.url}/mcp`,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await tools[Symbol.asyncDispose]()
    },
  }
}

function storage(): TokenStorage & { value: Json | undefined } {
  return {
    value: undefined,
    async load() {
      return this.value
    },
    async save(value) {
      this.value = value
    },
  }
}

/** What a browser does. */
const show = async (page: URL) => void (await fetch(page).then(answer => answer.text()))
const ONCE = { retryAttempts: 0 } as const

describe('logging in', () => {
  it('stores tokens: later connections need no person', async () => {
    await using login = await loginServer()
    await using server = await guardedBy(login)
    const kept = storage()
    await using before = remote(server.url, { oauth: { storage: kept, issuer: login.url }, ...ONCE })
    await before.connect().catch(() => {})
    expect(before.status().state).to.equal('needs_auth')
    await loginMcp({ url: server.url, oauth: { storage: kept, issuer: login.url } }, { show })
    await using after = remote(server.url, { oauth: { storage: kept, issuer: login.url }, ...ONCE })
    expect((await after.callTool('now', {})).content).to.deep.equal([{ type: 'text', text: 'noon' }])
    expect(login.grants).to.deep.equal(['authorization_code'])
    // who was refused before is let in when somebody says so
    await before.setEnabled(true)
    expect((await before.callTool('now', {})).error).to.equal(null)
  })

  it('is not needed again if the token can be refreshed, once for all rejected requests', async () => {
    await using login = await loginServer()
    await using server = await guardedBy(login)
    const kept = storage()
    await loginMcp({ url: server.url, oauth: { storage: kept, issuer: login.url } }, { show })
    await using client = remote(server.url, { oauth: { storage: kept, issuer: login.url }, ...ONCE })
    expect((await client.callTool('now', {})).error).to.equal(null)
    login.good.token = 'over'
    const answers = await Promise.all([1, 2, 3, 4].map(() => client.callTool('now', {})))
    expect(answers.map(answer => answer.error)).to.deep.equal([null, null, null, null])
    expect(login.grants.filter(grant => grant === 'refresh_token').length).to.be.within(1, 2)
    expect(JSON.stringify(kept.value)).to.include(login.good.token)
  })

  it('goes on whatever else somebody on this machine asks for where the browser comes back to', async () => {
    await using login = await loginServer()
    await using server = await guardedBy(login)
    const statuses: (number | undefined)[] = []
    const curious = async (page: URL) => {
      const { port } = new URL(page.searchParams.get('redirect_uri')!)
      for (const path of ['//', '/', 'http://[', '/callback/']) {
        const asked = request({ host: '127.0.0.1', port, path, agent: false }).end()
        const [answer] = (await once(asked, 'response')) as [IncomingMessage]
        statuses.push(answer.resume().statusCode)
      }
      await show(page)
    }
    await loginMcp({ url: server.url, oauth: { issuer: login.url } }, { show: curious })
    expect(statuses).to.deep.equal([404, 404, 404, 404])
    expect(login.grants).to.deep.equal(['authorization_code'])
  })

  it('is given up when no answer comes back in time', async () => {
    await using login = await loginServer()
    await using server = await guardedBy(login)
    const options = { url: server.url, oauth: { issuer: login.url } }
    const late = await loginMcp(options, { show: () => {}, waitMs: 300 }).catch((error: unknown) => error)
    expect(late).to.have.nested.property('details.class', 'timeout')
    expect(login.grants).to.deep.equal([])
  })

  it('waits on when the answer to another login comes back', async () => {
    await using login = await loginServer()
    await using server = await guardedBy(login)
    const statuses: number[] = []
    const forgedFirst = async (page: URL) => {
      const back = new URL(page.searchParams.get('redirect_uri')!)
      for (const search of ['?code=good&state=other', '?code=good', '?error=access_denied&state=']) {
        back.search = search
        statuses.push((await fetch(back)).status)
      }
      await show(page)
    }
    await loginMcp({ url: server.url, oauth: { issuer: login.url } }, { show: forgedFirst })
    expect(statuses).to.deep.equal([400, 400, 400])
    expect(login.grants).to.deep.equal(['authorization_code'])
  })
})
