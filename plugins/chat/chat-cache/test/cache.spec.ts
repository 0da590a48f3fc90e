import type { CallContext } from '@svc/core'
import { Checks, type FinishReason, MetricSources, type ModelEvent } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { cacheHouse, type House } from './support/house.ts'

const ON = { enabled: true }

const statusOf = async ({ host }: House, ctx: CallContext = testContext()) => host.slot(Checks).get('cache')?.status?.(ctx)

const answering = (...events: ModelEvent[]) =>
  async function* () {
    yield* events
  }

describe('the cache', () => {
  it('is off unless it is switched on, and says so', async () => {
    await using house = await cacheHouse({})
    expect([await house.reply({}), await house.reply({})]).to.deep.equal(['call 1', 'call 2'])
    expect(await statusOf(house)).to.deep.equal({ status: 'healthy', detail: { enabled: false, size: 0, hit_rate: 0 } })
  })

  it('answers the same question without the model, gathered or as a stream', async () => {
    await using house = await cacheHouse(ON)
    expect([await house.reply({}), await house.reply({})]).to.deep.equal(['call 1', 'call 1'])
    const events = await house.stream({})
    expect(events.map(event => (event.type === 'token' ? event.content : event.type))).to.deep.equal(['start', 'call 1', 'end'])
    expect(events.at(-1)).to.deep.include({ provider: 'p', model: 'm', usage: { input: 3, output: 2, total: 5 } })
    expect(house.asked()).to.equal(1)
  })

  it('asks the model where anything differs that matters', async () => {
    await using house = await cacheHouse(ON)
    await house.reply({})
    for (const turn of [{ message: 'Hi' }, { temperature: 0.5 }, { maxTokens: 9 }, { model: 'other' }, { tools: [] }]) {
      const before = house.asked()
      await house.reply(turn)
      expect(house.asked(), JSON.stringify(turn)).to.equal(before + 1)
    }
  })

  it('asks the model where the conversation before was another', async () => {
    await using house = await cacheHouse(ON)
    const [start] = await house.stream({ message: 'first' })
    const conversationId = start?.type === 'start' ? start.conversationId : ''
    await house.reply({})
    expect(await house.reply({ conversationId })).to.equal('call 3')
  })

  it('keeps a temperature above 0 as well: who switches it on wants that', async () => {
    await using house = await cacheHouse(ON)
    expect([await house.reply({ temperature: 1 }), await house.reply({ temperature: 1 })]).to.deep.equal(['call 1', 'call 1'])
  })

  it("does not answer one principal with another's answer, unless it is told that it may", async () => {
    const [anna, ben] = ['anna', 'ben'].map(id => ({ id, scopes: ['*'] }))
    await using house = await cacheHouse(ON)
    expect([await house.reply({}, anna), await house.reply({}, ben)]).to.deep.equal(['call 1', 'call 2'])
    await using shared = await cacheHouse({ ...ON, shared: true })
    expect([await shared.reply({}, anna), await shared.reply({}, ben)]).to.deep.equal(['call 1', 'call 1'])
  })

  it('keeps no answer that was cut, refused or broken off', async () => {
    const reasons: FinishReason[] = ['length', 'content_filter']
    for (const reason of reasons) {
      await using house = await cacheHouse(ON, answering({ type: 'text', text: 'x' }, { type: 'finish', reason }))
      await house.reply({})
      await house.reply({})
      expect(house.asked(), reason).to.equal(2)
    }
    await using broken = await cacheHouse(ON, answering({ type: 'text', text: 'x' }))
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
    await using house = await cacheHouse(ON, rounds)
    const types = async () => (await house.stream({})).map(event => event.type)
    expect(await types()).to.include('tool_result')
    expect(await types()).to.include('tool_result')
    expect(house.asked()).to.equal(2)
  })

  it('tells its figures to the status and to the metrics', async () => {
    await using house = await cacheHouse(ON)
    for (const message of ['a', 'a', 'a', 'b']) await house.reply({ message })
    expect(await statusOf(house)).to.deep.equal({ status: 'healthy', detail: { enabled: true, size: 2, hit_rate: 0.5 } })
    const families = (await house.host.slot(MetricSources).get('chat-cache')?.read(testContext())) ?? []
    const told = families.map(({ name, values }) => [name, values[0]?.value])
    expect(told).to.deep.equal([
      ['svc_cache_hits_total', 2],
      ['svc_cache_misses_total', 2],
      ['svc_cache_entries', 2],
    ])
  })

  it('is told its limits in words when they make no sense', async () => {
    const failed = await cacheHouse({ ...ON, ttl_s: 0 }).then(
      house => house[Symbol.asyncDispose](),
      (error: Error) => error.message
    )
    expect(failed).to.match(/chat\.cache\.ttl_s must be >= 1/)
  })
})
