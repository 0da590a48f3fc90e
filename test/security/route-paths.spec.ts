import { expect } from 'chai'
import type { Service } from '../support/service.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'
import { describeWith } from '../support/needs.ts'

/** Each route answers who has it. */
const answering = (name: string, isolation: 'process' | 'in-process', places: Readonly<Record<string, string>>): Stranger => {
  const routes = Object.fromEntries(
    Object.entries(places).map(([key, place]) => {
      const [method = '', path = ''] = place.split(' ')
      return [key, { method, path, scope: 'read' }]
    })
  )
  return {
    name: `svc-plugin-${name}`,
    isolation,
    svc: { kind: 'routes', ...routesOf(routes) },
    code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    for (const [name, route] of Object.entries(${JSON.stringify(routes)}))
      scope.add(Routes, name, { summary: 'Answers', ...route, handle: async () => ({ text: 'of ${name}' }) })
  },
})`,
  }
}

const EVIL = answering('evil', 'process', {
  'a-same': 'GET /metrics',
  'b-method': 'POST /metrics',
  'c-any': 'GET /:any',
  'd-mount': 'GET /docs',
  'e-mount': 'GET /docs/:file',
  'f-known': 'GET /.well-known/oauth-protected-resource',
  'g-known': 'GET /:a/acme-challenge/:b',
  'h-inner': 'GET /things/export',
  'i-twin': 'GET /things/:name',
  'j-chat': 'POST /api/v1/chat',
  'k-chat': 'PUT /api/v1/chat',
})
/** What `/openapi.json` stands on. */
const REST = ['rest', 'chat', 'model-calls', 'conversations', 'selection', 'models', 'modes', 'provider-local']
const SERVER = answering('server', 'in-process', { things: 'GET /things/:id' })

describeWith('bubblewrap', 'routes of isolated plugins, by their paths', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    // the isolated one comes first
    service = await serveStrangers([EVIL, SERVER], { beside: ['metrics', 'docs-page', ...REST] })
  })
  after(() => service[Symbol.asyncDispose]())

  const ask = async (path: string, method = 'GET') => {
    const answer = await fetch(`${service.url}${path}`, { method })
    return { status: answer.status, text: await answer.text() }
  }

  it('answer where the server has nothing', async () => {
    expect(await ask('/anything')).to.deep.equal({ status: 200, text: 'of evil' })
    expect(await ask('/x/acme-challenge/y')).to.deep.equal({ status: 200, text: 'of evil' })
  })

  it('never answer in the place of a route of the server, whatever the method and the order', async () => {
    expect((await ask('/metrics')).text).to.include('# TYPE')
    expect((await ask('/metrics', 'POST')).status).to.equal(405)
    for (const path of ['/things/export', '/things/1']) expect((await ask(path)).text, path).to.equal('of server')
  })

  it('never answer below a mount', async () => {
    expect((await ask('/docs')).text).to.include('<html')
    expect((await ask('/docs/x')).status).to.equal(404)
  })

  it('never answer below /.well-known, where clients look up issuers of tokens and certificates', async () => {
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/acme-challenge/token'])
      expect((await ask(path)).status, path).to.equal(404)
  })

  it('describe nothing of the server in /openapi.json', async () => {
    const { paths } = JSON.parse((await ask('/openapi.json')).text) as {
      paths: Record<string, Record<string, { operationId: string }>>
    }
    const described = Object.entries(paths['/api/v1/chat']!).map(([method, { operationId }]) => [method, operationId])
    expect(described).to.deep.equal([['post', 'chat']])
    expect(paths).to.have.property('/{a}/acme-challenge/{b}')
  })

  it('that are not served are named in the log', async () => {
    for (const name of ['a-same', 'f-known', 'i-twin']) await service.seen(new RegExp(`the route ${name} is not served`))
  })
})
