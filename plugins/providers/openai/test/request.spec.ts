import type { ConfigTree } from '@svc/core'
import type { ModelMessage, ModelRequest, ToolResultPart } from '@svc/core/contracts'
import { expect } from 'chai'
import { bodyOf as chatBody } from '../src/request.ts'
import { responsesBody } from '../src/responses-request.ts'
import { PRESETS } from '../src/presets.ts'
import { asks, offered, user } from './support/requests.ts'
import { ask, openRig } from './support/rig.ts'
import type { Asked } from './support/whole.ts'

/** The body that a request becomes. */
async function bodyOf(request: Partial<ModelRequest>, entry: ConfigTree = {}): Promise<Asked> {
  await using rig = await openRig(entry)
  await ask(rig.provider, asks('plain', request))
  return rig.upstream.received[0]?.body as Asked
}
const messagesOf = async (messages: readonly ModelMessage[], entry: ConfigTree = {}) =>
  (await bodyOf({ messages }, entry)).messages

const image = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png' }
const url = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }
const result = (content: ToolResultPart['content'], isError = false, id = 'call_1'): ToolResultPart => ({
  type: 'tool_result',
  id,
  tool: 'weather',
  content,
  isError,
})
const called = (id: string, more: object = {}): ModelMessage => ({
  role: 'assistant',
  provider: 'main',
  parts: [{ type: 'tool_call', id, tool: 'weather', arguments: { city: 'Ulm' }, ...more }],
})
const answered = (...results: ToolResultPart[]): ModelMessage => ({ role: 'tool', parts: results })

describe('a request of provider-openai', () => {
  it('asks for a stream with usage, and for nothing that was not wanted', async () => {
    expect(await bodyOf({})).to.deep.equal({
      model: 'plain',
      messages: [{ role: 'user', content: 'What is it?' }],
      stream: true,
      stream_options: { include_usage: true },
    })
  })

  it('carries temperature, limit and tools', async () => {
    const body = await bodyOf({ temperature: 0.5, maxTokens: 7, tools: offered('weather') })
    expect(body).to.include({ temperature: 0.5, max_tokens: 7 })
    expect(body.tools).to.deep.equal([
      { type: 'function', function: { name: 'weather', description: 'the tool weather', parameters: { type: 'object' } } },
    ])
    expect(body).not.to.have.property('tool_choice')
  })

  it('shares the JSON of equal tools, in both APIs', () => {
    const tools = offered('weather')
    for (const wireOf of [
      (list: typeof tools) => chatBody(asks('plain', { tools: list }), 'main', PRESETS.openai).tools,
      (list: typeof tools) => responsesBody(asks('plain', { tools: list }), 'main', PRESETS.openai, { summary: undefined }).tools,
    ]) {
      const wire = wireOf(tools)
      expect(wire).to.be.an('array').and.equal(wireOf(tools))
      expect(wireOf([...tools])).to.deep.equal(wire)
      expect(wireOf([...tools])).to.not.equal(wire)
    }
  })

  it('carries a hash of the conversation for servers that find their cached prompts by a key', async () => {
    const key = async (entry: ConfigTree) => (await bodyOf({ cacheKey: 'conv_1' }, entry)).prompt_cache_key
    const hash = await key({ preset: 'openai' })
    expect(hash).to.match(/^[\w-]{43}$/)
    const keys = [
      { preset: 'azure' },
      { prompt_cache: true },
      {},
      { preset: 'mistral' },
      { preset: 'openai', prompt_cache: false },
    ]
    expect(await Promise.all(keys.map(key))).to.deep.equal([hash, hash, undefined, undefined, undefined])
    expect(await bodyOf({}, { preset: 'openai' })).not.to.have.property('prompt_cache_key')
  })

  it('leaves out a temperature that the model does not take', async () => {
    await using rig = await openRig({ preset: 'openai' }, (_, reply) => reply.end('data: [DONE]\n\n'))
    for (const model of ['gpt-5-mini', 'o3', 'gpt-4.1', 'gpt-5-chat-latest'])
      await ask(rig.provider, asks(model, { temperature: 1, maxTokens: 5 }))
    const bodies = rig.upstream.received.map(request => request.body as Asked)
    expect(bodies.map(body => body.temperature)).to.deep.equal([undefined, undefined, 1, 1])
    expect(bodies.map(body => [body.max_completion_tokens, body.max_tokens])).to.deep.equal(Array(4).fill([5, undefined]))
  })

  it('says which tool must be called, in the words of its server', async () => {
    const choice = async (toolChoice: ModelRequest['toolChoice'], entry: ConfigTree = {}) =>
      (await bodyOf({ toolChoice, tools: offered('weather') } as Partial<ModelRequest>, entry)).tool_choice
    expect(await choice('auto')).to.equal('auto')
    expect(await choice('none')).to.equal('none')
    expect(await choice('required')).to.equal('required')
    expect(await choice('required', { preset: 'mistral' })).to.equal('any')
    expect(await choice({ tool: 'weather' })).to.deep.equal({ type: 'function', function: { name: 'weather' } })
    expect(await bodyOf({ toolChoice: 'required', tools: [] })).not.to.have.any.keys('tool_choice', 'tools')
  })

  it('asks for JSON of a schema, strictly where the schema allows that', async () => {
    const open = { type: 'object', properties: { a: { type: 'string' } } }
    const closed = { ...open, required: ['a'], additionalProperties: false }
    expect((await bodyOf({ responseSchema: open })).response_format).to.deep.equal({
      type: 'json_schema',
      json_schema: { name: 'reply', schema: open, strict: false },
    })
    expect((await bodyOf({ responseSchema: closed })).response_format).to.have.nested.property('json_schema.strict', true)
    const reported = await bodyOf({ responseSchema: open }, { preset: 'deepseek' })
    expect(reported.response_format).to.deep.equal({ type: 'json_object' })
    expect(reported.messages[0]?.content).to.include(JSON.stringify(open))
  })

  it('has no fields that a server refuses', async () => {
    expect(await bodyOf({}, { preset: 'mistral' })).to.have.all.keys('model', 'messages', 'stream')
  })
})

describe('the messages of provider-openai', () => {
  it('keep roles and texts, and images beside them', async () => {
    expect(
      await messagesOf([
        { role: 'system', parts: [{ type: 'text', text: 'Be kind.' }] },
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'one' },
            { type: 'text', text: 'two' },
          ],
        },
        { role: 'assistant', parts: [{ type: 'text', text: 'three' }], provider: 'main' },
        { role: 'user', parts: [{ type: 'text', text: 'see' }, image] },
      ])
    ).to.deep.equal([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'one\ntwo' },
      { role: 'assistant', content: 'three' },
      { role: 'user', content: [{ type: 'text', text: 'see' }, url] },
    ])
  })

  it('give a tool its call and its answer, one message each', async () => {
    const both: ModelMessage = { role: 'assistant', parts: [...called('call_1').parts, ...called('call_2').parts] }
    const messages = await messagesOf([
      user('?'),
      both,
      answered(
        result([{ type: 'text', text: 'sunny' }]),
        result(
          [
            { type: 'text', text: 'no wind' },
            { type: 'resource_link', uri: 'file:///a', name: 'a' },
            { type: 'audio', data: 'x', mimeType: 'audio/wav' },
            { type: 'resource', resource: { uri: 'file:///b', text: 'of b' } },
          ],
          true,
          'call_2'
        )
      ),
    ])
    expect(messages.slice(1)).to.deep.equal([
      {
        role: 'assistant',
        content: null,
        tool_calls: ['call_1', 'call_2'].map(id => ({
          id,
          type: 'function',
          function: { name: 'weather', arguments: '{"city":"Ulm"}' },
        })),
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
      { role: 'tool', tool_call_id: 'call_2', content: 'Error: no wind\na: file:///a\n(audio, audio/wav)\nof b' },
    ])
  })

  it('show the images of a tool where the server takes them', async () => {
    const history = [user('?'), called('call_1'), answered(result([{ type: 'text', text: 'see' }, image]))]
    const [, , tool, after] = await messagesOf(history)
    expect(tool).to.include({ role: 'tool', content: 'see' })
    expect(after).to.deep.equal({ role: 'user', content: [{ type: 'text', text: 'Images that weather answered:' }, url] })
    const other = await messagesOf(history, { preset: 'mistral' })
    expect(other).to.have.lengthOf(3)
    expect(other[2]?.content).to.deep.equal([{ type: 'text', text: 'see' }, url])
  })

  it('tell a call that was no JSON as JSON', async () => {
    const [, message] = await messagesOf([user('?'), called('call_1', { arguments: {}, invalid: '{"a":' }), answered(result([]))])
    const [call] = message!.tool_calls as { function: { arguments: string } }[]
    expect(JSON.parse(call!.function.arguments)).to.deep.equal({ invalid_json: '{"a":' })
  })

  it('name calls by ids that the server takes, the same in call and answer', async () => {
    const long = 'toolu_'.repeat(10)
    const idsOf = async (id: string, entry: ConfigTree = {}) => {
      const [, call, answer] = await messagesOf([user('?'), called(id), answered(result([], false, id))], entry)
      const [made] = call!.tool_calls as { id: string }[]
      expect(answer?.tool_call_id).to.equal(made?.id)
      return made!.id
    }
    expect(await idsOf('call_1')).to.equal('call_1')
    expect(await idsOf(long)).to.match(/^[A-Za-z0-9]{40}$/)
    expect(await idsOf('Ab3Cd5Ef7', { preset: 'mistral' })).to.equal('Ab3Cd5Ef7')
    const short = await idsOf('call_1', { preset: 'mistral' })
    expect(short).to.match(/^[A-Za-z0-9]{9}$/)
    expect(await idsOf('call_2', { preset: 'mistral' })).not.to.equal(short)
  })

  it('give reasoning back to a server that wants it, in each message of the assistant, and to no other', async () => {
    const history: ModelMessage[] = [
      user('?'),
      {
        role: 'assistant',
        parts: [{ type: 'reasoning', text: 'Hm' }, { type: 'reasoning', text: 'm.' }, ...called('call_1').parts],
      },
      answered(result([])),
      { role: 'assistant', parts: [{ type: 'text', text: 'Done' }] },
    ]
    const wanted = (await messagesOf(history, { preset: 'deepseek' })).filter(message => message.role === 'assistant')
    expect(wanted.map(message => message.reasoning_content)).to.deep.equal(['Hmm.', ''])
    const bare = await messagesOf([user('?'), called('call_1'), answered(result([]))], { preset: 'deepseek' })
    for (const messages of [bare, await messagesOf(history)])
      for (const message of messages) expect(message).not.to.have.property('reasoning_content')
  })

  it('give blocks of reasoning back to who made them, as they were', async () => {
    const details = [{ type: 'reasoning.encrypted', data: 'abc', index: 0 }]
    const made: ModelMessage = {
      role: 'assistant',
      parts: [{ type: 'text', text: 'Hi' }],
      provider: 'main',
      providerData: { reasoning_details: details },
    }
    const echoed = async (message: ModelMessage, entry: ConfigTree) =>
      (await messagesOf([user('?'), message, user('!')], entry))[1]?.reasoning_details
    expect(await echoed(made, { preset: 'openrouter' })).to.deep.equal(details)
    expect(await echoed({ ...made, provider: 'another' }, { preset: 'openrouter' })).to.equal(undefined)
    expect(await echoed(made, {})).to.equal(undefined)
  })
})
