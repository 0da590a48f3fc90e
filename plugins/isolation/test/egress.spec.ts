import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createDestinations } from '../src/destinations.ts'
import { openEgress } from '../src/egress.ts'
import { openCanary } from './support/hostile.ts'

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
    for (const one of open.splice(0)) await one[Symbol.asyncDispose]()
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
  async function tunnel(socketPath: string, to: string): Promise<{ readonly status: number; readonly socket: Socket }> {
    const asked = request({ socketPath, method: 'CONNECT', path: to })
    asked.end()
    const [answer, socket] = (await once(asked, 'connect')) as [{ statusCode: number }, Socket]
    return { status: answer.statusCode, socket }
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
    const all = Array.from({ length: 80 }, () => connect(socket).on('error', () => {}))
    const ends = all.map(one => once(one, 'close').then(() => 1))
    expect(await Promise.race(ends)).to.equal(1)
    for (const one of all) one.destroy()
    await Promise.all(ends)
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
    for (const one of yes) expect(declares(...one), String(one)).to.equal(true)
    for (const one of no) expect(declares(...one), String(one)).to.equal(false)
  })
})
