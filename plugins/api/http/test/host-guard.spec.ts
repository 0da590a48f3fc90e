import { expect } from 'chai'
import { Mounts } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { raw, serve } from './support/client.ts'
import { free } from './support/who.ts'

const ask = (url: string, host: string, path = '/free', method = 'GET') =>
  raw(url, `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)

const mount = item(Mounts, 'raw', { path: '/raw', handle: async (_request, response) => void response.end('raw') })

describe('the guard of the Host', () => {
  let server: Awaited<ReturnType<typeof serve>>
  before(async () => {
    server = await serve({ free }, { allowed_hosts: ['svc.example', 'fd00::7'] }, undefined, [mount])
  })
  after(() => server.host.close())

  for (const host of [
    'localhost',
    'LOCALHOST:1',
    '127.0.0.1:8080',
    '127.8.8.8',
    '[::1]:80',
    'localhost.',
    'svc.example',
    '[fd00::7]:80',
  ])
    it(`answers to ${host}`, async () => expect((await ask(server.url, host)).status).to.equal(200))

  for (const host of [
    'evil.example',
    'localhost.evil.example',
    'evil.example:8080',
    '127.0.0.1.evil.example',
    '192.168.0.1',
    '',
    'a b',
    'localhost@evil',
  ])
    it(`refuses "${host}"`, async () => {
      const { status, body } = await ask(server.url, host)
      expect([status, body.error_code]).to.deep.equal([403, 'FORBIDDEN'])
      expect(body.details).to.deep.equal({ field: 'host', value: host })
    })

  for (const [method, path] of [
    ['GET', '/raw/x'],
    ['GET', '/nowhere'],
    ['DELETE', '/free'],
    ['OPTIONS', '/free'],
  ] as const)
    it(`guards ${method} ${path} too`, async () =>
      expect((await ask(server.url, 'evil.example', path, method)).status).to.equal(403))

  for (const [target, host] of [
    ['http://localhost:1/free', 'localhost:1'],
    ['HTTP://LOCALHOST/free', 'localhost'],
    ['http://svc.example/free?a=b', 'svc.example'],
    ['https://[::1]/free', '[::1]'],
    ['http://127.0.0.1/free', 'evil.example'],
  ] as const)
    it(`goes by the target where it is a whole URL: answers to ${target} with the Host ${host}`, async () =>
      expect((await ask(server.url, host, target)).status).to.equal(200))

  for (const target of [
    'http://evil.example/free',
    'HTTPS://evil.example:8080/free',
    'http://evil.example/raw/x',
    'http://evil.example',
    'http://localhost@evil.example/free',
    'http:///free',
  ])
    it(`refuses ${target}, however good the Host beside it is`, async () => {
      const { status, body } = await ask(server.url, 'localhost', target)
      expect([status, body.error_code]).to.deep.equal([403, 'FORBIDDEN'])
      expect((await raw(server.url, `GET ${target} HTTP/1.0\r\nHost: localhost\r\n\r\n`)).status).to.equal(403)
    })

  it('lets no Host beside a whole URL make another origin its own', async () => {
    const origin = 'http://evil.example'
    const { status } = await raw(
      server.url,
      `GET http://localhost/free HTTP/1.1\r\nHost: evil.example\r\nOrigin: ${origin}\r\nConnection: close\r\n\r\n`
    )
    expect(status).to.equal(403)
  })

  it('wants a Host of HTTP/1.0 too', async () => {
    for (const target of ['/free', 'http://localhost/free', '/raw/x']) {
      const { status, body } = await raw(server.url, `GET ${target} HTTP/1.0\r\n\r\n`)
      expect([status, body.error_code], target).to.deep.equal([400, 'INVALID_VALUE'])
      expect(body.details).to.include({ field: 'host' })
    }
    expect((await raw(server.url, 'GET /free HTTP/1.0\r\nHost: localhost\r\n\r\n')).status).to.equal(200)
  })

  it('answers to any name on a bind beyond loopback, unless names are listed', async () => {
    await using open = await serve({ free }, { host: '0.0.0.0' })
    expect((await ask(open.url, 'anything.example')).status).to.equal(200)
    await using listed = await serve({ free }, { host: '0.0.0.0', allowed_hosts: ['svc.example'] })
    expect((await ask(listed.url, 'anything.example')).status).to.equal(403)
    expect((await ask(listed.url, 'svc.example:99')).status).to.equal(200)
  })
})
