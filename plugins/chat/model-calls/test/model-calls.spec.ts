import { codeOf, type ConfigTree, definePlugin, svcError } from '@svc/core'
import {
  type ModelCallEvent,
  ModelCalls,
  type ModelDone,
  type ModelEvent,
  type OpenRequest,
  Providers,
} from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { answering, heard, startCallsHost, userSays } from './calls-host.ts'

const text = (words: string): ModelEvent => ({ type: 'text', text: words })
const usage = (input: number, output: number): ModelEvent => ({ type: 'usage', usage: { input, output } })
const finish: ModelEvent = { type: 'finish', reason: 'stop' }
const overloaded = () => svcError('MODEL_FAILED', 'busy', { details: { kind: 'overloaded', retryable: true } })

/** Collects what the hook `modelDone` reports. */
function listening() {
  const done: ModelDone[] = []
  const use = definePlugin({ setup: scope => void scope.tap(ModelCalls.hooks.modelDone, entry => void done.push(entry)) })
  return { done, ref: { name: 'listening', use } }
}

const ask = (more: Partial<OpenRequest> = {}) => ({ messages: [userSays('hello')], ...more })

describe('a model call', () => {
  it('names the model first, passes on its events, and ends with the message', async () => {
    const provider = answering(async function* () {
      yield text('a')
      yield text('b')
      yield usage(3, 2)
      yield finish
    })
    await using callsHost = await startCallsHost({ give: [item(Providers, 'p', provider)] })
    const { events, error } = await heard(callsHost.calls.stream({ request: ask(), select: { provider: 'p' } }, testContext()))
    expect(error).to.equal(undefined)
    const { durationMs, ...end } = events.at(-1) as { durationMs: number }
    expect(events.slice(0, -1)).to.deep.equal([
      { type: 'start', provider: 'p', model: 'm' },
      text('a'),
      text('b'),
      usage(3, 2),
      finish,
    ])
    expect(durationMs).to.be.at.least(0)
    expect(end).to.deep.equal({
      type: 'end',
      status: 'completed',
      provider: 'p',
      model: 'm',
      message: { role: 'assistant', parts: [text('ab')], provider: 'p' },
      finish: 'stop',
      usage: { input: 3, output: 2 },
      tried: [],
    })
  })

  it('is retried by the policy before its first part, with a start event again', async () => {
    const provider = answering(async function* (_request, attempt) {
      if (attempt === 1) throw overloaded()
      yield text('well')
      yield finish
    })
    const give = [item(Providers, 'p', provider)]
    await using callsHost = await startCallsHost({ give, more: ['chat-policy'], config: { chat: { policy: { backoff_ms: 0 } } } })
    const { events } = await heard(callsHost.calls.stream({ request: ask(), select: { provider: 'p' } }, testContext()))
    expect(events.map(event => event.type)).to.deep.equal(['start', 'start', 'text', 'finish', 'end'])
  })

  it('that fails ends with what it has, then throws; hooks count the same tokens', async () => {
    const { done, ref } = listening()
    const provider = answering(async function* () {
      yield text('half')
      throw overloaded()
    })
    await using callsHost = await startCallsHost({ give: [ref, item(Providers, 'p', provider)] })
    const { events, error } = await heard(callsHost.calls.stream({ request: ask(), select: { provider: 'p' } }, testContext()))
    const end = events.at(-1)
    if (end?.type !== 'end') return expect.fail('no end')
    expect(end).to.include({ status: 'failed' })
    expect(end.message?.parts).to.deep.equal([text('half')])
    expect(end.error).to.include({ code: 'MODEL_FAILED', message: 'busy' })
    expect((error as { code: string }).code).to.equal('MODEL_FAILED')
    expect(done.map(entry => entry.usage)).to.deep.equal([end.usage])
    expect(end.usage.output).to.be.greaterThan(0)
  })

  it('that is aborted ends as cancelled with its partial message, and ends its provider', async () => {
    const ended = Promise.withResolvers<void>()
    const provider = answering(async function* (_request, _attempt, signal) {
      signal.addEventListener('abort', () => ended.resolve())
      yield text('half')
      await new Promise(() => {})
    })
    await using callsHost = await startCallsHost({ give: [item(Providers, 'p', provider)] })
    const stop = new AbortController()
    const events: ModelCallEvent[] = []
    const stream = callsHost.calls.stream({ request: ask(), select: { provider: 'p' } }, testContext({ signal: stop.signal }))
    const read = async () => {
      for await (const event of stream) {
        events.push(event)
        if (event.type === 'text') stop.abort(new Error('the caller left'))
      }
    }
    expect(await read().catch((error: Error) => error.message)).to.equal('the caller left')
    expect(events.at(-1)).to.include({ type: 'end', status: 'cancelled' })
    await ended.promise
  })

  it('reports its end when its reader leaves', async () => {
    const { done, ref } = listening()
    const provider = answering(async function* () {
      yield text('one')
      await new Promise(() => {})
    })
    await using callsHost = await startCallsHost({ give: [ref, item(Providers, 'p', provider)] })
    for await (const event of callsHost.calls.stream({ request: ask(), select: { provider: 'p' } }, testContext()))
      if (event.type === 'text') break
    expect(done).to.have.length(1)
    expect(done[0]!.failure).to.equal(undefined)
  })

  it('refuses a field that the model does not support, by name, or drops it where it is a default', async () => {
    const provider = answering(async function* () {
      yield text('ok')
      yield finish
    })
    await using callsHost = await startCallsHost({ give: [item(Providers, 'p', provider)] })
    const fields: Partial<OpenRequest>[] = [
      { stop: ['x'] },
      { topP: 0.5 },
      { seed: 1 },
      { n: 2 },
      { logprobs: 3 },
      { parallelToolCalls: false },
      { temperature: 1.5 },
      { maxTokens: 1_000 },
      { responseFormat: 'json' },
      { tools: [{ name: 't', description: '', parameters: { type: 'object' }, strict: true }] },
      { messages: [{ role: 'user', parts: [{ type: 'image', data: '', mimeType: 'image/png' }] }] },
      { messages: [{ role: 'user', parts: [{ type: 'file', data: '', mimeType: 'application/pdf' }] }] },
    ]
    const names = []
    for (const more of fields) {
      const { error } = await heard(callsHost.calls.stream({ request: ask(more), select: { provider: 'p' } }, testContext()))
      const { code, details } = error as { code: string; details: { field: string } }
      expect(code, JSON.stringify(more)).to.equal('INVALID_VALUE')
      names.push(details.field)
    }
    expect(names.join(' ')).to.equal(
      'stop top_p seed n logprobs parallel_tool_calls temperature max_tokens response_format strict_tools images files'
    )
    const order = {
      request: ask({ stop: ['x'], topP: 0.5, maxTokens: 1_000 }),
      defaults: ['stop', 'topP', 'maxTokens'],
      select: { provider: 'p' },
    } as const
    const { events } = await heard(callsHost.calls.stream(order, testContext()))
    expect(events[0]).to.deep.equal({ type: 'start', provider: 'p', model: 'm', dropped: ['stop', 'topP', 'maxTokens'] })
    expect(provider.requests).to.deep.equal([{ messages: [userSays('hello')], maxTokens: 100, model: 'm' }])
  })

  it('passes on the original of a request only to a provider that speaks its protocol, and then judges no field', async () => {
    const echo = async function* (): AsyncGenerator<ModelEvent> {
      yield text('ok')
      yield finish
    }
    const same = answering(echo, {
      features: { tool_calling: true, streaming: true, vision: false, protocol: 'wire' },
    })
    const other = answering(echo)
    await using callsHost = await startCallsHost({
      give: [item(Providers, 'same', same), item(Providers, 'other', other)],
    })
    const native = { protocol: 'wire', body: { unknown: 1, stop: ['x'] } }
    for (const provider of ['same', 'other'])
      await heard(
        callsHost.calls.stream({ request: ask({ native, topK: 4 }), defaults: ['topK'], select: { provider } }, testContext())
      )
    expect(same.requests[0]).to.deep.include({ native, topK: 4 })
    expect(other.requests[0]).to.not.have.any.keys('native', 'topK')
  })

  it('returns opaque data only to the provider that made it', async () => {
    const provider = answering(async function* () {
      yield text('ok')
      yield finish
    })
    await using callsHost = await startCallsHost({ give: [item(Providers, 'p', provider)] })
    const thought = { type: 'reasoning', text: 'hm', providerData: { signature: 's' } } as const
    const messages = ['p', 'q'].map(from => ({
      role: 'assistant' as const,
      parts: [thought, text('a')] as never,
      provider: from,
    }))
    await heard(
      callsHost.calls.stream({ request: { messages: [userSays('x'), ...messages] }, select: { provider: 'p' } }, testContext())
    )
    expect(provider.requests[0]!.messages.slice(1).map(({ parts }) => parts.length)).to.deep.equal([2, 1])
  })

  it('fails with the size of a conversation that its model cannot hold, and does not shorten it', async () => {
    const provider = answering(
      async function* () {
        yield finish
      },
      { models: async () => ({ models: [{ id: 'm', context: 100 }], open: false }) }
    )
    await using callsHost = await startCallsHost({ give: [item(Providers, 'p', provider)] })
    const request = {
      messages: [userSays('a'), { role: 'assistant' as const, parts: [text('b'.repeat(500))] as never }, userSays('c')],
    }
    const { error } = await heard(callsHost.calls.stream({ request, select: { provider: 'p' } }, testContext()))
    expect((error as { details: object }).details).to.include({ kind: 'context_too_long', limit: 100 })
    expect(provider.requests).to.deep.equal([])
  })
})

describe('a budget of costs', () => {
  const PRICES = { 'stage/m': { input: 10_000, output: 20_000 } }
  /** 0.01 for a token of the input, 0.02 for one of the output. */
  const started = async (prices: ConfigTree) => {
    const stage = answering(
      async function* (request) {
        yield text('so')
        yield usage(10, Math.min(50, request.maxTokens ?? 50))
        yield finish
      },
      { countTokens: async () => 10 }
    )
    const config = { models: { prices } }
    const host = await startCallsHost({ give: [item(Providers, 'stage', stage)], config, more: ['models'] })
    const call = (costBudget?: { total: number; spent: number }) =>
      host.calls.reply(
        {
          request: { messages: [userSays('hi')] },
          select: { provider: 'stage', model: 'm' },
          ...(costBudget ? { costBudget } : {}),
        },
        testContext()
      )
    return { host, stage, call, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
  }

  it('limits the output, so that the call costs no more than the rest', async () => {
    await using room = await started(PRICES)
    const end = await room.call({ total: 1, spent: 0.5 })
    expect(room.stage.requests[0]!.maxTokens).to.equal(20)
    expect(end.cost).to.be.closeTo(0.5, 1e-9)
    expect((await room.call()).cost).to.be.closeTo(1.1, 1e-9)
  })

  it('starts no call that the rest does not pay for', async () => {
    await using room = await started(PRICES)
    const error = await room.call({ total: 1, spent: 0.89 }).catch((thrown: unknown) => thrown)
    expect(codeOf(error)).to.equal('BUDGET_EXHAUSTED')
    expect((error as { details: object }).details).to.include({ budget: 1, spent: 0.89, unit: 'cost' })
    expect(room.stage.requests).to.deep.equal([])
    expect((await room.call({ total: 1, spent: 0.88 })).cost).to.be.closeTo(0.12, 1e-9)
  })

  it('refuses a model without a price; one that is free has no limit', async () => {
    await using room = await started({})
    expect(codeOf(await room.call({ total: 1, spent: 0 }).catch((thrown: unknown) => thrown))).to.equal('PRICE_UNKNOWN')
    expect(await room.call()).to.not.have.property('cost')
    await using free = await started({ 'stage/m': { input: 0, output: 0 } })
    expect(await free.call({ total: 0, spent: 0 })).to.include({ status: 'completed', cost: 0 })
    expect(room.stage.requests).to.have.length(1)
  })
})

describe('embeddings', () => {
  const features = { tool_calling: false, streaming: true, vision: false, supports: ['embeddings'] } as const
  const silent = async function* (): AsyncGenerator<ModelEvent> {}

  it('are made by the provider under the same policies, and counted', async () => {
    const { done, ref } = listening()
    let attempts = 0
    const provider = answering(silent, {
      features,
      async embed({ input, model }) {
        if (++attempts === 1) throw overloaded()
        return { vectors: input.map((_, at) => [at, model.length]), usage: { input: 7, output: 0 } }
      },
    })
    const give = [ref, item(Providers, 'p', provider)]
    await using callsHost = await startCallsHost({ give, more: ['chat-policy'], config: { chat: { policy: { backoff_ms: 0 } } } })
    const result = await callsHost.calls.embed({ request: { input: ['a', [1, 2]] }, select: { provider: 'p' } }, testContext())
    expect(result).to.deep.equal({
      vectors: [
        [0, 1],
        [1, 1],
      ],
      usage: { input: 7, output: 0 },
      provider: 'p',
      model: 'm',
    })
    expect(done.map(({ kind, failure, usage }) => [kind, failure?.kind, usage.input])).to.deep.equal([
      ['embed', 'overloaded', 0],
      ['embed', undefined, 7],
    ])
  })

  it('are refused for a model without them, and for vectors that are none', async () => {
    const bad = answering(silent, {
      features,
      embed: async () => ({ vectors: [['x']], usage: { input: 1, output: 0 } }) as never,
    })
    await using callsHost = await startCallsHost({
      give: [item(Providers, 'none', answering(silent)), item(Providers, 'bad', bad)],
    })
    const failing = async (provider: string) => {
      try {
        await callsHost.calls.embed({ request: { input: ['a'] }, select: { provider } }, testContext())
        return 'no error'
      } catch (error) {
        return (error as { code: string }).code
      }
    }
    expect([await failing('none'), await failing('bad')]).to.deep.equal(['INVALID_VALUE', 'MODEL_FAILED'])
  })
})

describe('counting', () => {
  it('asks the provider, and refuses no field', async () => {
    const provider = answering(async function* () {})
    await using callsHost = await startCallsHost({ give: [item(Providers, 'p', provider)] })
    const count = await callsHost.calls.countTokens({ request: ask({ stop: ['x'] }), select: { provider: 'p' } }, testContext())
    expect(count).to.equal(JSON.stringify([userSays('hello')]).length)
  })
})
