import { Buffer } from 'node:buffer'
import dgram from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import net from 'node:net'
import tls from 'node:tls'
import { promisify } from 'node:util'
import { credentials, loadPackageDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { Redis } from 'ioredis'
import { createTransport } from 'nodemailer'
import pg from 'pg'
import { Agent, request as undiciRequest } from 'undici'
import WebSocket from 'ws'

let listening

/** Each uses a client library as its README says, and answers with plain data. */
const CLIENTS = {
  async pg(options) {
    const pool = new pg.Pool({ ...options, max: 10 })
    try {
      const numbers = await Promise.all(Array.from({ length: 200 }, (_, n) => pool.query('SELECT $1::int AS n', [n])))
      const large = await pool.query("SELECT repeat('x', 5000000) AS text")
      return { sum: numbers.reduce((sum, { rows }) => sum + rows[0].n, 0), large: large.rows[0].text.length }
    } finally {
      await pool.end()
    }
  },
  async pgNotify(options) {
    const [listener, notifier] = [new pg.Client(options), new pg.Client(options)]
    await Promise.all([listener.connect(), notifier.connect()])
    await listener.query('LISTEN news')
    const heard = once(listener, 'notification')
    await notifier.query("NOTIFY news, 'hello'")
    const [{ payload }] = await heard
    await Promise.all([listener.end(), notifier.end()])
    return payload
  },
  async ioredis(options) {
    const [redis, subscriber] = [new Redis(options), new Redis(options)]
    await redis.set('key', 'value')
    await subscriber.subscribe('news')
    const heard = once(subscriber, 'message')
    await redis.publish('news', 'hello')
    const pipeline = redis.pipeline()
    for (let n = 0; n < 1000; n++) pipeline.incr('count')
    const results = await pipeline.exec()
    const answer = { value: await redis.get('key'), heard: (await heard)[1], count: results.at(-1)[1] }
    redis.disconnect()
    subscriber.disconnect()
    return answer
  },
  async nodemailer({ message, ...options }) {
    const { response } = await createTransport(options).sendMail(message)
    return response
  },
  async ws({ url, ca }) {
    const socket = new WebSocket(url, { ca })
    await once(socket, 'open')
    socket.send('hello')
    const [data] = await once(socket, 'message')
    socket.close()
    return String(data)
  },
  async undici({ url, ca }) {
    const dispatcher = new Agent({ connect: { ca } })
    const { body } = await undiciRequest(url, { dispatcher })
    const text = await body.text()
    await dispatcher.close()
    return text
  },
  async grpc({ address, proto }) {
    const { Echo } = loadPackageDefinition(loadSync(proto)).test
    const client = new Echo(address, credentials.createInsecure())
    const said = await new Promise((resolve, reject) =>
      client.say({ text: 'hello' }, (error, answer) => (error ? reject(error) : resolve(answer.text)))
    )
    client.close()
    return said
  },
  async tls({ ca, ...options }) {
    const socket = tls.connect({ ...options, ca })
    await once(socket, 'secureConnect')
    socket.write('hello')
    const [data] = await once(socket, 'data')
    socket.destroy()
    return `${socket.authorized} ${data}`
  },
  async http2({ url, ca }) {
    const session = connectHttp2(url, { ca })
    const stream = session.request({ ':path': '/' })
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) text += chunk
    session.close()
    return text
  },
  async http({ url }) {
    const [answer] = await once(request(url, { agent: undefined }).end(), 'response')
    let text = ''
    for await (const chunk of answer.setEncoding('utf8')) text += chunk
    return text
  },
  async fetch({ url }) {
    return (await fetch(url)).text()
  },
  async many({ host, port, count }) {
    const open = []
    let refused = 0
    let code = ''
    for (let n = 0; n < count; n++) {
      const socket = net.connect(port, host)
      try {
        await once(socket, 'connect')
        open.push(socket)
      } catch (error) {
        refused++
        code = error.code
      }
    }
    for (const socket of open) socket.destroy()
    return { open: open.length, refused, code }
  },
  async half({ host, port }) {
    const socket = net.connect({ host, port, allowHalfOpen: true })
    await once(socket, 'connect')
    socket.end('all of it')
    const chunks = []
    for await (const chunk of socket) chunks.push(chunk)
    return String(Buffer.concat(chunks))
  },
  async lookup({ host }) {
    const [one, all, viaCallback] = await Promise.all([
      dns.promises.lookup(host),
      dns.promises.lookup(host, { all: true }),
      promisify(dns.lookup)(host),
    ])
    return { same: all[0].address === one.address && viaCallback.address === one.address, ...one }
  },
  async resolve({ host }) {
    const [resolver, promised] = [new dns.Resolver(), new dns.promises.Resolver()]
    const byCallback = (of, name, ...args) => promisify(of[name].bind(of))(host, ...args)
    return Promise.all([
      dns.promises.resolve4(host),
      dns.promises.resolve(host, 'A'),
      byCallback(dns, 'resolve4'),
      byCallback(dns, 'resolve'),
      byCallback(dns, 'resolve', 'A'),
      promised.resolve4(host),
      promised.resolve(host, 'A'),
      byCallback(resolver, 'resolve4'),
      byCallback(resolver, 'resolve', 'A'),
    ])
  },
  async query({ host, by, call, args = [] }) {
    if (by === 'dns.promises.Resolver') return new dns.promises.Resolver()[call](host, ...args)
    if (by === 'dns.promises') return dns.promises[call](host, ...args)
    const resolver = by === 'dns' ? dns : new dns.Resolver()
    return promisify(resolver[call].bind(resolver))(host, ...args)
  },
  async lookedUp({ host, port }) {
    const { address } = await dns.promises.lookup(host)
    return CLIENTS.half({ host: address, port })
  },
  async services({ host }) {
    return dns.promises.resolveSrv(host)
  },
  /** Listens until `unlisten`. */
  async listen({ port }) {
    listening = net.createServer(socket => socket.end('mine')).listen(port, '0.0.0.0')
    await once(listening, 'listening')
    return listening.address().port
  },
  async unlisten() {
    const socket = net.connect(listening.address().port, '127.0.0.1')
    const [data] = await once(socket, 'data')
    listening.close()
    return String(data)
  },
  async own() {
    const server = net.createServer(socket => socket.end('mine')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = net.connect(server.address().port, '127.0.0.1')
    const [data] = await once(socket, 'data')
    server.close()
    return String(data)
  },
  async datagram({ host, port }) {
    const socket = dgram.createSocket('udp4')
    try {
      return await promisify(socket.send.bind(socket))('hello', port, host)
    } finally {
      socket.close()
    }
  },
  async datagramConnected({ host, port }) {
    const socket = dgram.createSocket('udp4')
    try {
      await promisify(socket.connect.bind(socket))(port, host)
      return await promisify(socket.send.bind(socket))('hello')
    } finally {
      socket.close()
    }
  },
  async connect({ host, port }) {
    const socket = net.connect(port, host)
    await once(socket, 'connect')
    socket.destroy()
    return 'connected'
  },
}

/** Its errors keep their code in the message: a code of Node's is not one of svc's. */
const call = async ({ client, options }) => {
  try {
    return { content: [], structured: { answer: (await CLIENTS[client](options)) ?? null } }
  } catch (error) {
    return { content: [], structured: { failed: `${error.code}: ${error.message}` } }
  }
}

export default definePlugin({
  setup({ add }) {
    add(Tools, 'client', {
      description: 'Uses a client library.',
      parameters: { type: 'object' },
      effects: [],
      call,
    })
  },
})
