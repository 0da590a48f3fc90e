import type { ModelMessage, ModelRequest } from '@svc/core/contracts'
import { expect } from 'chai'
import { DIALECTS, V2, V2_RESPONSES, V3, V3_RESPONSES, V4, V4_ANTHROPIC, V4_RESPONSES } from './support/dialects.ts'
import { openScripted } from './support/modules.ts'
import { ask, behaving, CANARY, type Dialect, endlessContext, openRig, says, textOf, user, WEATHER } from './support/rig.ts'

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' } as const
const picture: ModelMessage = { role: 'user', parts: [{ type: 'text', text: 'what is it' }, image] }

/** What the upstream is sent. */
async function sent(dialect: Dialect, more: Partial<ModelRequest>, entry: object = {}) {
  await using rig = await openRig(dialect, behaving(dialect.wire), entry)
  expect(textOf(await ask(rig.provider, says('plain', more)))).to.equal('Hello there')
  const [{ body, headers, text } = expect.fail('nothing was sent')] = rig.upstream.received
  // oxlint-disable-next-line typescript/no-explicit-any -- the body of a wire, read freely
  return { body: body as any, headers, text }
}

describe('what provider-ai-sdk sends', () => {
  for (const dialect of DIALECTS)
    it(`is what was asked, through ${dialect.title}`, async () => {
      const { body, headers, text } = await sent(dialect, {
        messages: [{ role: 'system', parts: [{ type: 'text', text: 'be brief' }] }, picture],
        tools: [WEATHER],
        toolChoice: 'required',
        temperature: 0.5,
        maxTokens: 100,
      })
      expect(body.temperature).to.equal(0.5)
      expect([body.max_tokens, body.max_output_tokens]).to.include(100)
      expect(body.stream).to.equal(true)
      expect(text).to.include('be brief').and.include('what is it').and.include(PIXEL).and.include('image/png')
      expect(JSON.stringify(body.tools)).to.include('"weather"').and.include('tells the weather').and.include('"city"')
      expect(['required', 'any']).to.include(body.tool_choice.type ?? body.tool_choice)
      expect(JSON.stringify(headers)).to.include(CANARY)
      expect(headers['x-request-id']).to.equal('request-1')
      expect(headers['accept-encoding']).to.equal('identity')
    })

  for (const dialect of DIALECTS)
    it(`has what tools answered, errors and images too, through ${dialect.title}`, async () => {
      const call = (id: string) => ({ type: 'tool_call', id, tool: 'weather', arguments: { city: 'Ulm' } }) as const
      const result = { type: 'tool_result', tool: 'weather' } as const
      const { text } = await sent(dialect, {
        messages: [
          user('the weather?'),
          { role: 'assistant', parts: [{ type: 'text', text: 'I look' }, call('call_1'), call('call_2'), call('call_3')] },
          {
            role: 'tool',
            parts: [
              { ...result, id: 'call_1', content: [{ type: 'text', text: 'sun' }], isError: false },
              { ...result, id: 'call_2', content: [{ type: 'text', text: 'no wind' }], isError: true },
              { ...result, id: 'call_3', content: [{ type: 'text', text: 'look' }, image], isError: false },
            ],
          },
        ],
        tools: [WEATHER],
      })
      for (const part of ['I look', 'call_1', 'call_2', 'call_3', 'sun', 'no wind', 'look', PIXEL]) expect(text).to.include(part)
    })

  for (const dialect of [V4, V4_RESPONSES, V3, V3_RESPONSES, V2, V2_RESPONSES])
    it(`asks for JSON of a schema, through ${dialect.title}`, async () => {
      const responseSchema = {
        type: 'object',
        properties: { kind: { type: 'string' } },
        required: ['kind'],
        additionalProperties: false,
      }
      const { body } = await sent(dialect, { responseSchema })
      const format = body.response_format?.json_schema ?? body.text.format
      expect(format.schema).to.deep.include(responseSchema)
    })

  it('tells links, resources and parts of other forms in words', async () => {
    const link = { type: 'resource_link', uri: 'a:b', name: 'n' } as const
    const resource = { type: 'resource', resource: { uri: 'a:c', text: 'of c' } } as const
    const content = [link, resource, { type: 'other', n: 1 } as never]
    const call = { type: 'tool_call', id: 'c1', tool: 'weather', arguments: {} } as const
    const answer = { type: 'tool_result', id: 'c1', tool: 'weather', content, isError: false } as const
    const messages: ModelMessage[] = [user('a'), { role: 'assistant', parts: [call] }, { role: 'tool', parts: [answer] }]
    const { body } = await sent(V4, { messages })
    expect(body.messages.at(-1).content).to.equal('n: a:b\nof c\n{"type":"other","n":1}')
  })

  it('names the one tool that is to be called, and none where none may be', async () => {
    const found = await sent(V4, { tools: [WEATHER], toolChoice: { tool: 'weather' } })
    expect(found.body.tool_choice).to.deep.equal({ type: 'function', function: { name: 'weather' } })
    const none = await sent(V4, { tools: [WEATHER], toolChoice: 'none' })
    expect(none.body.tool_choice).to.equal('none')
    const without = await sent(V4, { tools: [], toolChoice: 'required' })
    expect(without.body).to.not.have.any.keys('tools', 'tool_choice')
  })

  it('has the headers, the options and the provider options of the entry, and the trace of the request', async () => {
    const entry = {
      headers: { 'x-team': 'blue' },
      options: { organization: 'org-1' },
      provider_options: { openai: { user: 'u-1' } },
    }
    await using rig = await openRig(V4, behaving(V4.wire), entry)
    const trace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    await Array.fromAsync(rig.provider.chat(says('plain'), { ...endlessContext(), trace, traceState: 'a=1' }))
    const [{ headers, body } = expect.fail('nothing was sent')] = rig.upstream.received
    expect(headers).to.include({ 'x-team': 'blue', 'openai-organization': 'org-1', traceparent: trace, tracestate: 'a=1' })
    expect(body).to.include({ user: 'u-1' })
  })

  it('gives thinking back with its signature to the entry that it came from, and to no other', async () => {
    const thought = { anthropic: { signature: 'sig-1' } }
    const from = (provider: string): ModelMessage => ({
      role: 'assistant',
      provider,
      parts: [
        { type: 'reasoning', text: 'let me ' },
        { type: 'reasoning', text: 'think' },
        { type: 'reasoning', text: '', providerData: thought },
        { type: 'text', text: 'done' },
      ],
    })
    const own = await sent(V4_ANTHROPIC, { messages: [user('a'), from('mine'), user('b')] })
    expect(own.body.messages[1].content).to.deep.equal([
      { type: 'thinking', thinking: 'let me think', signature: 'sig-1' },
      { type: 'text', text: 'done' },
    ])
    const others = await sent(V4_ANTHROPIC, { messages: [user('a'), from('another'), user('b')] })
    expect(others.body.messages[1].content).to.deep.equal([{ type: 'text', text: 'done' }])
  })

  it('makes one block of the pieces of a thought', async () => {
    const end = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: {} }
    await using rig = await openScripted({ echo: true, parts: [end] })
    const reasoning = (text: string) => ({ type: 'reasoning', text }) as const
    const thought: ModelMessage = {
      role: 'assistant',
      parts: [reasoning('let me '), reasoning('think'), { ...reasoning(''), providerData: { p: { n: 1 } } }, reasoning('again')],
    }
    const prompt: unknown = JSON.parse(textOf(await ask(rig.provider, says('any', { messages: [thought] }))))
    expect(prompt).to.deep.equal([
      {
        role: 'assistant',
        content: [{ type: 'reasoning', text: 'let me think', providerOptions: { p: { n: 1 } } }, reasoning('again')],
      },
    ])
  })

  it('gives back the data of texts that came with the end of the answer', async () => {
    await using rig = await openRig(V4_RESPONSES, behaving(V4_RESPONSES.wire))
    const events = await ask(rig.provider, says('plain'))
    const end = events.at(-1)
    expect(end).to.deep.equal({ type: 'finish', reason: 'stop', providerData: { texts: [{ openai: { itemId: 'msg_1' } }] } })
    const answer: ModelMessage = {
      role: 'assistant',
      provider: 'mine',
      parts: [{ type: 'text', text: 'Hello there' }],
      ...(end?.type === 'finish' && end.providerData !== undefined ? { providerData: end.providerData } : {}),
    }
    await ask(rig.provider, says('plain', { messages: [user('a'), answer, user('b')] }))
    expect(rig.upstream.received[1]?.text).to.include('msg_1')
  })
})
