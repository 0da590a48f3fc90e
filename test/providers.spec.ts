import type { ModelFailureKind } from '@svc/core/contracts'
import { FAILURE_KINDS, type FakeUpstream } from '@svc/testing'
import { expect } from 'chai'
import { wait } from './support/wait.ts'
import { type Client, createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { replyOf, streamProblems } from './support/events.ts'
import { BROKEN, openScene } from './support/scene.ts'
import { CITIES, HUNDRED, WIRES } from './support/wires.ts'

const RETRYABLE = new Set<ModelFailureKind>(['rate_limited', 'overloaded', 'network', 'timeout'])

const becomes = async (holds: () => boolean) => {
  while (!holds()) await wait()
}

type Body = Readonly<Record<string, unknown>>

for (const [type, wire] of Object.entries(WIRES))
  describe(`a service whose models come over ${type}`, () => {
    let scene: Awaited<ReturnType<typeof openScene>>
    let client: Client
    let upstream: FakeUpstream
    const asks = (model: string, more: object = {}) => ({
      message: 'How is it?',
      provider: `my-${type}`,
      model,
      tools: [],
      ...more,
    })
    const stream = (body: object) => client.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
    before(async () => {
      scene = await openScene([type])
      client = createClient(scene.service.url)
      upstream = scene.upstreamOf(type)
    })
    after(async () => {
      client.close()
      await scene[Symbol.asyncDispose]()
    })

    /** The calls of the upstream that `work` makes. */
    async function callsOf(work: () => Promise<void>) {
      const before = upstream.received.length
      await work()
      return upstream.received.slice(before)
    }

    /** That three rounds of two calls each went up and came back, in order. */
    function checkRounds(calls: FakeUpstream['received'], isWhole: boolean) {
      expect(calls.map(call => wire.isWhole(call))).to.deep.equal([isWhole, isWhole, isWhole, isWhole])
      for (const round of [0, 1, 2]) {
        const returned = wire.returned(calls.at(-1)!.body, round)
        expect(returned.slice(-2)).to.deep.equal(['sunny in Ulm', 'sunny in Bern'])
        if (returned.length > 2) expect(returned[0]).to.equal(`s${round}`)
      }
    }
    const { cached = 0 } = wire.usage
    const tokens = { input: 4 * wire.usage.input, output: 4 * wire.usage.output }
    const TOKENS = { ...tokens, total: tokens.input + tokens.output, ...(cached > 0 ? { cached: 4 * cached } : {}) }

    it('streams three rounds of parallel tools, results in the order of the calls, all tokens counted', async () => {
      const calls = await callsOf(async () => {
        const { events } = await (await stream(asks('rounds', { tools: ['weather'] }))).rest()
        expect(streamProblems(events)).to.deep.equal([])
        expect(replyOf(events)).to.equal('Fair everywhere.')
        const named = (name: string) => events.filter(event => event.event === name).map(event => event.data)
        const called = named('tool_call')
        expect(called.map(item => (item.arguments as Body).city)).to.deep.equal([...CITIES, ...CITIES, ...CITIES])
        expect(named('tool_result').map(item => item.call_id)).to.deep.equal(called.map(item => item.call_id))
        expect(named('tool_result').every(item => item.success)).to.equal(true)
        expect(events.at(-1)?.data).to.deep.include({ status: 'completed', model: 'rounds', tokens_used: TOKENS })
      })
      checkRounds(calls, false)
    })

    it('returns the same reply without streaming, and requests no stream from the upstream', async () => {
      const calls = await callsOf(async () => {
        const { status, body } = await client.post('/api/v1/chat', asks('rounds', { tools: ['weather'] }))
        expect(status).to.equal(200)
        expect(body).to.include({ response: 'Fair everywhere.' })
        const { tokens_used, tools_used } = body as { tokens_used: object; tools_used: Body[] }
        expect(tokens_used).to.deep.equal(TOKENS)
        expect(tools_used.map(item => [(item.arguments as Body).city, item.success])).to.deep.equal(
          [...CITIES, ...CITIES, ...CITIES].map(city => [city, true])
        )
      })
      checkRounds(calls, true)
    })

    it('closes the upstream request when its client disconnects, streamed or not', async () => {
      const open = await stream(asks('endless'))
      await open.until('token')
      await becomes(() => upstream.open() === 1)
      await open.leave()
      await becomes(() => upstream.open() === 0)
      for (const path of ['chat', 'chat/stream']) {
        const leaving = new AbortController()
        const { signal } = leaving
        const body = JSON.stringify(asks('silent'))
        const headers = { 'content-type': 'application/json' }
        const left = fetch(`${scene.service.url}/api/v1/${path}`, { method: 'POST', headers, body, signal }).catch(
          (error: Error) => error.name
        )
        await becomes(() => upstream.open() === 1)
        leaving.abort()
        expect(await left).to.equal('AbortError')
        await becomes(() => upstream.open() === 0)
      }
    })

    for (const kind of FAILURE_KINDS)
      it(`reports the failure ${kind} as documented, streamed or not`, async () => {
        for (const path of ['/api/v1/chat', '/api/v1/chat/stream']) {
          const { status, body } = await client.post(path, asks(wire.failing(kind)))
          const { error_code, details } = body as { error_code: string; details: Body }
          if (kind === 'context_too_long') {
            expect([status, error_code]).to.deep.equal([400, 'INVALID_VALUE'])
            expect(details).to.include({ field: 'message' })
            expect([details.limit, details.count].every(Number.isInteger)).to.equal(true)
          } else {
            expect([status, error_code]).to.deep.equal([503, 'PROVIDER_ERROR'])
            const upstream_status = wire.statuses[kind]
            const outputs = { provider: `my-${type}`, retryable: RETRYABLE.has(kind) }
            expect(details).to.deep.equal(upstream_status === undefined ? outputs : { ...outputs, upstream_status })
          }
        }
      })

    it('loses no token of 64 streams at once', async () => {
      const streams = Array.from({ length: 64 }, async () => (await stream(asks('hundred'))).rest())
      for (const { events } of await Promise.all(streams)) {
        expect(streamProblems(events)).to.deep.equal([])
        expect(events.filter(event => event.event === 'token').map(event => event.data.content)).to.deep.equal(HUNDRED)
      }
      await becomes(() => upstream.open() === 0)
    })

    it('ends a stream as failed when the upstream dies in its midst', async () => {
      await using dying = await openScene([type])
      const other = createClient(dying.service.url)
      const body = asks('endless')
      const open = await other.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
      await open.until('token')
      await dying.upstreamOf(type).close()
      const { events } = await open.rest()
      expect(streamProblems(events)).to.deep.equal([])
      expect(events.at(-2)).to.deep.nested.include({
        event: 'error',
        'data.error_code': 'PROVIDER_ERROR',
        'data.details': { provider: `my-${type}`, retryable: true },
      })
      expect(events.at(-1)).to.deep.nested.include({ event: 'end', 'data.status': 'failed' })
      const { status, body: refused } = await other.post('/api/v1/chat', asks('plain'))
      expect([status, (refused as Body).error_code]).to.deep.equal([503, 'PROVIDER_ERROR'])
      other.close()
    })
  })

describe('the keys of providers', () => {
  const PAGES = ['/api/v1/status', '/health', '/metrics', '/api/v1/profiles', '/api/v1/tools', '/openapi.json']
  const COMMANDS = [
    ['config', 'show'],
    ['plugins'],
    ['status'],
    ['providers', 'list'],
    ['providers', 'test'],
    ['providers', 'test', '--chat', '--local', '--model', 'plain', '--json'],
  ]

  it('are in no answer, log line, page, figure or command, whatever the upstream says', async () => {
    const types = Object.keys(WIRES)
    const { home, env, service, upstreamOf, ...scene } = await openScene(types, { args: ['--debug'], keyInFile: 'anthropic' })
    await using _ = scene
    const outputs: string[] = []
    for (const type of types)
      for (const model of [...FAILURE_KINDS.map(WIRES[type]!.failing), 'no-such-model', ...BROKEN, 'plain'])
        for (const path of ['chat', 'chat/stream']) {
          const body = JSON.stringify({ message: 'hi', provider: `my-${type}`, model })
          const headers = { 'content-type': 'application/json' }
          const answer = await fetch(`${service.url}/api/v1/${path}`, { method: 'POST', headers, body })
          outputs.push(`${type} ${model} ${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`)
        }
    for (const page of PAGES) outputs.push(`${page} ${await (await fetch(`${service.url}${page}`)).text()}`)
    for (const command of COMMANDS)
      outputs.push(`svc ${command.join(' ')}: ${JSON.stringify(await runSvc(command, { home, env }))}`)
    await service.stop()
    outputs.push(service.output())
    const all = outputs.join('\n')
    for (const type of types) {
      const { key } = WIRES[type]!
      expect(upstreamOf(type).received.some(request => JSON.stringify(request.headers).includes(key))).to.equal(true)
      expect(outputs.filter(output => output.includes(key))).to.deep.equal([])
      expect(all).to.match(new RegExp(`^${type} plain 200`, 'm'))
      for (const model of BROKEN) expect(all).to.match(new RegExp(`^${type} ${model} 200 .*text/event-stream`, 'm'))
    }
    // the words of upstreams came through, without the key that was in them
    expect(all).to.include('[secret]')
  })
})
