import { expect } from 'chai'
import { type ModelEvent, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { startApi, tool, type Tree, user } from './support/api.ts'

const DATA = { signature: 'AbC+/=\u0000é', nested: [1, { a: null }] }
const ANSWER: readonly ModelEvent[] = [
  { type: 'reasoning', text: 'first ' },
  { type: 'reasoning', text: 'thought' },
  { type: 'reasoning', text: '', providerData: DATA },
  { type: 'reasoning', text: '', providerData: { redacted: 'xyz' } },
  { type: 'text', text: 'let me see' },
  { type: 'tool_call', id: 'c1', tool: 'edit', arguments: { a: '1' }, providerData: { thoughtSignature: 'sig' } },
  { type: 'tool_call', id: 'c2', tool: 'edit', arguments: {} },
  { type: 'usage', usage: { input: 3, output: 2, cached: 1, cacheWrite: 1 } },
  { type: 'finish', reason: 'tool_calls', providerData: { whole: true } },
]

function thinker(): Provider & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    features: { tool_calling: true, streaming: true, vision: false },
    models: async () => ({ models: [{ id: 't' }], open: false }),
    countTokens: async () => 1,
    async *chat(request) {
      requests.push(request)
      yield* ANSWER
    },
    probe: async () => undefined,
  }
}

/** What a client makes of the deltas of a stream. */
function joined(choices: readonly Tree[]): Tree {
  const message: Tree = {
    role: 'assistant',
    content: '',
    reasoning_content: '',
    reasoning_details: [],
    tool_calls: [],
  }
  for (const { delta } of choices) {
    for (const field of ['content', 'reasoning_content']) message[field] += delta[field] ?? ''
    message.reasoning_details.push(...(delta.reasoning_details ?? []))
    for (const { index, ...call } of (delta.tool_calls ?? []) as Tree[])
      message.tool_calls[index] = { ...message.tool_calls[index], ...call }
  }
  return message
}

describe('data of a provider', () => {
  for (const stream of [false, true])
    it(`comes back to it byte for byte, in order (${stream ? 'stream' : 'whole'})`, async () => {
      const provider = thinker()
      await using api = await startApi({ give: [item(Providers, 'think', provider)] })
      const first = { model: 'think/t', messages: [user('go')], tools: [tool('edit')] }
      const message = stream ? joined((await api.stream(first)).choices) : (await api.chat(first)).body.choices[0].message
      expect(message.reasoning_content).to.equal('first thought')
      expect(message.content).to.equal('let me see')
      const results = ['c1', 'c2'].map(id => ({ role: 'tool', tool_call_id: id, content: 'ok' }))
      const second = await api.chat({ ...first, messages: [user('go'), message, ...results] })
      expect([second.status, second.headers.get('x-svc-dropped')]).to.deep.equal([200, null])
      const [, sent, answered] = provider.requests[1]!.messages
      expect(sent).to.deep.equal({
        role: 'assistant',
        provider: 'think',
        providerData: { whole: true },
        parts: [
          { type: 'reasoning', text: 'first thought', providerData: DATA },
          { type: 'reasoning', text: '', providerData: { redacted: 'xyz' } },
          { type: 'text', text: 'let me see' },
          { type: 'tool_call', id: 'c1', tool: 'edit', arguments: { a: '1' }, providerData: { thoughtSignature: 'sig' } },
          { type: 'tool_call', id: 'c2', tool: 'edit', arguments: {} },
        ],
      })
      expect(answered!.parts.map(part => (part.type === 'tool_result' ? `${part.id} ${part.tool}` : part.type))).to.deep.equal([
        'c1 edit',
        'c2 edit',
      ])
    })

  it('also comes back from clients that keep it only with tool calls, in one field or the other', async () => {
    const provider = thinker()
    await using api = await startApi({ give: [item(Providers, 'think', provider)] })
    const first = { model: 'think/t', messages: [user('go')], tools: [tool('edit')] }
    const whole = joined((await api.stream(first)).choices)
    const results = ['c1', 'c2'].map(id => ({ role: 'tool', tool_call_id: id, content: 'ok' }))
    const plain = whole.tool_calls.map((call: Tree) => ({ ...call, extra_content: undefined }))
    const ofCalls = whole.reasoning_details.filter(({ id }: Tree) => id !== undefined)
    for (const kept of [{ tool_calls: whole.tool_calls }, { tool_calls: plain, reasoning_details: ofCalls }]) {
      const message = { role: 'assistant', content: whole.content, ...kept }
      expect((await api.chat({ ...first, messages: [user('go'), message, ...results] })).headers.get('x-svc-dropped')).to.equal(
        null
      )
      const sent = provider.requests.at(-1)!.messages[1]!
      expect(sent.provider).to.equal('think')
      expect(sent.parts.filter(part => 'providerData' in part).map(part => part.type)).to.deep.equal([
        'reasoning',
        'reasoning',
        'tool_call',
      ])
    }
  })

  it('is only for that provider, which the message names', async () => {
    const [provider, other] = [thinker(), thinker()]
    await using api = await startApi({ give: [item(Providers, 'think', provider), item(Providers, 'other', other)] })
    const first = { model: 'think/t', messages: [user('go')], tools: [tool('edit')] }
    const { message } = (await api.chat(first)).body.choices[0]
    const results = ['c1', 'c2'].map(id => ({ role: 'tool', tool_call_id: id, content: 'ok' }))
    await api.chat({ ...first, model: 'other/t', messages: [user('go'), message, ...results] })
    expect(other.requests[0]!.messages[1]).to.include({ provider: 'think' })
  })

  it('that counts tokens is in the usage', async () => {
    await using api = await startApi({ give: [item(Providers, 'think', thinker())] })
    const { body } = await api.chat({ model: 'think/t', messages: [user('go')] })
    expect(body.usage).to.deep.equal({
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 1 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
  })
})
