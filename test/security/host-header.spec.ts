import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { Service } from '../support/service.ts'
import { serveStrangers } from '../support/stranger.ts'

describe('a request without a Host', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    service = await serveStrangers([], { beside: ['metrics'] })
  })
  after(() => service[Symbol.asyncDispose]())

  const status = async (lines: string) => {
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname).setEncoding('utf8')
    let text = ''
    socket.on('data', chunk => (text += chunk)).write(`${lines}\r\n\r\n`)
    await once(socket, 'close')
    return { status: Number(text.split(' ')[1]), text }
  }

  for (const version of ['1.0', '1.1'])
    it(`is refused of HTTP/${version}, on every path`, async () => {
      for (const path of ['/metrics', '/nowhere', 'http://localhost/metrics']) {
        const refused = await status(`GET ${path} HTTP/${version}\r\nConnection: close`)
        expect(refused.status, path).to.equal(400)
        expect(refused.text).to.include('INVALID_VALUE').and.include('"field":"host"')
      }
      expect((await status(`GET /metrics HTTP/${version}\r\nConnection: close\r\nHost: localhost`)).status).to.equal(200)
    })

  it('is refused of HTTP/1.0 where its Host is another name or none at all', async () => {
    for (const host of ['evil.example', ''])
      expect((await status(`GET /metrics HTTP/1.0\r\nHost: ${host}`)).status, host).to.equal(403)
  })
})
