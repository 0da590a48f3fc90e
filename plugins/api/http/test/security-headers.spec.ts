import { expect } from 'chai'
import { Mounts, type Route } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { call, raw, serve } from './support/client.ts'
import { free } from './support/who.ts'

const SET = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
}

describe('security headers', () => {
  const page: Route = {
    method: 'GET',
    path: '/page',
    summary: 'A page',
    handle: async () => ({
      text: '<p>',
      headers: { 'content-type': 'text/html', 'content-security-policy': "default-src 'self'", vary: 'Accept' },
    }),
  }
  const flow: Route = {
    method: 'GET',
    path: '/flow',
    summary: 'Flows',
    async *stream() {
      yield 'one'
    },
  }
  let server: Awaited<ReturnType<typeof serve>>
  before(async () => {
    const mount = item(Mounts, 'raw', { path: '/raw', handle: async (_request, response) => void response.end('raw') })
    server = await serve({ free, page, flow }, {}, undefined, [mount])
  })
  after(() => server.host.close())

  for (const path of ['/free', '/nowhere', '/flow', '/raw'])
    it(`stand on every answer: ${path}`, async () => {
      const { headers } = await call(`${server.url}${path}`)
      for (const [name, value] of Object.entries(SET)) expect(headers.get(name), name).to.equal(value)
      expect(headers.get('strict-transport-security'), 'only with TLS').to.equal(null)
      expect(headers.get('x-powered-by')).to.equal(null)
    })

  it('stand on what is no HTTP, too', async () => {
    expect((await raw(server.url, 'hello\r\n\r\n')).head).to.match(/x-content-type-options: nosniff/i)
  })

  it('give way to those of a page that brings its own', async () => {
    const { headers } = await call(`${server.url}/page`)
    expect(headers.get('content-security-policy')).to.equal("default-src 'self'")
    expect(headers.get('vary')).to.equal('Origin, Accept')
    expect(headers.get('x-frame-options')).to.equal('DENY')
  })
})
