import { expect } from 'chai'
import type { Service } from '../support/service.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'
import { describeWith } from '../support/needs.ts'

const KEY = 'the-key-of-this-server-and-no-other'

/** A plugin with one route; the server starts without it where it is refused. */
const route = (name: string, path: string, more: object = {}): Stranger => ({
  name: `svc-plugin-${name}`,
  optional: true,
  svc: { kind: 'routes', ...routesOf({ [name]: { method: 'GET', path, scope: 'read' } }) },
  code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const route = ${JSON.stringify({ method: 'GET', path, scope: 'read', summary: 'Breaks', ...more })}
export default definePlugin({ setup: scope => void scope.add(Routes, '${name}', { ...route, handle: async () => ({ text: 'answered' }) }) })`,
})

const text = (pattern: string) => ({ query: { type: 'object', properties: { q: { type: 'string', pattern } } } })

const ROUTES = [
  route('good', '/good', text('^[a-z]+$')),
  route('slow', '/slow', text('^(a|a)*(a|a)*(a+)+$')),
  route('required', '/required', { query: { required: 5 } }),
  route('properties', '/properties', { query: { type: 'object', properties: null } }),
  route('nonsense', '/nonsense', { query: { type: 'nonsense' } }),
  route('path', '/::'),
  route('dashes', '/:a-:b-:c-:d-:e-:f-:g-:h'),
]

/** Its challenge goes into each answer to a client without a credential. */
const CHALLENGE: Stranger = {
  name: 'svc-plugin-challenge',
  svc: { kind: 'auth', contributes: { auth_schemes: ['challenge'] } },
  code: `import { definePlugin } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.add(AuthSchemes, 'challenge', { headers: ['x-far'], challenge: 'Far\\r\\nSet-Cookie: a=b', authenticate: async () => undefined })
  },
})`,
}

/** A scheme whose headers are names that every object has. */
const ODD: Stranger = {
  name: 'svc-plugin-odd',
  svc: { kind: 'auth', contributes: { auth_schemes: ['odd'] } },
  code: `import { definePlugin } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
const headers = ['constructor', '__proto__']
export default definePlugin({
  setup: scope => void scope.add(AuthSchemes, 'odd', { headers, challenge: 'Odd', authenticate: async () => undefined }),
})`,
}

describeWith('bubblewrap', 'an isolated plugin whose routes are broken', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    const config = { server: { auth: { enabled: true } } }
    service = await serveStrangers([...ROUTES, ODD], { beside: ['metrics', 'auth-api-key'], config, env: { SVC_API_KEY: KEY } })
  })
  after(() => service[Symbol.asyncDispose]())

  const get = async (path: string) => {
    const answer = await fetch(`${service.url}${path}`, { headers: { 'x-api-key': KEY }, signal: AbortSignal.timeout(10_000) })
    return { status: answer.status, text: await answer.text() }
  }

  it('leaves the routes of others as they are', async () => {
    expect((await get('/metrics')).status).to.equal(200)
    expect((await fetch(`${service.url}/metrics`)).status, 'without a credential').to.equal(401)
    expect(await get('/good?q=abc')).to.deep.equal({ status: 200, text: 'answered' })
    expect((await get('/good?q=ABC')).status).to.equal(400)
  })

  it('is named in the log, each route of it', async () => {
    await service.seen(/the route properties is not served/)
    for (const name of ['required', 'nonsense']) {
      expect((await get(`/${name}`)).status, name).to.equal(500)
      await service.seen(new RegExp(`"owner":"svc-plugin-${name}"`))
    }
    for (const name of ['path', 'dashes']) await service.seen(new RegExp(`svc-plugin-${name}.*MANIFEST_INVALID`))
  })

  it('holds up no worker by a pattern', async () => {
    expect((await get(`/slow?q=${'a'.repeat(2_000)}!`)).status).to.be.oneOf([400, 500])
    expect((await get('/metrics')).status).to.equal(200)
  })

  it('holds up no worker by a path', async () => {
    expect((await get(`/${'-'.repeat(8_000)}`)).status).to.equal(404)
    expect((await get('/metrics')).status).to.equal(200)
  })
})

describeWith('bubblewrap', 'an isolated plugin whose credential scheme is broken', function () {
  this.timeout(60_000)

  it('writes no header of its own into the answers of others: the start fails and names it', async () => {
    const config = { server: { auth: { enabled: true } } }
    const options = { beside: ['metrics', 'auth-api-key'], config, env: { SVC_API_KEY: KEY } }
    const failed = await serveStrangers([CHALLENGE], options).then(
      async service => {
        const { status } = await fetch(`${service.url}/metrics`)
        await service[Symbol.asyncDispose]()
        return `it started, and answers ${status}`
      },
      (error: Error) => error.message
    )
    expect(failed).to.include('SCHEME_INVALID').and.include('svc-plugin-challenge')
  })
})
