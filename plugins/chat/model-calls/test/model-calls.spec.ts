import { definePlugin, svcError } from '@svc/core'
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
