import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'
import { until } from '../support/wait.ts'
import { type Client, createClient } from '../support/client.ts'

const PLUGIN = 'svc-plugin-knocker'

/** Its tool speaks to the proxy byte by byte and returns the beginning of what comes back. */
const CODE = `import { connect } from 'node:net'
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const knock = ({ text, leave }) => new Promise(done => {
  const socket = connect(3128, '127.0.0.1')
  let heard = ''
  socket.on('data', data => { heard += data.toString('latin1'); if (/\\r\\n\\r\\n/.test(heard)) socket.destroy() })
  socket.on('error', () => {})
  socket.on('close', () => done(heard === '' ? 'closed' : heard.split('\\r\\n', 1)[0]))
  socket.write(Buffer.from(text, 'latin1'), () => leave && socket.destroy())
})
export default definePlugin({
  setup(scope) {
    const parameters = { type: 'object', properties: { text: { type: 'string' }, leave: { type: 'boolean' } } }
    const call = async args => ({ content: [{ type: 'text', text: await knock(args) }] })
    scope.add(Tools, 'knock', { description: 'Knocks', category: 'text', effects: [], parameters, call })
  },
})
`

/** What a hostile server answers, by path, before it closes the connection. */
const ANSWERS: Readonly<Record<string, string>> = {
  '/good': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  '/zero': 'HTTP/1.1 000 None\r\nContent-Length: 0\r\n\r\n',
  '/low': 'HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n',
  '/upgrade': 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
  '/switch': 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  '/early': 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n',
  '/continue': 'HTTP/1.1 100 Continue\r\n\r\n',
  '/below': 'HTTP/1.1 199 Below\r\nContent-Length: 0\r\n\r\n',
  '/above': 'HTTP/1.1 1000 Above\r\nContent-Length: 0\r\n\r\n',
  '/words': `HTTP/1.1 200 ${'\x01\x7f\xff'}\r\nContent-Length: 0\r\n\r\n`,
  '/control': 'HTTP/1.1 200 OK\r\nX-Bad: a\x01b\r\nContent-Length: 0\r\n\r\n',
  '/latin': 'HTTP/1.1 200 OK\r\nX-Odd: \xe9\x80\xff\r\nContent-Length: 0\r\n\r\n',
  '/name': 'HTTP/1.1 200 OK\r\nX Bad: a\r\nContent-Length: 0\r\n\r\n',
  '/long': `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(100_000)}\r\nContent-Length: 0\r\n\r\n`,
  '/many': `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(3000)}Content-Length: 0\r\n\r\n`,
  '/two': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok',
  '/chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  '/proto': 'HTTP/1.1 200 OK\r\n__proto__: x\r\nconstructor: y\r\nContent-Length: 0\r\n\r\n',
  '/nothing': '',
  '/noise': '\x00\xff\x00\xff\r\n\r\n',
}
const RESPONSE = /^HTTP\/1\.1 (200|400|403|502) /

describeIsolated('the egress proxy of an isolated plugin', function () {
  this.timeout(60_000)
  let attacked: Attacked
  let client: Client
  let upstream: Server
  let port: number
  before(async () => {
    upstream = createServer(answer).listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    port = (upstream.address() as AddressInfo).port
    const permissions = { network: ['*', 'localhost', '127.0.0.1', '[::1]'] }
    attacked = await startAttacked({
      plugins: [{ name: PLUGIN, code: CODE, svc: { contributes: { tools: ['knock'] }, permissions } }],
    })
    client = createClient(attacked.service.url)
  })
  after(async () => {
    client?.close()
    await attacked?.[Symbol.asyncDispose]()
    upstream.close()
  })

  function answer(socket: Socket) {
    socket.on('error', () => {})
    socket.once('data', data => {
      const [, path = ''] = / ([^ ]+) HTTP/.exec(data.toString('latin1')) ?? []
      socket.end(Buffer.from(ANSWERS[path] ?? ANSWERS['/good']!, 'latin1'))
    })
  }

  /** Lets the plugin send this to its proxy; the first line that comes back. */
  async function knock(text: string, leave = false): Promise<string> {
    const turn = await client.post('/api/v1/chat', { message: `/tool knock ${JSON.stringify({ text, leave })}` })
    expect(turn.status, `${text.slice(0, 60)}: ${turn.text}`).to.equal(200)
    const { response } = turn.body as { response: string }
    return (/knock answered: (.*)/.exec(response)?.[1] ?? response).trim()
  }
  const survived = () => expect(attacked.service.output()).to.not.match(/worker_exited|uncaught/)

  it('refuses a tunnel to what is no host and port', async () => {
    const places = [
      'localhost:99999',
      'localhost:0',
      'localhost:',
      'localhost:65536',
      ':443',
      '[::1]:99999',
      '[::1',
      '[]:443',
      '[x]:443',
    ]
    const odd = [
      `${'a'.repeat(300)}:443`,
      `${'a.'.repeat(200)}test:443`,
      'localhost:443/x',
      'user@localhost:443',
      'localhost:1e3',
      '..:443',
    ]
    for (const place of [...places, ...odd])
      expect(await knock(`CONNECT ${place} HTTP/1.1\r\nHost: x\r\n\r\n`), place).to.match(/^HTTP\/1\.1 400 /)
    survived()
  })

  it('refuses a request whose URL has no port or host that can be', async () => {
    for (const url of ['http://localhost:99999/', 'http://localhost:0/', 'http://[::1/', '/path', 'ftp://localhost/', '*'])
      expect(await knock(`GET ${url} HTTP/1.1\r\nHost: x\r\n\r\n`), url).to.match(/^HTTP\/1\.1 400 /)
    survived()
  })

  it('answers a tunnel to a port where nothing listens with 502', async () => {
    expect(await knock('CONNECT localhost:1 HTTP/1.1\r\nHost: x\r\n\r\n')).to.match(/^HTTP\/1\.1 502 /)
    expect(await knock('CONNECT [::1]:1 HTTP/1.1\r\nHost: x\r\n\r\n')).to.match(/^HTTP\/1\.1 502 /)
    survived()
  })

  it('passes on what a server answers properly, and 502 in place of an answer that is none', async () => {
    const heard: Record<string, string> = {}
    for (const path of Object.keys(ANSWERS))
      heard[path] = await knock(`GET http://localhost:${port}${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    survived()
    const good = new Set(['/good', '/words', '/latin', '/proto'])
    for (const [path, line] of Object.entries(heard))
      expect(line, path).to.match(good.has(path) ? /^HTTP\/1\.1 200 / : /^(closed|HTTP\/1\.1 (502|200) )/)
    for (const path of [
      '/zero',
      '/low',
      '/upgrade',
      '/switch',
      '/early',
      '/continue',
      '/below',
      '/above',
      '/control',
      '/nothing',
      '/noise',
    ])
      expect(heard[path], path).to.match(/^HTTP\/1\.1 502 /)
  })

  it('survives requests that are odd, cut short, or left at once', async () => {
    const to = `http://localhost:${port}/good HTTP/1.1\r\nHost: x\r\n`
    const odd = [
      `GET ${to}Upgrade: websocket\r\nConnection: upgrade\r\n\r\n`,
      `POST ${to}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok`,
      `POST ${to}Expect: miracles\r\nContent-Length: 2\r\n\r\nok`,
      `POST ${to}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `GET ${to}X-Odd: \xe9\xff\r\n\r\n`,
      `GET ${to}X-Odd: \x01\r\n\r\n`,
      `GET ${to}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
      `GET ${to}Content-Length: -1\r\n\r\n`,
      `GET ${to}${'X: y\r\n'.repeat(3000)}\r\n`,
      `QUERY ${to}\r\n`,
      'CONNECT\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\x16\x03\x01\x00\xa5\r\n\r\n',
    ]
    for (const text of odd) expect(await knock(text), text.slice(0, 80)).to.match(/^(HTTP\/1\.1 \d{3}|closed)/)
    const left = [
      `CONNECT localhost:${port} HTTP/1.1\r\nHost: x\r\n\r\nGET /good HTTP/1.1\r\n\r\n`,
      `GET ${to}\r\n`,
      `POST ${to}Content-Length: 1000\r\n\r\nbegun`,
      `POST ${to}Transfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n`,
      'CONNECT localhost:1 HTTP/1.1\r\n\r\n',
    ]
    for (const text of left) await knock(text, true)
    survived()
  })

  it('serves on, in the worker that it had', async () => {
    const last = () => knock(`GET http://localhost:${port}/good HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect(await until(last, line => RESPONSE.test(line))).to.match(/ 200 /)
    survived()
  })
})
