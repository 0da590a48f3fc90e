import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Postgres, postgresAnswer, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { connectClient, failureText } from './support/writers.ts'

/** A server that answers each byte with itself, and records what arrives. */
async function startEcho() {
  const sockets = new Set<Socket>()
  const received: string[] = []
  const server = createServer({ allowHalfOpen: true }, socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.on('data', bytes => {
      received.push(String(bytes))
      socket.write(bytes)
    })
    socket.on('end', () => socket.end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    text: () => received.join(''),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

async function dial(port: number) {
  const socket = connect({ port, host: '127.0.0.1' })
  const state = { text: '', ended: false, error: '' }
  socket.on('data', bytes => (state.text += String(bytes)))
  socket.on('end', () => (state.ended = true))
  socket.on('error', (error: NodeJS.ErrnoException) => (state.error = error.code ?? ''))
  await once(socket, 'connect')
  return { socket, state, [Symbol.dispose]: () => socket.destroy() }
}

const until = async (holds: () => boolean) => {
  while (!holds()) await sleep(5)
}
/** Longer than an answer takes that nothing delays. */
const QUIET_MS = 60

describe('the TCP proxy of the test engines', () => {
  const stack = new AsyncDisposableStack()
  let echo: Awaited<ReturnType<typeof startEcho>>

  beforeEach(async () => {
    echo = stack.use(await startEcho())
  })
  after(() => stack.disposeAsync())

  it('forwards bytes and the end of a connection, also of one side alone', async () => {
    await using proxy = await startTcpProxy(echo)
    using client = await dial(proxy.port)
    const large = 'x'.repeat(3_000_000)
    client.socket.end(large)
    await once(client.socket, 'close')
    expect(client.state.text.length).to.equal(large.length)
    expect(client.state).to.include({ ended: true, error: '' })
    await until(() => proxy.connections === 0 && echo.sockets.size === 0)
  })

  it('delays each direction on its own, without slowing a stream down', async () => {
    await using proxy = await startTcpProxy(echo)
    proxy.delay(80, 'to-server')
    proxy.delay(80, 'to-client')
    using client = await dial(proxy.port)
    const begin = performance.now()
    for (let n = 0; n < 40; n++) {
      client.socket.write('x')
      await sleep(5)
    }
    await until(() => client.state.text.length === 40)
    expect(performance.now() - begin).to.be.within(160, 3000) // 40 × 80 ms, one after the other, are more
  })

  for (const [direction, arrives] of [
    ['to-client', 'ab'],
    ['to-server', 'a'],
    [undefined, 'a'],
  ] as const)
    it(`drops ${direction ?? 'both ways'}, keeps connections open, and delivers when it heals`, async () => {
      await using proxy = await startTcpProxy(echo)
      using client = await dial(proxy.port)
      client.socket.write('a')
      await until(() => client.state.text === 'a')
      proxy.drop(direction)
      client.socket.write('b')
      await sleep(QUIET_MS)
      expect(client.state).to.deep.equal({ text: 'a', ended: false, error: '' })
      expect(echo.text()).to.equal(arrives)
      proxy.heal()
      await until(() => client.state.text === 'ab')
    })

  it('hides the end of a connection from the other side while it drops', async () => {
    await using proxy = await startTcpProxy(echo)
    using client = await dial(proxy.port)
    client.socket.write('a')
    await until(() => client.state.text === 'a')
    proxy.drop()
    client.socket.resetAndDestroy()
    await sleep(QUIET_MS)
    expect(echo.sockets.size).to.equal(1)
    proxy.heal()
    await until(() => echo.sockets.size === 0)
  })

  it('accepts a new connection while it drops, and connects it to the server when it heals', async () => {
    await using proxy = await startTcpProxy(echo)
    proxy.drop()
    using client = await dial(proxy.port)
    client.socket.write('a')
    await sleep(QUIET_MS)
    expect(echo.sockets.size).to.equal(0)
    proxy.heal()
    await until(() => client.state.text === 'a')
  })

  it('leaves open connections silent for good, and serves new ones', async () => {
    await using proxy = await startTcpProxy(echo)
    using first = await dial(proxy.port)
    first.socket.write('a')
    await until(() => first.state.text === 'a')
    proxy.freeze()
    first.socket.write('b')
    using second = await dial(proxy.port)
    second.socket.write('c')
    await until(() => second.state.text === 'c')
    proxy.heal()
    second.socket.write('d')
    await until(() => second.state.text === 'cd')
    expect(first.state).to.deep.equal({ text: 'a', ended: false, error: '' })
    proxy.cut()
    await until(() => first.state.error === 'ECONNRESET' && second.state.error === 'ECONNRESET')
  })

  it('cuts open connections with a reset, and refuses new ones until it heals', async () => {
    await using proxy = await startTcpProxy(echo)
    using first = await dial(proxy.port)
    first.socket.write('a')
    await until(() => first.state.text === 'a')
    proxy.cut()
    await until(() => first.state.error === 'ECONNRESET' && echo.sockets.size === 0)
    using second = await dial(proxy.port)
    second.socket.write('b')
    await until(() => second.state.text === 'b')
    proxy.refuse()
    await until(() => second.state.error === 'ECONNRESET')
    const refused = await dial(proxy.port).then(
      async ({ socket }) => {
        if (!socket.closed) await once(socket, 'close')
        return 'ECONNRESET'
      },
      (error: NodeJS.ErrnoException) => error.code
    )
    expect(refused).to.equal('ECONNRESET')
    proxy.heal()
    using third = await dial(proxy.port)
    third.socket.write('c')
    await until(() => third.state.text === 'c')
  })

  for (const deliver of [false, true])
    it(`cuts one connection at the message that a test chooses, ${deliver ? 'after' : 'before'} it arrives`, async () => {
      await using proxy = await startTcpProxy(echo)
      proxy.cutAt({ direction: 'to-server', deliver, matches: message => message.includes('now') })
      using other = await dial(proxy.port)
      using client = await dial(proxy.port)
      client.socket.write('not yet')
      await until(() => echo.text() === 'not yet')
      client.socket.write('now')
      await until(() => client.state.error === 'ECONNRESET' && echo.sockets.size === 1)
      expect(echo.text()).to.equal(deliver ? 'not yetnow' : 'not yet')
      expect(proxy.cuts).to.equal(1)
      other.socket.write('now again')
      await until(() => other.state.text === 'now again')
    })

  it('resets a client whose server does not run', async () => {
    await using proxy = await startTcpProxy({ port: 9 })
    using client = await dial(proxy.port)
    await until(() => client.state.error === 'ECONNRESET')
  })
})

describeWith('postgres', 'the TCP proxy in front of PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres

  before(async () => {
    postgres = stack.use(await startPostgres())
    await postgres.query('CREATE TABLE t (n int)')
  })
  after(() => stack.disposeAsync())

  it('loses the answer to COMMIT: the client gets an error, and PostgreSQL has the row', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    proxy.cutAt(postgresAnswer('COMMIT'))
    const client = await connectClient(proxy.url)
    await client.query('BEGIN', [])
    await client.query('INSERT INTO t VALUES ($1)', [1])
    expect(await client.query('COMMIT', []).then(() => 'done', failureText)).to.match(/ECONNRESET|Connection terminated/)
    expect(await postgres.query('SELECT n FROM t')).to.deep.equal([{ n: 1 }])
    expect(proxy.cuts).to.equal(1)
  })

  it('cuts exactly the chosen answers of many, each message alone', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    await postgres.query('TRUNCATE t')
    let asked = 0
    proxy.cutAt(postgresAnswer('COMMIT', { times: Number.POSITIVE_INFINITY, when: () => ++asked % 5 === 0 }))
    const results: string[] = []
    const batch = async (n: number) => {
      // one packet each way: the rows come before the lost answer
      const client = await connectClient(proxy.url)
      results.push(
        await client.query(`BEGIN; INSERT INTO t VALUES (${n}); COMMIT`).then(
          () => 'done',
          () => 'unsure'
        )
      )
      await client.end().catch(() => {})
    }
    for (let n = 0; n < 50; n += 5) await Promise.all([n, n + 1, n + 2, n + 3, n + 4].map(batch))
    expect(results.filter(result => result === 'unsure')).to.have.length(10)
    expect(proxy.cuts).to.equal(10)
    expect(await postgres.query('SELECT count(*)::int AS n FROM t')).to.deep.equal([{ n: 50 }])
  })

  it('splits messages that arrive in pieces, and large ones', async () => {
    await using proxy = await startTcpProxy(postgres, { protocol: 'postgres' })
    const seen: string[] = []
    proxy.cutAt({ direction: 'to-client', matches: message => void seen.push(String.fromCharCode(message[0]!)) as never })
    const client = await connectClient(proxy.url)
    seen.length = 0
    const sql = `SELECT repeat('x', 2000000) AS text FROM generate_series(1, 3)`
    const { rows } = (await client.query(sql)) as { rows: { text: string }[] }
    await client.end()
    expect(rows.map(({ text }) => text.length)).to.deep.equal([2_000_000, 2_000_000, 2_000_000])
    expect(seen.join('')).to.equal('TDDDCZ')
  })
})
