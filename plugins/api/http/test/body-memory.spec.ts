import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import type { Route } from '@svc/core/contracts'
import { createState } from '../src/context.ts'
import { createBodyMemory, type Separators } from '../src/body.ts'
import { call, open, post, raw, serve, signalOf } from './support/client.ts'

const MIB = 1024 * 1024
const route = (more: Partial<Route> = {}): Route => ({
  method: 'POST',
  path: '/large',
  summary: 'Takes large bodies',
  bodyLimit: 32 * MIB,
  body: { type: 'object' },
  handle: async ({ body }) => ({ body: { keys: Object.keys(body as object).length } }),
  ...more,
})
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const BYTES = { 'content-type': 'application/octet-stream' }

/** Counts a body in chunks of this size. Returns the error code, or nothing. */
function count(text: string, { separators = 'json', most = Number.MAX_SAFE_INTEGER, size = 7 }: CountOptions = {}) {
  const take = createBodyMemory(most).open(createState(), undefined, separators)
  const bytes = Buffer.from(text)
  try {
    for (let at = 0; at < bytes.length; at += size) take(bytes.subarray(at, at + size))
    return undefined
  } catch (error) {
    return (error as { code: string }).code
  }
}
interface CountOptions {
  readonly separators?: Separators
  readonly most?: number
  readonly size?: number
}

describe('the memory of bodies', () => {
  it('counts values outside of strings, wherever the chunks end', () => {
    // 1,000 commas in a string cost 2,000 bytes; 1,000 values cost 64,000 more
    const texts = [
      `${'y'.repeat(150)}\\\\\\",{`.repeat(19),
      `${'y'.repeat(150)}\\\\`.repeat(20),
      ',['.repeat(500),
      '\\",'.repeat(500),
      '\\\\\\"{,'.repeat(300),
      `${'\\\\'.repeat(400)}`,
    ]
    for (const text of texts)
      for (const size of [1, 2, 3, 5, 64, 100_000]) {
        const inString = `{"a":"${text}","b":"${','.repeat(500)}"}`
        expect(JSON.parse(inString)).to.have.keys('a', 'b')
        expect(count(inString, { most: 8_000, size }), `${text.slice(0, 5)} ${size}`).to.equal(undefined)
        const after = `{"a":"${text}","b":[${'1,'.repeat(500)}1]}`
        expect(count(after, { most: 30_000, size }), `${text.slice(0, 5)} ${size}`).to.equal('PAYLOAD_TOO_LARGE')
      }
  })

  it('has a limit for the values of one body, in JSON and in a form', () => {
    const size = 65_536
    expect(count(`[${'[],'.repeat(1_000_001)}[]]`, { size })).to.equal('PAYLOAD_TOO_LARGE')
    expect(count(`[${'[],'.repeat(900_000)}[]]`, { size })).to.equal(undefined)
    expect(count('a&'.repeat(2_000_001), { size, separators: 'form' })).to.equal('PAYLOAD_TOO_LARGE')
    expect(count(','.repeat(2_000_001), { size, separators: 'none' })).to.equal(undefined)
  })
})

describe('large bodies', () => {
  it('arrive at a route whose limit is 32 MiB, and not one byte more', async () => {
    const bytes = route({
      accepts: 'bytes',
      path: '/bytes',
      handle: async ({ bytes: sent }) => ({ body: { size: sent!.length } }),
    })
    await using served = await serve({ large: route(), bytes }, { body_memory: 512 * MIB })
    const fill = (size: number) => `{"a":"${'x'.repeat(size - 8)}"}`
    const { status, body } = await post(`${served.url}/large`, fill(32 * MIB))
    expect([status, body]).to.deep.equal([200, { keys: 1 }])
    expect((await post(`${served.url}/large`, fill(32 * MIB + 1))).status).to.equal(413)
    const whole = await post(`${served.url}/bytes`, new Uint8Array(32 * MIB), BYTES)
    expect(whole.body).to.deep.equal({ size: 32 * MIB })
    expect((await post(`${served.url}/bytes`, new Uint8Array(32 * MIB + 1), BYTES)).status).to.equal(413)
  })

  it('are refused with 503 while others take the memory, small ones are not, and later they pass', async () => {
    const [begun, release] = [signalOf(), signalOf()]
    let waiting = 0
    const held = route({
      async handle() {
        if (++waiting === 3) begun.resolve()
        await release.promise
        return {}
      },
    })
    await using served = await serve({ held, quick: route({ path: '/quick' }) }, { body_memory: 8 * MIB })
    const body = JSON.stringify({ text: 'x'.repeat(MIB) })
    const first = Array.from({ length: 3 }, () => post(`${served.url}/large`, body))
    await begun.promise
    const refused = await post(`${served.url}/quick`, body)
    expect([refused.status, refused.body.error_code, refused.headers.get('retry-after')]).to.deep.equal([503, 'UNAVAILABLE', '1'])
    expect((await post(`${served.url}/quick`, '{"small":true}')).status).to.equal(200)
    const values = await post(`${served.url}/quick`, JSON.stringify({ list: Array.from({ length: 40_000 }, () => []) }))
    expect([values.status, values.body.error_code], 'values count too').to.deep.equal([503, 'UNAVAILABLE'])
    release.resolve()
    expect((await Promise.all(first)).map(({ status }) => status)).to.deep.equal([204, 204, 204])
    expect((await post(`${served.url}/quick`, body)).status).to.equal(200)
  })

  it('are refused in the middle, if they come in chunks or with more values than fit; the connection stays in step', async () => {
    const forms = route({ path: '/form', accepts: 'form' })
    const bytes = route({ path: '/bytes', accepts: 'bytes' })
    await using served = await serve({ large: route(), forms, bytes }, { body_memory: MIB })
    const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
    const chunked = async (path: string, type: string, text: string) => {
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Type: ${type}\r\n\r\n`
      const parts = text
        .match(/[^]{1,60000}/g)!
        .map(chunk)
        .join('')
      const next = 'GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
      const socket = await open(served.url)
      let answers = ''
      socket.setEncoding('utf8').on('data', data => (answers += data))
      socket.write(`${head}${parts}0\r\n\r\n${next}`)
      await once(socket, 'close')
      return [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    }
    expect(await chunked('/large', 'application/json', `{"a":"${'x'.repeat(2 * MIB)}"}`)).to.deep.equal(['413', '404'])
    expect(await chunked('/large', 'application/json', `{"a":[${'[],'.repeat(100_000)}[]]}`)).to.deep.equal(['413', '404'])
    expect(await chunked('/form', FORM['content-type'], 'a&'.repeat(100_000))).to.deep.equal(['413', '404'])
    expect(await chunked('/bytes', BYTES['content-type'], 'x'.repeat(2 * MIB))).to.deep.equal(['413', '404'])
    expect(await chunked('/large', 'application/json', '{"a":1}')).to.deep.equal(['200', '404'])
    expect((await post(`${served.url}/large`, JSON.stringify({ a: 'x'.repeat(400_000) }))).status, 'nothing is lost').to.equal(
      200
    )
  })

  it('whose clients leave in the middle, or send slowly, take no memory from others', async () => {
    await using served = await serve({ large: route() }, { body_memory: 4 * MIB })
    const head = (length: number) =>
      `POST /large HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\nContent-Type: application/json\r\n\r\n{"a":"`
    const sockets: Socket[] = []
    for (let at = 0; at < 40; at++) {
      const socket = await open(served.url)
      socket.write(head(MIB)) // announces more than there is, and sends nothing
      sockets.push(socket)
    }
    const body = JSON.stringify({ text: 'x'.repeat(MIB) })
    expect((await post(`${served.url}/large`, body)).status).to.equal(200)
    for (const socket of sockets) socket.write('x'.repeat(30_000)), socket.destroySoon()
    await Promise.all(sockets.map(socket => once(socket, 'close')))
    // the server notices the end of the connections a little later
    while ((await post(`${served.url}/large`, body)).status !== 200) await wait(10)
    for (let at = 0; at < 5; at++) expect((await post(`${served.url}/large`, body)).status).to.equal(200)
    expect((await call(`${served.url}/nothing`)).status).to.equal(404)
  })

  it('that can never fit are too large, not a reason to try again', async () => {
    await using served = await serve({ large: route() }, { body_memory: MIB })
    const { status, body } = await post(`${served.url}/large`, JSON.stringify({ text: 'x'.repeat(MIB) }))
    expect([status, body.details]).to.deep.equal([413, { limit: MIB / 2 }])
    const { status: declared } = await raw(
      served.url,
      `POST /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${20 * MIB}\r\n\r\n`
    )
    expect(declared).to.equal(413)
  })
})
