import { once } from 'node:events'
import { expect } from 'chai'
import type { Route } from '@svc/core/contracts'
import { svcError } from '@svc/core'
import { call, open, serve, signalOf } from './support/client.ts'

type Make = NonNullable<Route['stream']>

const streaming = (stream: Make, streams = 'text/event-stream'): Record<string, Route> => ({
  flow: { method: 'GET', path: '/flow', summary: 'Flows', streams, stream },
})
const GET = 'GET /flow HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** The chunks of an answer, each of which was one write. */
function chunksOf(answer: string): string[] {
  let rest = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  const chunks: string[] = []
  while (rest !== '') {
    const end = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.slice(0, end), 16)
    chunks.push(rest.slice(end + 2, end + 2 + size))
    rest = rest.slice(end + 4 + size)
  }
  return chunks
}

describe('a stream', () => {
  it('goes out with the headers of an event stream and the request id', async () => {
    await using served = await serve(
      streaming(async function* () {
        yield 'data: 1\n\n'
        yield 'data: 2\n\n'
      })
    )
    const { status, headers, text } = await call(`${served.url}/flow`, { headers: { 'x-request-id': 'mine' } })
    expect([status, text]).to.deep.equal([200, 'data: 1\n\ndata: 2\n\n'])
    expect(headers.get('content-type')).to.equal('text/event-stream')
    expect(headers.get('cache-control')).to.equal('no-cache')
    expect(headers.get('x-accel-buffering')).to.equal('no')
    expect(headers.get('x-request-id')).to.equal('mine')
  })

  it('may be of another type', async () => {
    await using served = await serve(
      streaming(async function* () {
        yield 'one\n'
      }, 'application/x-ndjson')
    )
    const { headers, text } = await call(`${served.url}/flow`)
    expect([headers.get('content-type'), text]).to.deep.equal(['application/x-ndjson', 'one\n'])
  })

  it('that fails before its first item is an ordinary error record', async () => {
    await using served = await serve(
      streaming(async function* () {
        if (served.url)
          throw svcError('PROVIDER_NOT_FOUND', 'there is no provider "x"', { details: { provider: 'x', available: [] } })
        yield ''
      })
    )
    const { status, body, headers } = await call(`${served.url}/flow`)
    expect([status, body.error_code]).to.deep.equal([503, 'PROVIDER_NOT_FOUND'])
    expect(headers.get('content-type')).to.match(/json/)
  })

  it('that fails later breaks off, so that half of it does not look whole', async () => {
    await using served = await serve(
      streaming(async function* () {
        yield 'data: 1\n\n'
        throw new Error('gone wrong')
      })
    )
    const response = await fetch(`${served.url}/flow`)
    expect(response.status).to.equal(200)
    expect(await response.text().catch(() => 'broken')).to.equal('broken')
  })

  it('writes at once what comes together, in one piece', async () => {
    await using served = await serve(
      streaming(async function* () {
        yield 'a'
        for (let at = 0; at < 50; at++) yield 'b'
        await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
        for (let at = 0; at < 50; at++) yield 'c'
      })
    )
    const socket = await open(served.url)
    let answer = ''
    socket.setEncoding('utf8').on('data', chunk => (answer += chunk))
    socket.write(GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
    await once(socket, 'close')
    const chunks = chunksOf(answer)
    expect(chunks.filter(Boolean)).to.deep.equal([`a${'b'.repeat(50)}`, 'c'.repeat(50)])
  })

  it('lets other work of the loop go on although it never waits', async () => {
    let pulled = 0
    const enough = signalOf()
    await using served = await serve(
      streaming(async function* () {
        yield 'x'
        const stop = setTimeout(enough.resolve)
        const state = { going: true }
        void enough.promise.then(() => (state.going = false))
        for (; state.going && pulled < 1_000_000; pulled++) yield 'x'.repeat(1_000)
        clearTimeout(stop)
      })
    )
    await call(`${served.url}/flow`)
    expect(pulled).to.be.below(1_000_000)
  })

  it('beats while it is quiet', async () => {
    const release = signalOf()
    await using served = await serve(
      streaming(async function* () {
        yield 'data: 1\n\n'
        await release.promise
        yield 'data: 2\n\n'
      }),
      { heartbeat_ms: 20 }
    )
    const response = await fetch(`${served.url}/flow`)
    let text = ''
    for await (const bytes of response.body!) {
      text += Buffer.from(bytes).toString()
      if (text.split(':\n\n').length > 2) release.resolve()
    }
    expect(text.replaceAll(':\n\n', '')).to.equal('data: 1\n\ndata: 2\n\n')
  })

  it('ends with its reader: the signal aborts and the iterator is returned', async () => {
    const aborted = signalOf()
    const left = signalOf()
    await using served = await serve(
      streaming(async function* (_request, ctx) {
        try {
          yield 'data: 1\n\n'
          await new Promise<void>(resolve => ctx.signal.addEventListener('abort', () => resolve()))
          aborted.resolve()
          yield 'data: 2\n\n'
          throw new Error('was asked for more')
        } finally {
          left.resolve()
        }
      })
    )
    const socket = await open(served.url)
    socket.write(GET)
    await once(socket, 'data')
    socket.destroy()
    await aborted.promise
    await left.promise
  })

  it('is aborted too when its reader leaves before the first item', async () => {
    const begun = signalOf()
    const aborted = signalOf()
    await using served = await serve(
      streaming(async function* (_request, ctx) {
        begun.resolve()
        await new Promise<void>(resolve => ctx.signal.addEventListener('abort', () => resolve()))
        aborted.resolve()
        yield ''
      })
    )
    const socket = await open(served.url)
    socket.write(GET)
    await begun.promise
    socket.destroy()
    await aborted.promise
  })

  it('waits for a reader that stops, holds a bounded amount, and cuts it off in the end', async () => {
    const piece = 'x'.repeat(65_536)
    const left = signalOf()
    let pulled = 0
    await using served = await serve(
      streaming(async function* () {
        try {
          for (;;) {
            pulled++
            yield piece
          }
        } finally {
          left.resolve()
        }
      }),
      { stall_timeout_ms: 300 }
    )
    const socket = await open(served.url)
    socket.pause()
    socket.write(GET)
    await left.promise
    expect(pulled * piece.length, 'what the kernel takes, and little more').to.be.below(32 * 1024 * 1024)
    socket.destroy()
    expect((await call(`${served.url}/nothing`)).status).to.equal(404)
  })

  it('cuts a reader off that stops just before the end', async () => {
    const left = signalOf()
    const lines: string[] = []
    const written = (line: string) => void (lines.push(line), line.includes('"request"') && left.resolve())
    await using served = await serve(
      streaming(async function* () {
        yield 'a'
        yield 'x'.repeat(32 * 1024 * 1024)
      }),
      { stall_timeout_ms: 200 },
      { destination: { write: written } }
    )
    const socket = await open(served.url)
    socket.pause()
    socket.write(GET)
    await left.promise
    socket.destroy()
    expect(lines.some(line => line.includes('"gone":true'))).to.equal(true)
  })

  it('goes on when a slow reader comes back', async () => {
    const total = 400
    await using served = await serve(
      streaming(async function* () {
        for (let at = 0; at < total; at++) yield 'y'.repeat(65_536)
      })
    )
    const response = await fetch(`${served.url}/flow`)
    const reader = response.body!.getReader()
    let size = 0
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      size += next.value.length
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(size).to.equal(total * 65_536)
  })
})
