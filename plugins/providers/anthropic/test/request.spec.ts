import type { ModelMessage, ModelRequest } from '@svc/core/contracts'
import { expect } from 'chai'
import { bodyOf } from '../src/request.ts'

const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
const call = (id: string, tool = 'weather') => ({ type: 'tool_call', id, tool, arguments: { city: 'Ulm' } }) as const
const result = (id: string, text = 'sunny', isError = false) =>
  ({ type: 'tool_result', id, tool: 'weather', content: [{ type: 'text', text }], isError }) as const
const asked = (messages: readonly ModelMessage[], more: Partial<ModelRequest> = {}) =>
  bodyOf({ model: 'claude-x', messages, ...more }) as { messages: unknown; [key: string]: unknown }

describe('a request to the Messages API', () => {
  it('has the system messages as one text of its own, and streams', () => {
    const system = (text: string): ModelMessage => ({ role: 'system', parts: [{ type: 'text', text }] })
    expect(asked([system('Be brief.'), system('Be kind.'), user('hi')])).to.deep.equal({
      model: 'claude-x',
      max_tokens: 8192,
      stream: true,
      system: 'Be brief.\n\nBe kind.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    })
  })

  it('always has max_tokens: what was asked, else what the model can, else a default', () => {
    const limit = (more: Partial<ModelRequest>, output?: number) =>
      (bodyOf({ model: 'm', messages: [user('hi')], ...more }, { output }) as { max_tokens: number }).max_tokens
    expect([limit({ maxTokens: 7 }, 9), limit({}, 9), limit({})]).to.deep.equal([7, 9, 8192])
  })

  it('has the results of all calls in the one message that follows them, before what the user says next', () => {
    const messages = asked([
      user('weather?'),
      { role: 'assistant', parts: [{ type: 'text', text: 'I look.' }, call('toolu_1'), call('toolu_2')] },
      { role: 'tool', parts: [result('toolu_1')] },
      { role: 'tool', parts: [result('toolu_2', 'no wind', true)] },
      user('and?'),
    ]).messages
    expect(messages).to.deep.equal([
      { role: 'user', content: [{ type: 'text', text: 'weather?' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Ulm' } },
          { type: 'tool_use', id: 'toolu_2', name: 'weather', input: { city: 'Ulm' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'sunny' }], is_error: false },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: [{ type: 'text', text: 'no wind' }], is_error: true },
          { type: 'text', text: 'and?' },
        ],
      },
    ])
  })

  it('gives a call whose result is missing a result that says so', () => {
    const parts = [call('a'), call('b')]
    const { messages } = asked([user('x'), { role: 'assistant', parts }, { role: 'tool', parts: [result('b')] }, user('y')])
    const last = (messages as { content: { tool_use_id?: string; is_error?: boolean }[] }[]).at(-1)!
    expect(last.content.map(block => [block.tool_use_id, block.is_error])).to.deep.equal([
      ['a', true],
      ['b', false],
      [undefined, undefined],
    ])
    expect(asked([user('x'), { role: 'assistant', parts }]).messages).to.have.lengthOf(3)
  })

  it('merges neighbours of one role, and leaves out what is empty', () => {
    const messages: ModelMessage[] = [user('one'), user(''), { role: 'assistant', parts: [] }, user('two')]
    const [only, ...rest] = asked(messages).messages as { content: unknown[] }[]
    expect([only!.content.length, rest.length]).to.deep.equal([2, 0])
  })

  it('carries images of users and of tools', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const
    const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const { messages } = asked([
      { role: 'user', parts: [image, { type: 'text', text: 'what?' }] },
      { role: 'assistant', parts: [call('a')] },
      { role: 'tool', parts: [{ ...result('a'), content: [image, { type: 'audio', data: 'BBBB', mimeType: 'audio/wav' }] }] },
    ])
    const [first, , last] = messages as { content: { content?: unknown }[] }[]
    expect(first!.content[0]).to.deep.equal(block)
    expect(last!.content[0]!.content).to.deep.equal([block, { type: 'text', text: '[audio, audio/wav]' }])
  })

  it('tells links, resources and parts of other forms in words', () => {
    const link = { type: 'resource_link', uri: 'a:b', name: 'n' } as const
    const resource = { type: 'resource', resource: { uri: 'a:c', text: 'of c' } } as const
    const content = [link, resource, { type: 'other', n: 1 } as never]
    const { messages } = asked([
      user('?'),
      { role: 'assistant', parts: [call('a')] },
      { role: 'tool', parts: [{ ...result('a'), content }] },
    ])
    const [{ content: reported }] = (messages as { content: [{ content: { text: string }[] }] }[]).at(-1)!.content
    expect(reported.map(item => item.text)).to.deep.equal(['[n: a:b]', '{"uri":"a:c","text":"of c"}', '{"type":"other","n":1}'])
  })

  it('tells in words what the wire would refuse: images of other kinds, failures without a word', () => {
    const svg = { type: 'image', data: 'AAAA', mimeType: 'image/svg+xml' } as const
    const { messages } = asked([
      { role: 'user', parts: [svg, { type: 'text', text: ' \n' }] },
      { role: 'assistant', parts: [call('a')] },
      { role: 'tool', parts: [{ ...result('a'), content: [], isError: true }] },
    ])
    const [first, , last] = messages as { content: { content?: unknown }[] }[]
    expect(first!.content).to.deep.equal([{ type: 'text', text: '[image, image/svg+xml: it cannot be shown]' }])
    expect(last!.content[0]!.content).to.deep.equal([{ type: 'text', text: 'The tool failed.' }])
  })

  it('gives signed thoughts back as they were, put together from their pieces, and leaves out unsigned ones', () => {
    const { messages } = asked([
      user('x'),
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', text: 'first ' },
          { type: 'reasoning', text: 'second' },
          { type: 'reasoning', text: '', providerData: { signature: 'sig' } },
          { type: 'reasoning', text: '', providerData: { redacted: 'enc' } },
          { type: 'reasoning', text: 'third', providerData: { signature: 'sig2' } },
          { type: 'text', text: 'hello' },
          { type: 'reasoning', text: 'unsigned' },
        ],
      },
    ])
    expect((messages as { content: unknown }[])[1]!.content).to.deep.equal([
      { type: 'thinking', thinking: 'first second', signature: 'sig' },
      { type: 'redacted_thinking', data: 'enc' },
      { type: 'thinking', thinking: 'third', signature: 'sig2' },
      { type: 'text', text: 'hello' },
    ])
  })

  it('keeps ids of other providers apart that the wire would not take', () => {
    const { messages } = asked([
      user('x'),
      { role: 'assistant', parts: [call('a.b'), call('a:b')] },
      { role: 'tool', parts: [result('a.b'), result('a:b')] },
    ])
    const [, calls, results] = messages as { content: { id: string; tool_use_id: string }[] }[]
    const ids = calls!.content.map(block => block.id)
    expect(new Set(ids).size).to.equal(2)
    for (const id of ids) expect(id).to.match(/^[\w-]+$/)
    expect(results!.content.map(block => block.tool_use_id)).to.deep.equal(ids)
  })

  it('tells what the model wrote where that were no arguments', () => {
    const parts = [{ ...call('a'), arguments: {}, invalid: '{"city": ' }]
    const { messages } = asked([user('x'), { role: 'assistant', parts }])
    expect((messages as { content: { input?: unknown }[] }[])[1]!.content[0]!.input).to.deep.equal({ invalid_json: '{"city": ' })
  })
})

describe('tools and schemas of the Messages API', () => {
  const tools = [{ name: 'weather', description: 'the weather', parameters: { type: 'object', properties: { city: {} } } }]
  const choices = [
    [undefined, { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [{ tool: 'weather' }, { type: 'tool', name: 'weather' }],
  ] as const
  for (const [toolChoice, wire] of choices)
    it(`writes the choice ${JSON.stringify(toolChoice) ?? 'of no tool'} as ${wire.type}`, () => {
      const body = asked([user('x')], { tools, ...(toolChoice === undefined ? {} : { toolChoice }) })
      expect(body.tool_choice).to.deep.equal(wire)
      expect(body.tools).to.deep.equal([
        { name: 'weather', description: 'the weather', input_schema: { type: 'object', properties: { city: {} } } },
      ])
    })

  it('names the tools of past calls where none is on offer now, and forbids them', () => {
    const body = asked([user('x'), { role: 'assistant', parts: [call('a'), call('b')] }, { role: 'tool', parts: [result('a')] }])
    expect((body.tools as { name: string }[]).map(tool => tool.name)).to.deep.equal(['weather'])
    expect(body.tool_choice).to.deep.equal({ type: 'none' })
  })

  it('tells unions at the top of a tool in words, since the wire refuses them', () => {
    const union = { anyOf: [{ required: ['a'] }, { required: ['b'] }], properties: { a: {}, b: {} } }
    const body = asked([user('x')], { tools: [{ name: 't', description: 'd', parameters: union }] })
    const [tool] = body.tools as { description: string; input_schema: unknown }[]
    expect(tool!.input_schema).to.deep.equal({ type: 'object', properties: { a: {}, b: {} } })
    expect(tool!.description).to.include('{"anyOf":[{"required":["a"]},{"required":["b"]}]}')
  })

  it('closes the objects of a reply schema and tells other constraints in words', () => {
    const responseSchema = {
      type: 'object',
      properties: {
        size: { type: 'integer', minimum: 3, description: 'how big' },
        all: { type: 'array', items: { oneOf: [{ type: 'object' }] } },
      },
      required: ['size'],
    }
    const { output_config } = asked([user('x')], { responseSchema })
    expect(output_config).to.deep.equal({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: {
            size: { type: 'integer', description: 'how big\n\nminimum: 3' },
            all: { type: 'array', items: { anyOf: [{ type: 'object', additionalProperties: false }] } },
          },
          required: ['size'],
          additionalProperties: false,
        },
      },
    })
  })
})

describe('the prompt cache of the Messages API', () => {
  const mark = { cache_control: { type: 'ephemeral' } }
  const spec = (name: string) => ({ name, description: 'd', parameters: { type: 'object' } })
  const cached = (messages: readonly ModelMessage[], more: Partial<ModelRequest> = {}) =>
    bodyOf({ model: 'm', messages, ...more }, { caches: true }) as {
      system: unknown
      tools: object[]
      messages: { content: object[] }[]
    }
  const answer: ModelMessage = { role: 'assistant', parts: [{ type: 'text', text: 'yes' }] }
  const marks = (messages: { content: object[] }[]) =>
    messages.map(({ content }) => content.map(block => 'cache_control' in block))

  it('gets a mark after the tools and after the system prompt', () => {
    const system: ModelMessage = { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] }
    const body = cached([system, user('hi')], { tools: [spec('a'), spec('b')] })
    expect(body.system).to.deep.equal([{ type: 'text', text: 'Be brief.', ...mark }])
    const [a, b] = body.tools
    expect(a).not.to.have.property('cache_control')
    expect(b).to.deep.include({ name: 'b', ...mark })
  })

  it('gets no mark in the first message, which may stay alone', () => {
    expect(marks(cached([user('hi')]).messages)).to.deep.equal([[false]])
  })

  it('gets a mark at the end of a conversation that goes on, and at that of its previous request', () => {
    const body = cached([user('one'), answer, user('two'), answer, user('three')])
    expect(marks(body.messages)).to.deep.equal([[false], [false], [true], [false], [true]])
  })

  it('gets a mark after the results of tools', () => {
    const messages: ModelMessage[] = [
      user('weather?'),
      { role: 'assistant', parts: [call('a'), call('b')] },
      { role: 'tool', parts: [result('a'), result('b')] },
    ]
    expect(marks(cached(messages).messages)).to.deep.equal([[true], [false, false], [false, true]])
  })

  it('shares the JSON of equal tools', () => {
    const tools = [spec('a')]
    expect(cached([user('x')], { tools }).tools).to.equal(cached([user('y')], { tools }).tools)
  })
})
