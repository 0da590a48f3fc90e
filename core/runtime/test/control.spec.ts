import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { codeOf, systemContext } from '@svc/core'
import { type Control, deadHolders, findServers, listenControl, reachServer, type ServerInfo } from '@svc/runtime'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'

const ctx = systemContext(new AbortController().signal)
const infoOf = (pid: number, port: number): ServerInfo => ({
  pid,
  url: `http://127.0.0.1:${port}`,
  host: '127.0.0.1',
  port,
  version: '0.1.0',
  startedAt: 1,
  workers: [{ name: 'a.1', pid: pid + 1, state: 'ready', generation: 0, startedAt: 2 }],
})
const controlOf = (info: ServerInfo, stopped: () => void = () => {}): Control => ({
  async *pause() {},
  async *ask() {},
  async *request() {},
  resume: async () => ({ problems: [], workers: [], url: '', drainLimitMs: 0 }),
  info: async () => info,
  report: async () => ({
    serverId: 's',
    nodeId: 'n',
    clusterId: 's',
    worker: 's.1',
    version: info.version,
    state: 'running',
    successor: false,
    startedAt: info.startedAt,
    plugins: [],
    hooks: [],
    calls: [],
  }),
  stop: async () => stopped(),
  reload: async () => ({ problems: [], workers: info.workers, url: info.url, drainLimitMs: 1 }),
})
const modeOf = async (path: string) => (await stat(path)).mode & 0o777

describe('the control socket', () => {
  let home: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('lets a command ask a running server, and stop it', async () => {
    let stops = 0
    await using _ = await listenControl(
      home,
      { pid: 11, id: 'id-11' },
      controlOf(infoOf(11, 8080), () => stops++)
    )
    using server = await reachServer(home)
    expect(server.info).to.deep.equal(infoOf(11, 8080))
    await server.control.stop(undefined, ctx)
    expect(stops).to.equal(1)
  })

  it('lies in a folder of its user only, and can be used by its user only', async () => {
    await mkdir(join(home, 'run'), { mode: 0o755 })
    await using socket = await listenControl(home, { pid: 11, id: 'id-11' }, controlOf(infoOf(11, 8080)))
    expect(socket.path).to.equal(join(home, 'run', '11.sock'))
    expect([await modeOf(dirname(socket.path)), await modeOf(socket.path)]).to.deep.equal([0o700, 0o600])
  })

  it('is removed at close, and commands find no server then', async () => {
    const socket = await listenControl(home, { pid: 11, id: 'id-11' }, controlOf(infoOf(11, 8080)))
    using server = await reachServer(home)
    await socket[Symbol.asyncDispose]()
    expect(await readdir(join(home, 'run'))).to.deep.equal([])
    expect(codeOf(await failureOf(server.control.info(ctx)))).to.equal('PLUGIN_GONE')
    const error = await failureOf(reachServer(home))
    expect(error).to.include({ code: 'SERVER_NONE', where: home })
    expect(error.hint).to.include('svc serve')
  })

  it('finds no server in a home that is not there', async () => {
    expect(await findServers(join(home, 'nowhere'))).to.deep.equal([])
  })

  it('removes what dead servers left, and nothing else', async () => {
    await using alive = await listenControl(home, { pid: 11, id: 'id-11' }, controlOf(infoOf(11, 8080)))
    const run = join(home, 'run')
    await writeFile(join(run, '12.sock'), '')
    const folder = await mkdtemp(join(tmpdir(), 'svc-'))
    await writeFile(join(run, '13.path'), join(folder, 'control.sock'))
    await writeFile(join(run, '14.path'), join(home, 'precious'))
    await writeFile(join(home, 'precious'), 'keep')
    await using second = await listenControl(home, { pid: 15, id: 'id-15' }, controlOf(infoOf(15, 8081)))
    expect((await readdir(run)).sort()).to.deep.equal(['11.id', '11.sock', '15.id', '15.sock'])
    expect(await readFile(join(home, 'precious'), 'utf8')).to.equal('keep')
    expect(await failureOf(stat(folder))).to.include({ code: 'ENOENT' })
    expect([alive.path, second.path]).to.have.length(2)
  })

  it('goes to a private folder when its path would be too long, and is found there', async () => {
    const deep = join(home, 'x'.repeat(60), 'y'.repeat(60))
    const socket = await listenControl(deep, { pid: 11, id: 'id-11' }, controlOf(infoOf(11, 8080)))
    expect(Buffer.byteLength(socket.path)).to.be.at.most(107)
    expect([await modeOf(dirname(socket.path)), await modeOf(socket.path)]).to.deep.equal([0o700, 0o600])
    expect(await readFile(join(deep, 'run', '11.path'), 'utf8')).to.equal(socket.path)
    const server = await reachServer(deep)
    expect(server.info.pid).to.equal(11)
    server[Symbol.dispose]()
    await socket[Symbol.asyncDispose]()
    expect(await readdir(join(deep, 'run'))).to.deep.equal([])
    expect(await failureOf(stat(dirname(socket.path)))).to.include({ code: 'ENOENT' })
  })

  for (const [length, where] of [
    [1, 'in the home'],
    [60, 'elsewhere'],
  ] as const)
    it(`lies beside that of a living server with the same process id, as two containers have: ${where}`, async () => {
      const place = join(home, 'x'.repeat(length), 'y'.repeat(length))
      const sockets = [
        await listenControl(place, { pid: 1, id: '1-a' }, controlOf(infoOf(1, 8080))),
        await listenControl(place, { pid: 1, id: '1-b' }, controlOf(infoOf(1, 9000))),
      ]
      for (const port of [8080, 9000]) {
        using server = await reachServer(place, { port })
        expect(server.info.port).to.equal(port)
      }
      for (const socket of sockets) await socket[Symbol.asyncDispose]()
      expect(await readdir(join(place, 'run'))).to.deep.equal([])
    })

  it('tells by their ids which servers ended without a word', async () => {
    await using alive = await listenControl(home, { pid: 11, id: '11-now' }, controlOf(infoOf(11, 8080)))
    const run = dirname(alive.path)
    for (const [name, text] of Object.entries({ '12.sock': '', '12.id': '12-before', '13.sock': '' }))
      await writeFile(join(run, name), text)
    expect(await deadHolders(home)).to.deep.equal(['12-before.'])
  })

  it('asks for the port when two servers share a home', async () => {
    await using a = await listenControl(home, { pid: 11, id: 'id-11' }, controlOf(infoOf(11, 8080)))
    await using b = await listenControl(home, { pid: 12, id: 'id-12' }, controlOf(infoOf(12, 9000)))
    const error = await failureOf(reachServer(home))
    expect(error).to.include({ code: 'SERVER_AMBIGUOUS', hint: 'Choose one: --port 8080' })
    expect(error.details).to.deep.equal({ ports: [8080, 9000] })
    using server = await reachServer(home, { port: 9000 })
    expect(server.info.pid).to.equal(12)
    expect(await failureOf(reachServer(home, { port: 1 }))).to.include({
      code: 'SERVER_NONE',
      message: 'no running server was found on port 1',
    })
    expect([a.path, b.path]).to.have.length(2)
  })

  it('does without a server that does not speak the words', async () => {
    await mkdir(join(home, 'run'))
    const other = createServer(socket => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(
      join(home, 'run', '13.sock')
    )
    expect(await failureOf(reachServer(home))).to.include({ code: 'SERVER_NONE' })
    other.close()
  })
})
