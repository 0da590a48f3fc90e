import type { CallContext } from '@svc/core'
import { Checks, type FinishReason, MetricSources, type ModelCall, type ModelEvent, Store } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { createAnswerCache } from '../src/cache.ts'
import { startCacheHost, type CacheHost } from './support/cache-host.ts'

const ON = { enabled: true }

const statusOf = async ({ host }: CacheHost, ctx: CallContext = testContext()) => host.slot(Checks).get('cache')?.status?.(ctx)

const CALL: ModelCall = {
  turn: 't',
  selected: {
    provider: 'p',
    model: 'm',
    source: { provider: 'profile', model: 'profile' },
    profile: { name: 'd' },
    mode: 'build',
    fallback: [],
  },
  request: { model: 'm', messages: [] },
  kind: 'chat',
  round: 1,
  attempt: 1,
  tried: [],
}

const answering = (...events: ModelEvent[]) =>
  async function* () {
    yield* events
  }

describe('the cache', () => {
  it('is off unless it is switched on, and says so', async () => {
    await using cacheHost = await startCacheHost({})
    expect([await cacheHost.reply({}), await cacheHost.reply({})]).to.deep.equal(['call 1', 'call 2'])
    expect(await statusOf(cacheHost)).to.deep.equal({ status: 'healthy', detail: { enabled: false, size: 0, hit_rate: 0 } })
  })

  it('answers the same question without the model, gathered or as a stream', async () => {
    await using cacheHost = await startCacheHost(ON)
    expect([await cacheHost.reply({}), await cacheHost.reply({})]).to.deep.equal(['call 1', 'call 1'])
    const events = await cacheHost.stream({})
    expect(events.map(event => (event.type === 'token' ? event.content : event.type))).to.deep.equal(['start', 'call 1', 'end'])
    expect(events.at(-1)).to.deep.include({ provider: 'p', model: 'm', usage: { input: 3, output: 2, total: 5 } })
    expect(cacheHost.asked()).to.equal(1)
  })

  it('asks the model where anything differs that matters', async () => {
    await using cacheHost = await startCacheHost(ON)
    await cacheHost.reply({})
    for (const turn of [{ message: 'Hi' }, { temperature: 0.5 }, { maxTokens: 9 }, { model: 'other' }, { tools: [] }]) {
      const before = cacheHost.asked()
      await cacheHost.reply(turn)
      expect(cacheHost.asked(), JSON.stringify(turn)).to.equal(before + 1)
    }
  })

  it('asks the model where the conversation before was another', async () => {
    await using cacheHost = await startCacheHost(ON)
    const [start] = await cacheHost.stream({ message: 'first' })
    const conversationId = start?.type === 'start' ? start.conversationId : ''
    await cacheHost.reply({})
    expect(await cacheHost.reply({ conversationId })).to.equal('call 3')
  })

  it('keeps a temperature above 0 as well: who switches it on wants that', async () => {
    await using cacheHost = await startCacheHost(ON)
    expect([await cacheHost.reply({ temperature: 1 }), await cacheHost.reply({ temperature: 1 })]).to.deep.equal([
      'call 1',
      'call 1',
    ])
  })

  it("does not answer one principal with another's answer, unless the configuration allows it", async () => {
    const [anna, ben] = ['anna', 'ben'].map(id => ({ id, scopes: ['*'] }))
    await using cacheHost = await startCacheHost(ON)
    expect([await cacheHost.reply({}, anna), await cacheHost.reply({}, ben)]).to.deep.equal(['call 1', 'call 2'])
    await using shared = await startCacheHost({ ...ON, shared: true })
    expect([await shared.reply({}, anna), await shared.reply({}, ben)]).to.deep.equal(['call 1', 'call 1'])
  })

  it('keeps no answer that was cut, refused or broken off', async () => {
    const reasons: FinishReason[] = ['length', 'content_filter']
    for (const reason of reasons) {
      await using cacheHost = await startCacheHost(ON, answering({ type: 'text', text: 'x' }, { type: 'finish', reason }))
      await cacheHost.reply({})
      await cacheHost.reply({})
      expect(cacheHost.asked(), reason).to.equal(2)
    }
    await using broken = await startCacheHost(ON, answering({ type: 'text', text: 'x' }))
    for (const _ of [1, 2]) expect((await broken.stream({})).at(-1)).to.include({ status: 'failed' })
    expect(broken.asked()).to.equal(2)
  })

  it('keeps the calls of tools, which run again', async () => {
    const rounds = async function* (call: number): AsyncIterable<ModelEvent> {
      if (call === 1)
        yield { type: 'tool_call', id: 'c', tool: 'convert_time', arguments: { time: '2026-01-01T00:00:00Z', to: 'UTC' } }
      else yield { type: 'text', text: 'done' }
      yield { type: 'finish', reason: call === 1 ? 'tool_calls' : 'stop' }
    }
    await using cacheHost = await startCacheHost(ON, rounds)
    const types = async () => (await cacheHost.stream({})).map(event => event.type)
    expect(await types()).to.include('tool_result')
    expect(await types()).to.include('tool_result')
    expect(cacheHost.asked()).to.equal(2)
  })

  it('does not write an answer again that it has given, so that it ages', async () => {
    const written: string[] = []
    const cache = { get: async () => undefined, put: async (_: string, key: string) => written.push(key) > 0 }
    const answers = createAnswerCache({ cache, counts: { asked: () => undefined }, shared: false })
    const ended = {
      usage: { input: 0, output: 0 },
      durationMs: 1,
      firstMs: 1,
      events: [{ type: 'finish', reason: 'stop' }] as const,
    }
    await answers.done({ ...CALL, ...ended }, testContext())
    await answers.done({ ...CALL, ...ended, answered: true }, testContext())
    expect(written).to.have.lengthOf(1)
  })

  it('keeps answers in the store where the configuration says so, for the workers to come', async () => {
    await using cacheHost = await startCacheHost(ON, undefined, { in: 'store' })
    expect([await cacheHost.reply({}), await cacheHost.reply({})]).to.deep.equal(['call 1', 'call 1'])
    const { records } = await cacheHost.host.service(Store).range('cache_values', { limit: 9 }, testContext())
    expect(JSON.stringify(records)).to.include('call 1')
  })

  it('tells its figures to the status and to the metrics', async () => {
    await using cacheHost = await startCacheHost(ON)
    for (const message of ['a', 'a', 'a', 'b']) await cacheHost.reply({ message })
    expect(await statusOf(cacheHost)).to.deep.equal({ status: 'healthy', detail: { enabled: true, size: 2, hit_rate: 0.5 } })
    const families = (await cacheHost.host.slot(MetricSources).get('chat-cache')?.read(testContext())) ?? []
    const reported = families.map(({ name, values }) => [name, values[0]?.value])
    expect(reported).to.deep.equal([
      ['svc_cache_hits_total', 2],
      ['svc_cache_misses_total', 2],
      ['svc_cache_entries', 2],
    ])
  })

  it('reports limits that make no sense', async () => {
    const failed = await startCacheHost({ ...ON, ttl_s: 0 }).then(
      cacheHost => cacheHost[Symbol.asyncDispose](),
      (error: Error) => error.message
    )
    expect(failed).to.match(/chat\.cache\.ttl_s must be >= 1/)
  })
})
