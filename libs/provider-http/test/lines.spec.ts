import { type FrameReader, cutShort } from '@svc/provider-http'
import { createLineDecoder, readLines } from '@svc/provider-http/sse'
import { expect } from 'chai'
import { abortable, failing, idle, open, readAll, textOf } from './support/rig.ts'

// Not a unit test: it asks a server.

const lineReader = (): FrameReader => {
  let over = false
  return {
    frame(data, event, emit) {
      expect(event).to.equal('message')
      const { t, end } = JSON.parse(data) as { t?: string; end?: true }
      if (t !== undefined) emit({ type: 'text', text: t })
      over = end === true
    },
    end(emit) {
      if (!over) throw cutShort('acme')
      emit({ type: 'finish', reason: 'stop' })
    },
  }
}
const LINES = '{"t": "Grüße, "}\n{"t": "世界"}\r\n\n{"end": true}'

describe('newline-delimited JSON', () => {
  for (const type of [
    'application/x-ndjson',
    'application/ndjson; charset=utf-8',
    'application/jsonl',
    'application/stream+json',
  ])
    it(`is read by the type ${type}`, async () => {
      await using rig = await open((_, reply) => reply.raw(200, type, LINES))
      const { all, error } = await readAll(rig.upstream.stream('/chat', {}, lineReader(), abortable().ctx))
      expect(error).to.equal(undefined)
      expect(textOf(all)).to.equal('Grüße, |世界|<finish>')
    })

  it('is read whatever its type if the provider says so, and asked for', async () => {
    let type = 'application/json'
    await using rig = await open((_, reply) => reply.raw(200, type, LINES), { frames: 'lines' })
    for (type of ['application/json', 'text/plain', '']) {
      const { all, error } = await readAll(rig.upstream.stream('/chat', {}, lineReader(), abortable().ctx))
      expect([textOf(all), error], type).to.deep.equal(['Grüße, |世界|<finish>', undefined])
    }
    expect(rig.fake.received[0]!.headers.accept).to.equal('application/x-ndjson')
    type = 'text/html'
    const { error } = await readAll(rig.upstream.stream('/chat', {}, lineReader(), abortable().ctx))
    expect(error?.message).to.include('a web page')
  })

  it('reports a line that is no JSON, an answer that ends early, and a line without end', async () => {
    let body = '{"t": "a"}\n{"t"\n'
    await using rig = await open((_, reply) => reply.raw(200, 'application/x-ndjson', body), { limits: { frameBytes: 1000 } })
    const ask = async () => (await readAll(rig.upstream.stream('/chat', {}, lineReader(), abortable().ctx))).error
    expect((await ask())?.details).to.include({ kind: 'network' })
    body = '{"t": "a"}\n'
    expect((await ask())?.message).to.include('ended its answer early')
    body = `{"t": "${'x'.repeat(5000)}"}`
    expect((await ask())?.message).to.include('too large')
    await idle(rig.fake)
  })

  it('has the same lines however its bytes are split', async () => {
    const bytes = Buffer.from(`\uFEFF${LINES}`)
    for (let size = 1; size < 8; size++) {
      const lines: string[] = []
      const decoder = createLineDecoder(line => lines.push(line))
      for (let at = 0; at < bytes.length; at += size) decoder.push(bytes.subarray(at, at + size))
      decoder.end()
      expect(lines).to.deep.equal(['{"t": "Grüße, "}', '{"t": "世界"}', '{"end": true}'])
    }
    const all = await Array.fromAsync(
      readLines(
        (async function* () {
          yield bytes
        })()
      )
    )
    expect(all).to.have.length(3)
  })
})

describe('a mistake in the code of a provider', () => {
  it('in its frame reader is reported as such, with its place and without secrets', async () => {
    await using rig = await open((_, reply) => reply.raw(200, 'text/event-stream', 'data: {"choices": null}\n\n'), {
      secrets: ['choices'],
    })
    const broken: FrameReader = {
      frame: data => void (JSON.parse(data) as { choices: { delta: string }[] }).choices[0]!.delta,
      end: () => {},
    }
    const error = await failing(rig.upstream.stream('/chat', {}, broken, abortable().ctx).next())
    expect(error.code).to.equal('PROVIDER_BROKEN')
    expect(error.message).to.match(/^acme: the code of the provider failed: TypeError: Cannot read properties of null/)
    expect(error.where).to.match(/^lines\.spec\.ts:\d+$/)
    expect(error.hint).to.include('malformed(provider)')
    await idle(rig.fake)
  })

  it('in a request is no broken connection', async () => {
    await using rig = await open((_, reply) => reply.json(200, {}), { headers: { 'x-acme': 'a\nb' } })
    const error = await failing(rig.upstream.json('GET', '/', undefined, abortable().ctx))
    expect([error.code, error.message]).to.deep.equal([
      'PROVIDER_BROKEN',
      'acme: the code of the provider failed: InvalidArgumentError: invalid x-acme header',
    ])
    const body: { self?: unknown } = {}
    body.self = body
    const circular = await failing((async () => rig.upstream.stream('/chat', body, lineReader(), abortable().ctx).next())())
    expect(circular.message).to.match(/circular/)
  })
})
