import { expect } from 'chai'
import type { Route } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { Http, Routes } from '@svc/core/contracts'
import { svcError } from '@svc/core'
import { call, ctx, serve } from './support/client.ts'

/** What a route of somebody else's may answer: its types need not be ours. */
const WRONG: Readonly<Record<string, unknown>> = {
  'nothing at all': undefined,
  'a bare text': 'hello',
  'a status that is none': { status: 99, text: 'a' },
  'a status in words': { status: 'ok' },
  'a text that is none': { text: 5 },
  'headers that are none': { headers: 'a', text: 'a' },
  'a header that is no text': { headers: { 'x-a': 5 }, text: 'a' },
  'a header that breaks the line': { headers: { 'x-a': 'a\r\nSet-Cookie: b' }, text: 'a' },
  'a body that is no JSON': { body: { n: 1n } },
}

describe('a route that answers in a wrong shape', () => {
  const strange = (answer: () => unknown): Route => ({
    method: 'GET',
    path: '/strange',
    summary: 'Strange',
    handle: async () => answer() as { text: string },
  })
  const serveWith = async (route: Route, lines: string[]) => {
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    return serve({}, {}, log, [item(Routes, 'strange', route)])
  }
  const complaint = (lines: readonly string[]) => lines.map(line => JSON.parse(line)).find(line => line.level === 50)

  for (const [title, answer] of Object.entries(WRONG))
    it(`(${title}) is an internal error, and the log names plugin and route`, async () => {
      const lines: string[] = []
      await using server = await serveWith(
        strange(() => answer),
        lines
      )
      const { status, body, headers } = await call(`${server.url}/strange`)
      expect([status, body.error_code, headers.get('x-a')]).to.deep.equal([500, 'INTERNAL_ERROR', null])
      const source = { owner: 'test:routes/strange', route: '/strange', name: 'strange' }
      expect(complaint(lines)).to.include({ ...source, msg: 'the route GET /strange of test:routes/strange failed' })
    })

  it('(a stream of something else) is an internal error too', async () => {
    const lines: string[] = []
    async function* stream() {
      yield { token: 1 } as unknown as string
    }
    await using server = await serveWith({ method: 'GET', path: '/strange', summary: 'Strange', stream }, lines)
    expect((await call(`${server.url}/strange`)).body.error_code).to.equal('INTERNAL_ERROR')
    expect(complaint(lines).err.message).to.include('an object in its stream')
  })
})

describe('refusals with 503', () => {
  it('are logged once a second, with the number of suppressed lines', async () => {
    const lines: string[] = []
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    const down: Route = {
      method: 'GET',
      path: '/down',
      summary: 'Down',
      handle: async () => {
        throw svcError('STORE_UNAVAILABLE', 'no store')
      },
    }
    await using server = await serve({ down }, {}, log)
    const warnings = () => lines.map(line => JSON.parse(line)).filter(line => line.level === 40)
    const replies = await Promise.all(Array.from({ length: 20 }, () => call(`${server.url}/down`)))
    expect(replies.every(reply => reply.status === 503)).to.equal(true)
    expect(warnings()).to.have.length(1)
    let asked = 20
    while (warnings().length < 2) {
      await call(`${server.url}/down`)
      asked++
    }
    expect(warnings()[1]).to.include({ error_code: 'UNAVAILABLE', left_out: asked - 2 })
  })

  it('of an upstream are one warning without a stack, before the start of a stream and within it', async () => {
    const lines: string[] = []
    const log = { level: 'info', destination: { write: (line: string) => void lines.push(line) } } as const
    const failed = () =>
      svcError('MODEL_FAILED', 'p: refused\u001b[2J', { details: { kind: 'network', provider: 'p', retryable: true } })
    const down: Route = {
      method: 'GET',
      path: '/down',
      summary: 'Down',
      handle: async () => {
        throw failed()
      },
    }
    await using server = await serve({ down }, {}, log)
    await Promise.all(Array.from({ length: 5 }, () => call(`${server.url}/down`)))
    const warnings = () => lines.map(line => JSON.parse(line)).filter(line => line.level >= 40)
    expect(warnings()).to.have.length(1)
    const { code, message, details } = failed()
    await server.host.service(Http).explain({ code, message, details: { ...details, provider: 'q' } }, ctx)
    expect(warnings().map(({ provider, error_code, msg }) => [provider, error_code, msg])).to.deep.equal([
      ['p', 'PROVIDER_ERROR', 'an upstream failed'],
      ['q', 'PROVIDER_ERROR', 'an upstream failed'],
    ])
    expect(warnings()[0].reason).to.match(/^p: refused/)
    for (const line of lines)
      expect(line)
        .to.not.match(/stack|\.ts:\d/)
        .and.to.not.include('\u001b')
  })
})
