import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import { expect } from 'chai'
import { createDestinations, openEgress } from '../src/egress.ts'
import { openCanary } from './support/hostile.ts'

interface Tunnel {
  readonly status: number
  readonly socket: Socket
  /** What came with the answer: the reason of a refusal. */
  readonly text: string
}

describe('the way out of an isolated plugin', () => {
  let folder: string
  let canary: Awaited<ReturnType<typeof openCanary>>
  const refused: string[] = []
  const open: AsyncDisposable[] = []
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-way-'))
    canary = await openCanary()
  })
  afterEach(async () => {
    for (const asyncDisposable of open.splice(0)) await asyncDisposable[Symbol.asyncDispose]()
    refused.length = 0
  })
  after(async () => {
    await canary[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  let count = 0
  async function way(declared: readonly string[], names: Readonly<Record<string, readonly string[]>> = {}): Promise<string> {
    const socket = join(folder, String(++count))
    const onRefused = (host: string, why: string) => refused.push(`${host} ${why}`)
    open.push(await openEgress(socket, { declared, onRefused, resolve: async host => names[host] ?? [] }))
    return socket
  }
  /** Asks for a tunnel; answers with the status. */
  async function tunnel(socketPath: string, to: string): Promise<Tunnel> {
    const asked = request({ socketPath, method: 'CONNECT', path: to })
    asked.end()
    const [answer, socket, head] = (await once(asked, 'connect')) as [{ statusCode: number }, Socket, Buffer]
    return { status: answer.statusCode, socket, text: head.toString() }
  }
  async function get(socketPath: string, url: string): Promise<number> {
    const asked = request({ socketPath, path: url })
    asked.end()
    const [answer] = await once(asked, 'response')
    answer.resume()
    return answer.statusCode
  }
  const statusOf = async (socket: string, to: string) => {
    const made = await tunnel(socket, to)
    made.socket.destroy()
    return made.status
  }

  it('connects to hosts that are declared, with their port where that is declared', async () => {
    const port = canary.port
    const socket = await way([`localhost:${port}`], { localhost: ['127.0.0.1'] })
    expect(await statusOf(socket, `localhost:${port}`)).to.equal(200)
    expect(await get(socket, `http://localhost:${port}/`)).to.equal(200)
    expect(await statusOf(socket, `localhost:${port + 1}`)).to.equal(403)
    expect(await get(socket, 'http://other.test/')).to.equal(403)
    expect(refused).to.deep.equal([`localhost:${port + 1} undeclared`, 'other.test undeclared'])
  })

  it('refuses a declared name that leads to an address of this machine, of its network or of its cloud', async () => {
    const names = { 'in.test': ['127.0.0.1'], 'net.test': ['10.0.0.7'], 'cloud.test': ['169.254.169.254'], 'six.test': ['::1'] }
    const socket = await way(Object.keys(names), names)
    for (const name of Object.keys(names)) expect(await statusOf(socket, `${name}:${canary.port}`), name).to.equal(403)
    for (const name of Object.keys(names)) expect(await get(socket, `http://${name}/`), name).to.equal(403)
    expect(refused).to.have.length(8)
  })

  it('says in such a refusal how to declare the address', async () => {
    const socket = await way(['in.test'], { 'in.test': ['127.0.0.1'] })
    const hint = (port: number) =>
      `in.test leads to an address that is not public; declare it with its port ("in.test:${port}"), or the address itself`
    const { socket: refusedTunnel, text: said } = await tunnel(socket, `in.test:${canary.port}`)
    refusedTunnel.destroy()
    expect(said).to.equal(hint(canary.port))
    const asked = request({ socketPath: socket, path: 'http://in.test/' }).end()
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    expect([answer.statusCode, await text(answer)]).to.deep.equal([403, hint(80)])
  })

  it('connects to such an address where it is declared itself', async () => {
    const socket = await way(['in.test', '127.0.0.1'], { 'in.test': ['127.0.0.1'] })
    expect(await statusOf(socket, `in.test:${canary.port}`)).to.equal(200)
    expect(await statusOf(socket, `127.0.0.1:${canary.port}`)).to.equal(200)
  })

  it('connects to the addresses that it looked at, whatever the name leads to next', async () => {
    let asked = 0
    const socket = join(folder, String(++count))
    const resolve = async () => (asked++ === 0 ? ['127.0.0.1'] : ['10.0.0.7'])
    open.push(await openEgress(socket, { declared: ['in.test', '127.0.0.1'], onRefused: () => {}, resolve }))
    expect(await get(socket, `http://in.test:${canary.port}/`)).to.equal(200)
    expect(asked).to.equal(1)
  })

  it('takes so many connections of one plugin and no more', async () => {
    const socket = await way([])
    const all = Array.from({ length: 340 }, () => connect(socket).on('error', () => {}))
    const ends = all.map(item => once(item, 'close').then(() => 1))
    expect(await Promise.race(ends)).to.equal(1)
    for (const item of all) item.destroy()
    await Promise.all(ends)
  })

  it('opens 256 tunnels of one plugin, and refuses one more at once', async () => {
    const port = canary.port
    const socket = await way(['127.0.0.1'])
    const open = []
    for (let count = 0; count < 256; count++) open.push(await tunnel(socket, `127.0.0.1:${port}`))
    expect(open.filter(item => item.status === 200)).to.have.length(256)
    expect(await statusOf(socket, `127.0.0.1:${port}`)).to.equal(503)
    open[0]!.socket.destroy()
    while ((await statusOf(socket, `127.0.0.1:${port}`)) !== 200) await setTimeout(5)
    for (const item of open) item.socket.destroy()
  })

  it('lets a tunnel be silent for longer than a request may be', async () => {
    const echo = createServer(item => item.pipe(item)).listen(0, '127.0.0.1')
    await once(echo, 'listening')
    const { port } = echo.address() as AddressInfo
    const path = join(folder, 'silent')
    open.push(await openEgress(path, { declared: ['127.0.0.1'], onRefused: () => {}, idleMs: 50 }))
    const { socket } = await tunnel(path, `127.0.0.1:${port}`)
    const silent = connect(path)
    await once(silent, 'close')
    socket.write('still here')
    expect(String((await once(socket, 'data'))[0])).to.equal('still here')
    socket.destroy()
    echo.close()
  })

  it('connects a name to a private address where the name is declared with its port', async () => {
    const names = { 'db.test': ['10.255.255.1'], 'own.test': ['127.0.0.1'], 'cloud.test': ['169.254.169.254'] }
    const open = createDestinations(
      ['db.test:5432', 'own.test:5432', 'cloud.test:80', '*.test:5433'],
      async host => names[host as keyof typeof names]
    )
    expect(await open.resolve('db.test', 5432)).to.deep.equal(['10.255.255.1'])
    for (const [name, port] of [
      ['db.test', 5433],
      ['own.test', 5432],
      ['cloud.test', 80],
    ] as const)
      expect(await open.resolve(name, port).then(String, codeOf), name).to.equal('ADDRESS_FORBIDDEN')
  })

  describe('to a server that hears all and answers nothing', () => {
    let server: Server
    let port: number
    const met: Socket[] = []
    before(async () => {
      server = createServer(socket => met.push(socket.on('error', () => {}))).listen(0, '127.0.0.1')
      await once(server, 'listening')
      port = (server.address() as AddressInfo).port
    })
    afterEach(() => void met.splice(0))
    after(() => server.close())
    const local = { localhost: ['127.0.0.1'] }
    const asking = (where: string, text: string) => {
      const near = connect(where).on('error', () => {})
      near.write(text)
      return near
    }

    it('opens one connection for one of the plugin, however many requests it sends ahead', async () => {
      const socket = await way(['localhost'], local)
      const near = asking(socket, `GET http://localhost:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(50))
      await once(near.resume(), 'close')
      await tunnel(socket, `localhost:${port}`)
      expect(met.length).to.be.below(3)
    })

    it('leaves it when the plugin has left', async () => {
      const near = asking(await way(['localhost'], local), `GET http://localhost:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`)
      const [far] = (await once(server, 'connection')) as [Socket]
      near.destroy()
      await once(far.resume(), 'close')
    })

    it('makes no second request of the body of one', async () => {
      const body = 'GET /second HTTP/1.1\r\nHost: other\r\n\r\n'
      const head = `GET http://localhost:${port}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`
      const near = asking(await way(['localhost'], local), `${head}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
      const [far] = (await once(server, 'connection')) as [Socket]
      let heard = ''
      for await (const chunk of far) if ((heard += String(chunk)).includes('/second')) break
      expect(heard).to.match(/transfer-encoding: chunked\r\n/)
      near.destroy()
    })
  })

  it('looks for so many names of one plugin at once and no more', async () => {
    const socket = join(folder, String(++count))
    const found = Promise.withResolvers<string[]>()
    open.push(await openEgress(socket, { declared: ['*'], onRefused: () => {}, resolve: () => found.promise }))
    const statuses = Array.from({ length: 17 }, (_, at) => statusOf(socket, `n${at}.test:443`))
    expect(await Promise.race(statuses)).to.equal(503)
    found.resolve([])
    const answers = await Promise.all(statuses)
    expect([502, 503].map(status => answers.filter(answer => answer === status).length)).to.deep.equal([16, 1])
  })

  it('connects to a declared address, or localhost, at the port that is declared with it, whatever else is declared', async () => {
    const { resolve } = createDestinations(['*', '127.0.0.1:81', '[::1]:82', 'localhost:83', '10.0.0.7'], async () => [
      '127.0.0.1',
    ])
    const isOpen = (host: string, port: number) => resolve(host, port).then(() => 'open', codeOf)
    for (const host of ['127.0.0.1', '::ffff:127.0.0.1', 'in.test']) expect(await isOpen(host, 81), host).to.equal('open')
    for (const host of ['127.0.0.1', '::ffff:127.0.0.1', 'in.test', 'localhost', '2130706433'])
      expect(await isOpen(host, 22), host).to.equal('ADDRESS_FORBIDDEN')
    expect([await isOpen('::1', 82), await isOpen('localhost', 83), await isOpen('10.0.0.7', 22)]).to.deep.equal([
      'open',
      'open',
      'open',
    ])
    expect([await isOpen('::1', 81), await isOpen('localhost', 82)]).to.deep.equal(['ADDRESS_FORBIDDEN', 'ADDRESS_FORBIDDEN'])
  })

  it('knows what a declared host means', () => {
    const { declares } = createDestinations(['api.test', '*.wide.test', 'port.test:8443', '[::1]:80', 'UPPER.test.'])
    const yes: [string, number][] = [
      ['api.test', 1],
      ['a.wide.test', 443],
      ['a.b.wide.test', 443],
      ['port.test', 8443],
      ['::1', 80],
      ['upper.test', 2],
    ]
    const no: [string, number][] = [
      ['wide.test', 443],
      ['evilwide.test', 443],
      ['api.test.evil', 1],
      ['xapi.test', 1],
      ['port.test', 443],
      ['::1', 81],
    ]
    for (const item of yes) expect(declares(...item), String(item)).to.equal(true)
    for (const item of no) expect(declares(...item), String(item)).to.equal(false)
  })
})
