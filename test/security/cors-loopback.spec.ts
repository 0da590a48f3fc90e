import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { Service } from '../support/service.ts'
import { serveStrangers } from '../support/stranger.ts'

const KEY = 'the-key-of-this-server-and-no-other'
const FOREIGN = [
  'http://localhost:5173',
  'http://127.0.0.1:3000',
  'https://localhost',
  'http://[::1]:9000',
  'http://127.1.2.3:80',
]

type Answer = { readonly status: number; readonly head: string }
type Headers = Readonly<Record<string, string>>

/** A browser sets Host and Origin, `fetch` does not let us. */
async function ask({ url }: Service, method: string, headers: Headers): Promise<Answer> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('utf8')
  let text = ''
  const lines = Object.entries({ Host: host, Connection: 'close', 'X-API-Key': KEY, ...headers })
  socket.on('data', chunk => (text += chunk))
  socket.write(`${method} /metrics HTTP/1.1\r\n${lines.map(line => `${line.join(': ')}\r\n`).join('')}\r\n`)
  await once(socket, 'close')
  return { status: Number(text.split(' ')[1]), head: text.split('\r\n\r\n')[0]!.toLowerCase() }
}

const serve = (server: object = {}) =>
  serveStrangers([], {
    beside: ['metrics', 'auth-api-key'],
    config: { server: { auth: { enabled: true }, ...server } },
    env: { SVC_API_KEY: KEY },
  })

describe('pages of other programs of this machine', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    service = await serve()
  })
  after(() => service[Symbol.asyncDispose]())

  it('may not use a server that asks for credentials', async () => {
    for (const Origin of FOREIGN) {
      const { status, head } = await ask(service, 'GET', { Origin })
      expect(status, Origin).to.equal(403)
      expect(head, Origin).to.not.include('access-control-allow-origin')
    }
  })

  it('do not pass its preflight', async () => {
    const { status, head } = await ask(service, 'OPTIONS', {
      Origin: FOREIGN[0]!,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': 'x-api-key',
    })
    expect(status).to.equal(403)
    expect(head).to.not.include('access-control')
  })

  it('are not the pages of the server itself, which may use it', async () => {
    expect((await ask(service, 'GET', { Origin: service.url })).status).to.equal(200)
    const { host } = new URL(service.url.replace('127.0.0.1', 'localhost'))
    expect((await ask(service, 'GET', { Host: host, Origin: `http://${host}` })).status).to.equal(200)
    expect((await ask(service, 'GET', { Host: host, Origin: 'http://localhost:1' })).status).to.equal(403)
  })

  it('may use it where the configuration names them', async () => {
    await using named = await serve({ cors: { origins: [FOREIGN[0]!] } })
    const { status, head } = await ask(named, 'GET', { Origin: FOREIGN[0]! })
    expect([status, head.includes(`access-control-allow-origin: ${FOREIGN[0]}`)]).to.deep.equal([200, true])
    expect((await ask(named, 'GET', { Origin: FOREIGN[1]! })).status).to.equal(403)
  })

  it('may use one that asks for none', async () => {
    await using open = await serve({ auth: { enabled: false } })
    for (const Origin of FOREIGN) expect((await ask(open, 'GET', { Origin })).status, Origin).to.equal(200)
  })
})
