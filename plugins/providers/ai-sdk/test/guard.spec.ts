import { once } from 'node:events'
import { Writable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { formatError } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { type Answerer, openUpstream, testHost } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { V2, V3, V4, V4_ANTHROPIC, V4_RESPONSES } from './support/dialects.ts'
import { openScripted } from './support/modules.ts'
import { ask, behaving, CANARY, endlessContext, failureOf, KEY_ENV, openRig, says, textOf } from './support/rig.ts'

const failing = async (by: Answerer, dialect = V4) => {
  await using rig = await openRig(dialect, by)
  const error = await failureOf(ask(rig.provider, says('any')))
  return { error, upstream: rig.upstream }
}
const line = 'x'.repeat(64 * 1024)

describe('the way of provider-ai-sdk to its upstream', () => {
  for (const dialect of [V4, V4_ANTHROPIC, V3, V2])
    it(`follows no redirect, through ${dialect.title}`, async () => {
      await using elsewhere = await openUpstream((_, reply) => reply.json(200, {}))
      for (const status of [301, 302, 303, 307, 308]) {
        const { error } = await failing((_, reply) => reply.redirect(status, elsewhere.url), dialect)
        expect(error.details).to.include({ kind: 'bad_request', upstreamStatus: status })
        expect(error.hint).to.include('providers.mine.base_url')
      }
      expect(elsewhere.received).to.deep.equal([])
    })

  it('unpacks nothing', async () => {
    const { error } = await failing((_, reply) => {
      reply.begin({ 'content-encoding': 'gzip' })
      void reply.write(gzipSync(V4.wire.begin()))
    })
    expect(error.details).to.include({ kind: 'network', retryable: false })
    expect(error.message).to.include('compressed')
  })

  it('breaks off a frame that does not end', async () => {
    const { error } = await failing((_, reply) => reply.endless(() => line))
    expect(error.details).to.include({ kind: 'network', retryable: false })
    expect(error.message).to.include('frame')
  })

  it('breaks off an answer that is too large, and an error sooner', async () => {
    const { error } = await failing((_, reply) => reply.endless(() => `:${line}\n`))
    expect(error.details).to.include({ kind: 'network', retryable: false })
    expect(error.message).to.include('an answer that is too large')
    const { error: page } = await failing((_, reply) => reply.raw(500, 'text/html', `${line}\n`.repeat(10)))
    expect(page.message).to.include('an answer that is too large')
  })

  it('tells a page, an empty answer and half a JSON as what they are', async () => {
    const { error: page } = await failing((_, reply) => reply.raw(502, 'text/html', '<h1>Bad gateway</h1>'))
    expect(page.details).to.include({ kind: 'overloaded', upstreamStatus: 502 })
    const { error: empty } = await failing((_, reply) => reply.raw(400, 'application/json', ''))
    expect(empty.details).to.include({ kind: 'bad_request', upstreamStatus: 400 })
    const { error: half } = await failing((_, reply) => reply.raw(200, 'text/event-stream', ''))
    expect(half.details).to.include({ kind: 'network' })
  })

  it('waits as long as the upstream asks for', async () => {
    const { error } = await failing((_, reply) => reply.json(429, { error: { message: 'slowly' } }, { 'retry-after': '7' }))
    expect(error.details).to.include({ kind: 'rate_limited', retryable: true, retryAfterMs: 7000 })
  })

  it('tells an upstream that is not there, with the hint', async () => {
    await using rig = await openRig(V4, behaving(V4.wire))
    await rig.upstream.close()
    const error = await failureOf(ask(rig.provider, says('any')))
    expect(error.details).to.include({ kind: 'network', retryable: true })
    expect(error.hint).to.include('providers.mine.base_url')
    expect((await failureOf(rig.provider.probe(endlessContext()))).details).to.include({ kind: 'network' })
  })

  it('uses its connections again', async () => {
    await using rig = await openRig(V4, behaving(V4.wire))
    for (let times = 0; times < 5; times++) await ask(rig.provider, says('plain'))
    expect(rig.upstream.connected()).to.be.below(5)
  })

  it('closes what is open with the host', async () => {
    await using rig = await openRig(V4, behaving(V4.wire))
    const asking = failureOf(ask(rig.provider, says('silent')))
    while (rig.upstream.open() === 0) await wait(5)
    await rig.host.close()
    expect((await asking).code).to.equal('MODEL_FAILED')
    while (rig.upstream.sockets() > 0) await wait(5)
  })

  it('has a probe that sends no key and asks no model', async () => {
    await using rig = await openRig(V4, behaving(V4.wire))
    await rig.provider.probe(endlessContext())
    const [{ method, headers, text } = expect.fail('nothing was sent')] = rig.upstream.received
    expect([method, text]).to.deep.equal(['HEAD', ''])
    expect(JSON.stringify(headers)).to.not.include(CANARY)
  })

  it('tells what a package throws in the words of a failure', async () => {
    for (const [throws, kind] of [
      [{ name: 'AI_NoSuchModelError' }, 'bad_request'],
      [{ name: 'AI_APICallError', statusCode: 529, responseBody: '{"error":{"type":"overloaded_error"}}' }, 'overloaded'],
      [{ name: 'AI_RetryError', lastError: { statusCode: 429, responseHeaders: { 'retry-after-ms': '5' } } }, 'rate_limited'],
      [{ name: 'AI_APICallError', cause: { code: 'ECONNRESET' } }, 'network'],
      [{ name: 'AI_APICallError', cause: { cause: { code: 'UND_ERR_BODY_TIMEOUT' } } }, 'timeout'],
      [{ name: 'TimeoutError' }, 'timeout'],
      [{ name: 'TypeError', message: `x is not a function ${CANARY}` }, 'bad_request'],
      [{ statusCode: 400, responseBody: '{"error":{"code":"content_policy_violation"}}' }, 'content_refused'],
      [{ statusCode: 429, responseBody: '{"error":{"code":"insufficient_quota"}}' }, 'rate_limited'],
    ] as const) {
      await using rig = await openScripted({ throws })
      const error = await failureOf(ask(rig.provider, says('any')))
      expect(error.details, JSON.stringify(throws)).to.include({ kind })
      expect(formatError(error)).to.not.include(CANARY)
    }
  })

  it('keeps the words of a package to the log, and tells the name of its error', async () => {
    const words = `cannot read /srv/somebody/keys.json for ${CANARY}`
    const lines: string[] = []
    const log = { destination: { write: (text: string) => void lines.push(text) } }
    for (const [throws, reported] of [
      [{ name: 'TypeError' }, 'TypeError'],
      [{ name: words }, 'an error without a name'],
      [{ name: 'AI_NoSuchModelError' }, 'does not know this model'],
      [{ name: 'AI_UnsupportedFunctionalityError' }, 'does not support this request'],
      [{ statusCode: 500 }, 'answered 500'],
    ] as const) {
      await using rig = await openScripted({ throws: { message: words, ...throws } }, {}, log)
      const error = await failureOf(ask(rig.provider, says('any')))
      expect(formatError(error))
        .to.include(reported)
        .and.not.match(/somebody|keys\.json/)
    }
    const answer = lines.map(item => JSON.parse(item)).filter(item => item.words !== undefined)
    expect(answer.map(item => item.words)).to.deep.equal(Array(4).fill('cannot read /srv/somebody/keys.json for [secret]'))
  })

  it('tells what is thrown and no error as the package’s, and what is streamed as the upstream’s', async () => {
    await using throwing = await openScripted({ throws: 'at /srv/somebody/x.js' })
    expect((await failureOf(ask(throwing.provider, says('any')))).message).to.not.include('somebody')
    await using streaming = await openScripted({ parts: [{ type: 'error', error: 'no room today' }] })
    expect((await failureOf(ask(streaming.provider, says('any')))).message).to.include('no room today')
  })
})

describe('several entries of provider-ai-sdk', () => {
  it('stand side by side, each with its package, its upstream and its key', async () => {
    await using upstream = await openUpstream(behaving(V2.wire))
    await using two = await openUpstream(behaving(V4_RESPONSES.wire))
    Object.assign(process.env, { [KEY_ENV]: CANARY, SVC_TEST_OTHER_KEY: 'sk-other-key' })
    const providers = {
      old: { type: 'ai-sdk', ...V2.entry, base_url: `${upstream.url}/v1`, api_key_env: KEY_ENV },
      new: { type: 'ai-sdk', ...V4_RESPONSES.entry, base_url: `${two.url}/v1`, api_key_env: 'SVC_TEST_OTHER_KEY' },
    }
    await using host = await testHost([new URL('..', import.meta.url)], { config: { providers } })
    const slot = host.slot(Providers)
    expect(slot.names()).to.deep.equal(['old', 'new'])
    for (const name of ['old', 'new']) expect(textOf(await ask(slot.get(name)!, says('plain')))).to.equal('Hello there')
    expect(upstream.received.map(({ headers }) => headers.authorization)).to.deep.equal([`Bearer ${CANARY}`])
    expect(two.received.map(({ headers }) => headers.authorization)).to.deep.equal(['Bearer sk-other-key'])
  })
})

describe('the log of provider-ai-sdk', () => {
  it('has each warning of a package once, and never the key', async () => {
    process.env[KEY_ENV] = CANARY
    await using upstream = await openUpstream(behaving(V4.wire))
    const lines: string[] = []
    const destination = new Writable({ write: (chunk, _, done) => (lines.push(String(chunk)), done()) })
    const mine = { type: 'ai-sdk', ...V4.entry, base_url: `${upstream.url}/v1`, api_key_env: KEY_ENV }
    const host = await testHost([new URL('..', import.meta.url)], {
      config: { providers: { mine } },
      log: { level: 'debug', destination },
    })
    const provider = host.slot(Providers).get('mine')!
    // A model that reasons takes no temperature, and the package says so.
    upstream.answer((_, reply) =>
      reply.end(V4.wire.text('x') + V4.wire.end('stop', { input: 1, output: 1, cached: 0, reasoning: 0 }))
    )
    for (let times = 0; times < 3; times++) await ask(provider, says('o3', { temperature: 0.5 }))
    upstream.answer(behaving(V4.wire))
    await failureOf(ask(provider, says('fail-authentication')))
    await host.close()
    destination.end()
    await once(destination, 'finish')
    expect(lines.filter(line => line.includes('temperature'))).to.have.length(1)
    expect(lines.join('')).to.not.include(CANARY)
  })
})
