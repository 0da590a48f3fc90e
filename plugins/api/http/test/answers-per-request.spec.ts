import { setTimeout as wait } from 'node:timers/promises'
import type { Route, RouteReply, RouteStreamItem } from '@svc/core/contracts'
import { expect } from 'chai'
import { call, serve } from './support/client.ts'

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255, 10, 13])

const REPLIES: Readonly<Record<string, RouteReply>> = {
  bytes: { bytes: PNG },
  image: { status: 201, bytes: PNG, headers: { 'Content-Type': 'image/png' } },
  part: { bytes: new Uint8Array(new Uint8Array(100).buffer, 10, 5) },
  text: { text: 'plain' },
  data: { body: { data: true } },
  nothing: { status: 204 },
}
const STREAMS: Readonly<Record<string, readonly unknown[]>> = {
  ...Object.fromEntries(Object.entries(REPLIES).map(([name, reply]) => [name, [reply]])),
  csv: [{ status: 206, headers: { 'content-type': 'text/csv', 'x-rows': '2' } }, 'a,b\n', '1,2\n'],
  mixed: ['text ', PNG, ' more ', PNG, ' end'],
  events: [{ headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } }, 'data: 1\n\n'],
  plain: ['only ', 'text'],
  empty: [],
  // refused
  two: [{ status: 200 }, { status: 201 }],
  late: ['text', { status: 201 }],
  both: [{ text: 'a', bytes: PNG }],
  strange: [{ status: 200, stream: true }],
  object: [{}],
  number: [5],
  status: [{ status: 99 }],
}

const reply: Route = {
  method: 'GET',
  path: '/reply/:as',
  summary: 'Answers as the request wishes',
  handle: async ({ params }) => REPLIES[params.as!]!,
}
const stream: Route = {
  method: 'GET',
  path: '/stream/:as',
  summary: 'Streams as the request wishes',
  async *stream({ params }) {
    yield* STREAMS[params.as!] as readonly RouteStreamItem[]
  },
}

describe('a route that decides per request', () => {
  let served: Awaited<ReturnType<typeof serve>>
  before(async () => {
    served = await serve({ reply, stream }, {}, { level: 'silent' })
  })
  after(() => served.host.close())
  const get = async (path: string) => {
    const response = await fetch(`${served.url}${path}`)
    const bytes = Buffer.from(await response.arrayBuffer())
    return { status: response.status, type: response.headers.get('content-type'), headers: response.headers, bytes }
  }

  for (const kind of ['reply', 'stream'])
    it(`answers bytes, text, data or nothing (${kind})`, async () => {
      expect(await get(`/${kind}/bytes`)).to.deep.include({
        status: 200,
        type: 'application/octet-stream',
        bytes: Buffer.from(PNG),
      })
      expect(await get(`/${kind}/image`)).to.deep.include({ status: 201, type: 'image/png', bytes: Buffer.from(PNG) })
      expect((await get(`/${kind}/part`)).bytes).to.have.length(5)
      expect(await get(`/${kind}/text`)).to.deep.include({ type: 'text/plain; charset=utf-8', bytes: Buffer.from('plain') })
      const { status, body } = await call(`${served.url}/${kind}/data`)
      expect([status, body]).to.deep.equal([200, { data: true }])
      expect(await get(`/${kind}/nothing`)).to.deep.include({ status: 204, bytes: Buffer.alloc(0) })
    })

  it('streams with the status and headers of its first item', async () => {
    const csv = await get('/stream/csv')
    expect(csv).to.deep.include({ status: 206, type: 'text/csv', bytes: Buffer.from('a,b\n1,2\n') })
    expect(csv.headers.get('x-rows')).to.equal('2')
    const events = await get('/stream/events')
    expect(events.headers.get('x-accel-buffering'), 'events are not buffered by proxies').to.equal('no')
  })

  it('streams text and bytes in their order, and as before without a first reply', async () => {
    const png = Buffer.from(PNG)
    const mixed = Buffer.concat([Buffer.from('text '), png, Buffer.from(' more '), png, Buffer.from(' end')])
    expect((await get('/stream/mixed')).bytes).to.deep.equal(mixed)
    expect(await get('/stream/plain')).to.deep.include({ type: 'text/plain; charset=utf-8', bytes: Buffer.from('only text') })
    expect((await get('/stream/empty')).status).to.equal(200)
  })

  it('is an internal error with two kinds of content, an unknown member or a status that is none', async () => {
    for (const as of ['both', 'strange', 'object', 'number', 'status']) {
      const { status, body } = await call(`${served.url}/stream/${as}`)
      expect([status, body.error_code], as).to.deep.equal([500, 'INTERNAL_ERROR'])
    }
  })

  it('ends the work of a stream whose answer is complete or invalid', async () => {
    const ended: string[] = []
    const work: Route = {
      method: 'GET',
      path: '/task/:as',
      summary: 'Works on',
      async *stream({ params }) {
        try {
          yield STREAMS[params.as!]![0] as RouteStreamItem
          yield STREAMS[params.as!]![1] as RouteStreamItem
          await new Promise(() => {})
        } finally {
          ended.push(params.as!)
        }
      },
    }
    await using one = await serve({ work }, {}, { level: 'silent' })
    for (const as of ['data', 'status', 'both', 'late'])
      await fetch(`${one.url}/task/${as}`)
        .then(answer => answer.text())
        .catch(() => {})
    expect(ended).to.deep.equal(['data', 'status', 'both', 'late'])
  })

  it('breaks off when a later item is a reply', async () => {
    for (const as of ['two', 'late']) expect(await get(`/stream/${as}`).catch(() => 'broken'), as).to.equal('broken')
  })

  it('sends many bytes no faster than its client reads them, and all of them', async () => {
    const chunk = new Uint8Array(1024 * 1024).fill(7)
    let made = 0
    const large: Route = {
      method: 'GET',
      path: '/large',
      summary: 'Streams 64 MiB',
      async *stream() {
        for (; made < 64; made++) yield chunk
      },
    }
    await using server = await serve({ large })
    const response = await fetch(`${server.url}/large`)
    const reader = response.body!.getReader()
    await reader.read()
    await wait(200)
    expect(made, 'the stream waits').to.be.lessThan(60)
    let size = 0
    for (let part = await reader.read(); !part.done; part = await reader.read()) size += part.value.length
    expect(size).to.be.greaterThan(63 * chunk.length)
  })
})
