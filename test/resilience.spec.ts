import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigTree } from '@svc/core'
import { Chat, MetricSources, type Provider, Providers, type TurnEvent, type TurnReply } from '@svc/core/contracts'
import { gather, item, testHost, testContext } from '@svc/testing'
import { createUpstream } from '@svc/provider-http'
import { expect } from 'chai'
import { type Answerer, type FakeUpstream, openUpstream } from './support/upstream.ts'
import { pluginFolder } from './support/plugin-folder.ts'

const PLUGINS = [
  'store-memory',
  'conversations',
  'selection',
  'modes',
  'chat',
  'model-calls',
  'chat-policy',
  'cache',
  'chat-cache',
].map(pluginFolder)

/** A provider that asks over real HTTP, in a wire of this test's own. */
function httpProvider(name: string, { url }: FakeUpstream): Provider & AsyncDisposable {
  const upstream = createUpstream({ provider: name, baseUrl: url, headers: {}, secrets: [] })
  return {
    features: { tool_calling: false, streaming: true, vision: false },
    models: async () => ({ models: [{ id: 'm' }], open: false }),
    countTokens: async () => 1,
    chat: (request, ctx) =>
      upstream.stream(
        '/chat',
        { model: request.model },
        {
          frame: (data, _event, emit) => emit({ type: 'text', text: data }),
          end: emit => emit({ type: 'finish', reason: 'stop' }),
        },
        ctx
      ),
    probe: async () => undefined,
    [Symbol.asyncDispose]: () => upstream.close(),
  }
}

const saying =
  (text: string): Answerer =>
  async (_request, reply) => {
    await reply.write(`data: ${text}\n\n`)
    reply.end()
  }
const DOWN: Answerer = (_request, reply) => reply.json(503, { error: { message: 'down for a while' } })

interface Scene extends AsyncDisposable {
  readonly main: FakeUpstream
  readonly spare: FakeUpstream
  reply(): Promise<TurnReply>
  stream(): Promise<TurnEvent[]>
  metrics(): Promise<string[]>
}

/** A server whose profile asks `main`, and `spare` in its stead. */
async function openScene(policy: ConfigTree): Promise<Scene> {
  const home = await mkdtemp(join(tmpdir(), 'svc-resilience-'))
  const file = join(home, 'profiles.yaml')
  await writeFile(file, 'default: d\nprofiles:\n  d: { provider: main, model: m, fallback: [{ provider: spare, model: m }] }\n')
  const [main, spare] = await Promise.all([openUpstream(saying('main')), openUpstream(saying('spare'))])
  const providers = { main: httpProvider('main', main), spare: httpProvider('spare', spare) }
  const host = await testHost(PLUGINS, {
    give: [item(Providers, 'main', providers.main), item(Providers, 'spare', providers.spare)],
    config: { selection: { profiles_file: file }, chat: { policy: { backoff_ms: 1, ...policy } } },
  })
  const chat = host.service(Chat)
  let turns = 0
  const ctx = () => testContext({ requestId: `turn-${turns++}` })
  return {
    main,
    spare,
    reply: () => chat.reply({ message: 'hi' }, ctx()),
    stream: () => gather(chat.stream({ message: 'hi' }, ctx())),
    async metrics() {
      const families = (await host.slot(MetricSources).get('chat-policy')?.read(testContext())) ?? []
      return families.flatMap(({ name, values }) =>
        values.map(({ labels, value }) => `${name}{${Object.values(labels).join(' ')}} ${value}`)
      )
    },
    async [Symbol.asyncDispose]() {
      await host.close()
      for (const provider of Object.values(providers)) await provider[Symbol.asyncDispose]()
      await Promise.all([main.close(), spare.close()])
      await rm(home, { recursive: true })
    },
  }
}

describe('an outage of a provider', () => {
  it('loses no turn: the next model of the chain answers turns without output, and the reply names it', async () => {
    await using scene = await openScene({ breaker_failures: 3, attempts: 2 })
    // it breaks down while they are under way: some are refused, some are cut before they begin
    scene.main.answer((request, reply) => {
      const asked = scene.main.received.length
      if (asked <= 16) return saying('main')(request, reply)
      return asked % 2 === 0 ? DOWN(request, reply) : reply.cut()
    })
    const replies = await Promise.all(Array.from({ length: 64 }, () => scene.reply()))
    expect(replies.map(reply => reply.status)).to.deep.equal(replies.map(() => 'completed'))
    for (const { provider, response } of replies) expect(response).to.equal(provider)
    expect(replies.filter(reply => reply.provider === 'main')).to.have.lengthOf(16)
    expect(replies.filter(reply => reply.provider === 'spare')).to.have.lengthOf(48)
    expect(await scene.metrics())
      .to.include('svc_model_fallbacks_total{main m} 48')
      .and.include('svc_model_breaker{main m open} 1')
  })

  it('opens the circuit breaker, and closes it with the first answered turn', async () => {
    await using scene = await openScene({ breaker_failures: 2, breaker_open_ms: 60_000, attempts: 2 })
    scene.main.answer(DOWN)
    for (let at = 0; at < 5; at++) expect(await scene.reply()).to.include({ provider: 'spare' })
    expect(scene.main.received).to.have.lengthOf(2)
    expect(await scene.metrics()).to.include('svc_model_refusals_total{main m} 4')

    await using brief = await openScene({ breaker_failures: 2, breaker_open_ms: 1, attempts: 2 })
    brief.main.answer(DOWN)
    await brief.reply()
    expect(await brief.metrics()).to.include('svc_model_breaker{main m open} 1')
    brief.main.answer(saying('main'))
    while ((await brief.reply()).provider !== 'main')
      expect(await brief.metrics()).to.not.include('svc_model_breaker{main m closed} 1')
    expect(await brief.metrics()).to.include('svc_model_breaker{main m closed} 1')
  })

  it('is retried after the time that the upstream sent', async () => {
    await using scene = await openScene({})
    const asked: number[] = []
    scene.main.answer((request, reply) => {
      asked.push(performance.now())
      if (asked.length === 2) return saying('main')(request, reply)
      return reply.json(429, {}, { 'retry-after-ms': '200' })
    })
    expect(await scene.reply()).to.include({ provider: 'main', status: 'completed' })
    // timers may be a millisecond early, never more
    expect(asked[1]! - asked[0]!).to.be.at.least(198)
    expect(scene.spare.received).to.have.lengthOf(0)
  })

  it('causes a fallback without a retry if the upstream asks for a longer wait than the limit', async () => {
    await using scene = await openScene({ wait_limit_ms: 1_000 })
    scene.main.answer((_request, reply) => reply.json(429, {}, { 'retry-after': '3600' }))
    expect(await scene.reply()).to.include({ provider: 'spare' })
    expect(scene.main.received).to.have.lengthOf(1)
  })

  it('fails a turn that has sent a token, without a retry', async () => {
    await using scene = await openScene({})
    scene.main.answer(async (_request, reply) => {
      await reply.write('data: half\n\n')
      reply.cut()
    })
    const events = await scene.stream()
    expect(events.map(event => event.type)).to.deep.equal(['start', 'token', 'error', 'end'])
    expect(events.at(-1)).to.include({ status: 'failed', provider: 'main' })
    expect([scene.main.received.length, scene.spare.received.length]).to.deep.equal([1, 0])
  })

  it('of every model of the chain is reported as the last failure', async () => {
    await using scene = await openScene({ attempts: 1 })
    scene.main.answer(DOWN)
    scene.spare.answer(DOWN)
    const failed = await scene.reply().then(
      () => undefined,
      (error: { code: string; details: object }) => error
    )
    expect(failed).to.include({ code: 'MODEL_FAILED' })
    expect(failed?.details).to.include({ kind: 'overloaded', provider: 'spare', upstreamStatus: 503 })
  })
})
