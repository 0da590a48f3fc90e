import { expect } from 'chai'
import { definePlugin } from '@svc/core'
import { ModelCalls } from '@svc/core/contracts'
import type { Answerer } from '@svc/testing'
import { startApi, tool, type Tree, user } from './support/api.ts'

const chunk = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-up',
    object: 'chat.completion.chunk',
    created: 7,
    model: 'm-2026',
    system_fingerprint: 'fp',
    choices: [{ index: 0, delta, finish_reason: null }],
    ...more,
  })}\n\n`
const finish = (reason: string, delta = {}) => chunk({}, { choices: [{ index: 0, delta, finish_reason: reason }] })
const usage = chunk({}, { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cost: 0.5 } })
const DONE = 'data: [DONE]\n\n'
const whole = (message: object, more: object = {}) => ({
  id: 'chatcmpl-up',
  object: 'chat.completion',
  created: 7,
  model: 'm-2026',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop', extra: 1 }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cost: 0.5 },
  ...more,
})

/** Streams these frames, or answers with a whole completion. */
const answers =
  (...frames: string[]): Answerer =>
  async (received, reply) => {
    if ((received.body as Tree).stream !== true) return reply.json(200, whole({ content: 'whole' }))
    for (const frame of frames) await reply.write(frame)
    return reply.end()
  }
const M = { model: 'up/m', messages: [user('hi')] }

describe('a model of a server with the same protocol', () => {
  it('gets the request as it was sent, but for its model and what svc needs', async () => {
    await using api = await startApi({ upstream: answers(chunk({ content: 'x' }), finish('stop'), usage, DONE) })
    const body = {
      ...M,
      messages: [{ role: 'user', name: 'anna', content: [{ type: 'video_url', video_url: { url: 'x' } }] }],
      verbosity: 'low',
      metadata: { a: 'b' },
      user: 'u',
      chat_template_kwargs: { thinking: true },
      temperature: 0.3,
    }
    const { status, headers } = await api.post('/v1/chat/completions', body, { 'openai-beta': 'x=1', 'x-api-key': 'never' })
    expect([status, headers.get('x-svc-dropped')]).to.deep.equal([200, null])
    const [first] = api.upstream.received
    expect(first!.body).to.deep.equal({ ...body, model: 'm', stream: false })
    expect(first!.headers).to.include({ 'openai-beta': 'x=1', authorization: 'Bearer sk-test-of-the-upstream' })
    expect(first!.headers).to.not.have.property('x-api-key')

    const { isDone } = await api.stream({ ...body, model: 'up/org/m:1' })
    expect(isDone).to.equal(true)
    const [, second] = api.upstream.received
    expect(second!.body).to.deep.equal({ ...body, model: 'org/m:1', stream: true, stream_options: { include_usage: true } })
  })

  it('gives its whole answer unchanged, under the name of the request', async () => {
    await using api = await startApi({ upstream: answers() })
    const { body } = await api.chat(M)
    expect(body).to.deep.equal(whole({ content: 'whole' }, { model: 'up/m' }))
  })

  it('gives its chunks with all fields, one id, and usage only where it is asked for', async () => {
    const frames = [
      chunk({ role: 'assistant', content: '', audio: null }, { usage: null }),
      chunk({ content: 'Hel', extra: 1 }, { id: 'another', obfuscation: 'x' }),
      chunk({ content: 'lo' }),
      finish('stop'),
      usage,
      DONE,
    ]
    await using api = await startApi({ upstream: answers(...frames) })
    const plain = await api.stream(M)
    expect([plain.isDone, plain.content, plain.chunks.length]).to.deep.equal([true, 'Hello', 4])
    expect(plain.chunks.some(item => 'usage' in item)).to.equal(false)
    expect(plain.chunks.every(({ id, model, created }) => id === 'chatcmpl-up' && model === 'up/m' && created === 7)).to.equal(
      true
    )
    expect(plain.chunks[1]).to.deep.include({ obfuscation: 'x', system_fingerprint: 'fp' })
    expect(plain.choices[1]).to.deep.equal({ index: 0, delta: { content: 'Hel', extra: 1 }, finish_reason: null })
    const counted = await api.stream({ ...M, stream_options: { include_usage: true } })
    expect(counted.chunks.at(-1)).to.deep.include({
      choices: [],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cost: 0.5 },
    })
  })

  it('gets what clients need and it left out: role, index of calls, finish reason, and usage in a last chunk', async () => {
    const call = (id: string | undefined, args: string) => ({
      tool_calls: [{ ...(id ? { id, type: 'function' } : {}), function: { ...(id ? { name: 'edit' } : {}), arguments: args } }],
    })
    const used = { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }
    const last = chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...used })
    const frames = [chunk(call('c1', '{"a"')), chunk(call(undefined, ':1}')), chunk(call('c2', '{}')), last, DONE]
    await using api = await startApi({ upstream: answers(...frames) })
    const { choices, chunks } = await api.stream({ ...M, tools: [tool('edit')], stream_options: { include_usage: true } })
    expect(choices[0]!.delta.role).to.equal('assistant')
    expect(choices.flatMap(({ delta }) => (delta.tool_calls ?? []) as Tree[]).map(({ index }) => index)).to.deep.equal([0, 0, 1])
    expect(choices.at(-1)!.finish_reason).to.equal('tool_calls')
    expect(chunks.filter(item => 'usage' in item)).to.have.length(1)
    expect(chunks.at(-1)).to.deep.include({ choices: [], ...used })
  })

  it('sends the chunks of one attempt only, if another fails before its first part', async () => {
    let attempts = 0
    const upstream: Answerer = async (received, reply) => {
      if (++attempts > 1)
        return answers(
          chunk({ role: 'assistant' }, { id: 'second' }),
          chunk({ content: 'ok' }),
          finish('stop'),
          DONE
        )(received, reply)
      await reply.write(chunk({ role: 'assistant', content: '' }, { id: 'first' }))
      return reply.cut()
    }
    await using api = await startApi({ upstream, plugins: ['chat-policy'], config: { chat: { policy: { backoff_ms: 1 } } } })
    const { chunks, content, isDone } = await api.stream(M)
    expect([attempts, content, isDone]).to.deep.equal([2, 'ok', true])
    expect(new Set(chunks.map(({ id }) => id))).to.deep.equal(new Set(['second']))
  })

  it('gets values that svc does not know', async () => {
    await using api = await startApi({ upstream: answers() })
    const body = {
      ...M,
      reasoning_effort: 'ultra',
      messages: [{ role: 'critic', content: 5 }, user([{ type: 'x' }])],
      tools: [{ type: 'custom', custom: { name: 'x' } }],
      tool_choice: { type: 'custom', custom: { name: 'x' } },
      response_format: { type: 'grammar' },
    }
    expect((await api.chat(body)).status).to.equal(200)
    expect(api.upstream.received[0]!.body).to.deep.equal({ ...body, model: 'm', stream: false })
  })

  it('can be replaced by a model of another protocol, which gets the translation', async () => {
    const plugin = definePlugin({
      setup: scope => void scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'local', model: 'local-1' })),
    })
    await using api = await startApi({
      upstream: (_, reply) => reply.json(503, { error: { message: 'busy' } }),
      give: [{ name: 'test:fallback', use: plugin }],
    })
    const body = { ...M, messages: [user([{ type: 'text', text: 'see' }, { type: 'video_url' }])], verbosity: 'low', user: 'u' }
    for (const stream of [false, true]) {
      const got = await (stream ? api.stream(body) : api.chat(body))
      expect(got.status).to.equal(200)
      expect(got.headers.get('x-svc-dropped')!.split(', ')).to.have.members(['messages[0].content[1].type', 'verbosity', 'user'])
      expect(got.text).to.include('up/m')
    }
    const { body: whole } = await api.chat(body)
    expect(whole.choices[0].message.content).to.equal('You said: see\n(content of the type video_url was left out)')
  })

  it('is not asked for a foreign field if another model answers: 400, with the name of the field', async () => {
    await using api = await startApi()
    const refused = async (more: Tree) => {
      const { status, body } = await api.chat({ messages: [user('hi')], ...more })
      return [status, body.error?.code, body.error?.param]
    }
    const unsupported = (param: string) => [400, 'unsupported_parameter', param]
    expect(await refused({ verbosity: 'low' })).to.deep.equal(unsupported('verbosity'))
    expect(await refused({ web_search_options: {} })).to.deep.equal(unsupported('web_search_options'))
    expect(await refused({ modalities: ['text', 'audio'] })).to.deep.equal(unsupported('modalities'))
    expect(await refused({ functions: [{ name: 'x' }] })).to.deep.equal(unsupported('functions'))
    expect(await refused({ tools: [{ type: 'web_search' }] })).to.deep.equal(unsupported('tools[0].type'))
    expect(await refused({ messages: [user([{ type: 'video_url' }])] })).to.deep.equal(unsupported('messages[0].content[0].type'))
    expect(await refused({ model: 'profile:coder', verbosity: 'low' })).to.deep.equal(unsupported('verbosity'))
    // a field that svc knows, and the model does not
    expect(await refused({ frequency_penalty: 1 })).to.deep.equal(unsupported('frequency_penalty'))
    expect(await refused({ logit_bias: { 5: 1 } })).to.deep.equal(unsupported('logit_bias'))
    expect(await refused({ model: 'profile:coder', n: 2 })).to.deep.equal(unsupported('n'))
  })
})
