import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ModelFailureKind } from '@svc/core/contracts'
import { FAILURE_KINDS, type FakeUpstream } from '@svc/core/testing'
import { expect } from 'chai'
import { breath } from './support/breath.ts'
import { type Client, createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { replyOf, streamFaults } from './support/events.ts'
import { openProxy } from './support/proxy.ts'
import { newHome, startService } from './support/service.ts'
import { CITIES, HUNDRED, type Wire, WIRES } from './support/wires.ts'

const WEATHER = fileURLToPath(new URL('./support/weather.ts', import.meta.url))
const RETRYABLE = new Set<ModelFailureKind>(['rate_limited', 'overloaded', 'network', 'timeout'])

const keyEnv = (type: string) => `KEY_OF_${type.replace('-', '_').toUpperCase()}`
/** Their streams begin, and fail in the middle where their wire can say so. */
const BROKEN = ['cut', 'midway']
const OTHERS = ['plain', 'rounds', 'hundred', 'endless', 'silent', 'stalled', 'no-such-model', ...BROKEN]
const modelsOf = (wire: Wire) => [...OTHERS, ...FAILURE_KINDS.map(wire.failing)]
const becomes = async (holds: () => boolean) => {
  while (!holds()) await breath()
}

interface Scene {
  readonly args?: readonly string[]
  /** The type of the entry whose key stands in a file. */
  readonly keyInFile?: string
  /** Of the section `chat`. */
  readonly limits?: object
  readonly variables?: Readonly<Record<string, string>>
}

/** A real service with an entry for each wire, named as its type, before a fake of its server. */
async function openScene(types: readonly string[], { args = [], keyInFile, limits = {}, variables = {} }: Scene = {}) {
  const home = await newHome()
  const upstreams = new Map<string, FakeUpstream>()
  for (const type of types) upstreams.set(type, await WIRES[type]!.open())
  const entries = types.map(type => {
    const wire = WIRES[type]!
    const key = type === keyInFile ? { api_key_file: join(home, 'key') } : { api_key_env: keyEnv(type) }
    const own = { type, ...key, models: modelsOf(wire) }
    return [`my-${type}`, { ...own, ...wire.entry(upstreams.get(type)!.url) }] as const
  })
  // what a provider says goes out at once: retries have tests of their own
  const chat = { policy: { attempts: 1, breaker_failures: 0 }, ...limits }
  const config = { plugins: [WEATHER], providers: Object.fromEntries(entries), chat }
  await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
  if (keyInFile !== undefined) await writeFile(join(home, 'key'), `${WIRES[keyInFile]!.key}\n`)
  const named = types.filter(type => type !== keyInFile)
  const env = { ...variables, ...Object.fromEntries(named.map(type => [keyEnv(type), WIRES[type]!.key])) }
  const service = await startService({ home, env, args })
  return {
    home,
    env,
    service,
    upstreamOf: (type: string) => upstreams.get(type)!,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      for (const upstream of upstreams.values()) await upstream.close()
      await rm(home, { recursive: true, force: true })
    },
  }
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
    const tokens = { input: 4 * wire.usage.input, output: 4 * wire.usage.output }
    const TOKENS = { ...tokens, total: tokens.input + tokens.output }

    it('streams three rounds of parallel tools, results in the order of the calls, all tokens counted', async () => {
      const calls = await callsOf(async () => {
        const { events } = await (await stream(asks('rounds', { tools: ['weather'] }))).rest()
        expect(streamFaults(events)).to.deep.equal([])
        expect(replyOf(events)).to.equal('Fair everywhere.')
        const named = (name: string) => events.filter(event => event.event === name).map(event => event.data)
        const called = named('tool_call')
        expect(called.map(one => (one.arguments as Body).city)).to.deep.equal([...CITIES, ...CITIES, ...CITIES])
        expect(named('tool_result').map(one => one.call_id)).to.deep.equal(called.map(one => one.call_id))
        expect(named('tool_result').every(one => one.success)).to.equal(true)
        expect(events.at(-1)?.data).to.deep.include({ status: 'completed', model: 'rounds', tokens_used: TOKENS })
      })
      checkRounds(calls, false)
    })

    it('answers the same in one record, and asks for nothing but whole answers', async () => {
      const calls = await callsOf(async () => {
        const { status, body } = await client.post('/api/v1/chat', asks('rounds', { tools: ['weather'] }))
        expect(status).to.equal(200)
        expect(body).to.include({ response: 'Fair everywhere.' })
        const { tokens_used, tools_used } = body as { tokens_used: object; tools_used: Body[] }
        expect(tokens_used).to.deep.equal(TOKENS)
        expect(tools_used.map(one => [(one.arguments as Body).city, one.success])).to.deep.equal(
          [...CITIES, ...CITIES, ...CITIES].map(city => [city, true])
        )
      })
      checkRounds(calls, true)
    })

    it('leaves the upstream when its client leaves, in a stream and before a whole answer', async () => {
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
      it(`tells the failure ${kind} as documented, streamed or not`, async () => {
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
            const told = { provider: `my-${type}`, retryable: RETRYABLE.has(kind) }
            expect(details).to.deep.equal(upstream_status === undefined ? told : { ...told, upstream_status })
          }
        }
      })

    it('loses no token of 64 streams at once', async () => {
      const streams = Array.from({ length: 64 }, async () => (await stream(asks('hundred'))).rest())
      for (const { events } of await Promise.all(streams)) {
        expect(streamFaults(events)).to.deep.equal([])
        expect(events.filter(event => event.event === 'token').map(event => event.data.content)).to.deep.equal(HUNDRED)
      }
      await becomes(() => upstream.open() === 0)
    })

    it('takes silence for a time-out and closes the socket: before the first token, between two, before a whole answer', async () => {
      const limits = { first_token_timeout_ms: 300, token_timeout_ms: 300, whole_timeout_ms: 300 }
      await using quiet = await openScene([type], { limits })
      const silent = quiet.upstreamOf(type)
      const other = createClient(quiet.service.url)
      const details = { provider: `my-${type}`, retryable: true }
      // what a provider loads with its first call is not silence of its upstream
      for (let status = 0; status !== 200; ) ({ status } = await other.post('/api/v1/chat', asks('plain')))
      const before = silent.received.length
      for (const path of ['/api/v1/chat', '/api/v1/chat/stream']) {
        const { status, body } = await other.post(path, asks('silent'))
        expect(status).to.equal(503)
        expect(body).to.deep.include({ error_code: 'PROVIDER_ERROR', details })
        expect((body as Body).error).to.include('did not begin its answer for 300 ms')
        await becomes(() => silent.sockets() === 0)
      }
      const { events } = await (await other.stream({ method: 'POST', path: '/api/v1/chat/stream', body: asks('stalled') })).rest()
      expect(streamFaults(events)).to.deep.equal([])
      expect(replyOf(events)).to.not.equal('')
      const error = events.at(-2)?.data
      expect(error).to.deep.include({ type: 'error', error_code: 'PROVIDER_ERROR', details })
      expect(error?.error).to.include('fell silent for 300 ms')
      const end = events.at(-1)?.data
      expect(end).to.deep.include({ type: 'end', status: 'failed' })
      const tokens = end?.tokens_used as { input: number; output: number }
      expect(Math.min(tokens.input, tokens.output)).to.be.above(0)
      await becomes(() => silent.sockets() === 0)
      expect(silent.received.slice(before)).to.have.lengthOf(3)
      const { text } = await other.get('/metrics')
      for (const [model, times] of [
        ['silent', 2],
        ['stalled', 1],
      ] as const)
        expect(text).to.include(`svc_model_calls_total{provider="my-${type}",model="${model}",outcome="timeout"} ${times}\n`)
      for (const kind of ['input', 'output'] as const)
        expect(text).to.include(`svc_tokens_total{provider="my-${type}",model="stalled",kind="${kind}"} ${tokens[kind]}\n`)
      other.close()
    })

    it('ends a stream as failed when the upstream dies in its midst', async () => {
      await using dying = await openScene([type])
      const other = createClient(dying.service.url)
      const body = asks('endless')
      const open = await other.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
      await open.until('token')
      await dying.upstreamOf(type).close()
      const { events } = await open.rest()
      expect(streamFaults(events)).to.deep.equal([])
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
    const told: string[] = []
    for (const type of types)
      for (const model of [...FAILURE_KINDS.map(WIRES[type]!.failing), 'no-such-model', ...BROKEN, 'plain'])
        for (const path of ['chat', 'chat/stream']) {
          const body = JSON.stringify({ message: 'hi', provider: `my-${type}`, model })
          const headers = { 'content-type': 'application/json' }
          const answer = await fetch(`${service.url}/api/v1/${path}`, { method: 'POST', headers, body })
          told.push(`${type} ${model} ${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`)
        }
    for (const page of PAGES) told.push(`${page} ${await (await fetch(`${service.url}${page}`)).text()}`)
    for (const command of COMMANDS) told.push(`svc ${command.join(' ')}: ${JSON.stringify(await runSvc(command, { home, env }))}`)
    await service.stop()
    told.push(service.output())
    const all = told.join('\n')
    for (const type of types) {
      const { key } = WIRES[type]!
      expect(upstreamOf(type).received.some(one => JSON.stringify(one.headers).includes(key))).to.equal(true)
      expect(told.filter(one => one.includes(key))).to.deep.equal([])
      expect(all).to.match(new RegExp(`^${type} plain 200`, 'm'))
      for (const model of BROKEN) expect(all).to.match(new RegExp(`^${type} ${model} 200 .*text/event-stream`, 'm'))
    }
    // the words of upstreams came through, without the key that was in them
    expect(all).to.include('[secret]')
  })
})

describe('the proxy of the environment', () => {
  const types = Object.keys(WIRES)
  /** What each wire answers, through a service that is started with these variables. */
  async function answersWith(variables: Readonly<Record<string, string>>) {
    await using scene = await openScene(types, { variables: { NODE_USE_ENV_PROXY: '1', ...variables } })
    const client = createClient(scene.service.url)
    const answers = []
    for (const type of types)
      answers.push(await client.post('/api/v1/chat', { message: 'hi', provider: `my-${type}`, model: 'plain', tools: [] }))
    client.close()
    await scene.service.stop()
    const upstreams = types.map(scene.upstreamOf)
    return {
      answers: answers.map(({ status, text }) => `${status} ${text}`),
      hosts: upstreams.map(upstream => new URL(upstream.url).host),
      reached: upstreams.map(upstream => upstream.received.length),
      output: scene.service.output(),
    }
  }
  const all = <T>(value: T) => types.map(() => value)

  it('is the way of all wires where Node goes it, but to the hosts that the environment leaves out', async () => {
    await using proxy = await openProxy()
    const through = await answersWith({ HTTP_PROXY: proxy.url })
    expect(through.answers.map(one => one.slice(0, 3))).to.deep.equal(all('200'))
    expect(proxy.asked.splice(0)).to.deep.equal(through.hosts)
    const past = await answersWith({ HTTP_PROXY: proxy.url, NO_PROXY: '127.0.0.1' })
    expect([past.reached, proxy.asked]).to.deep.equal([all(1), []])
  })

  it('is not gone past when it refuses, and its password is told nowhere', async () => {
    await using proxy = await openProxy(407)
    const { host } = new URL(proxy.url)
    const { answers, reached, output } = await answersWith({ HTTP_PROXY: `http://somebody:canary-4711@${host}` })
    expect(answers.map(one => one.slice(0, 3))).to.deep.equal(all('503'))
    expect([reached, proxy.asked.length]).to.deep.equal([all(0), types.length])
    expect(answers.join() + output).to.not.match(/canary-4711|c29tZWJvZHk6/)
  })
})
