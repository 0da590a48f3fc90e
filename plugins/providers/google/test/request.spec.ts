import type { ModelMessage, ModelRequest } from '@svc/core/contracts'
import { expect } from 'chai'
import { bodyOf, modelPath } from '../src/request.ts'

const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
const call = (id: string, providerData?: object) =>
  ({
    type: 'tool_call',
    id,
    tool: 'weather',
    arguments: { city: 'Ulm' },
    ...(providerData ? { providerData: { ...providerData } } : {}),
  }) as const
const result = (id: string, text = 'sunny', isError = false) =>
  ({ type: 'tool_result', id, tool: 'weather', content: [{ type: 'text', text }], isError }) as const
type Wire = { readonly contents: { role: string; parts: Record<string, unknown>[] }[]; readonly [key: string]: unknown }
const asked = (messages: readonly ModelMessage[], more: Partial<ModelRequest> = {}) =>
  bodyOf({ model: 'gemini-3-flash', messages, ...more }) as unknown as Wire
const response = (output: object, id?: string) => ({
  functionResponse: { ...(id ? { id } : {}), name: 'weather', response: output },
})

describe('a request to the Gemini API', () => {
  it('shares the JSON of equal tools', () => {
    const tools = [{ name: 'weather', description: 'the weather', parameters: { type: 'object' } }]
    const wire = asked([user('x')], { tools }).tools
    expect(wire)
      .to.be.an('array')
      .and.equal(asked([user('y')], { tools }).tools)
    const { tools: another } = asked([user('x')], { tools: [...tools] })
    expect(another).to.deep.equal(wire)
    expect(another).to.not.equal(wire).and.not.equal(wire)
  })

  it('has the system messages as an instruction of its own, and nothing that was not asked for', () => {
    const system = (text: string): ModelMessage => ({ role: 'system', parts: [{ type: 'text', text }] })
    expect(asked([system('Be brief.'), system('Be kind.'), user('hi')])).to.deep.equal({
      systemInstruction: { parts: [{ text: 'Be brief.' }, { text: 'Be kind.' }] },
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    })
  })

  it('has the results of all calls of a round in one content, and the words of the user in the next', () => {
    const { contents } = asked([
      user('weather?'),
      {
        role: 'assistant',
        parts: [{ type: 'text', text: 'I look.' }, call('a', { thoughtSignature: 'sig', id: 'w1' }), call('b')],
      },
      { role: 'tool', parts: [result('a')] },
      { role: 'tool', parts: [result('b', 'no wind', true)] },
      user('and?'),
    ])
    const made = { name: 'weather', args: { city: 'Ulm' } }
    expect(contents).to.deep.equal([
      { role: 'user', parts: [{ text: 'weather?' }] },
      {
        role: 'model',
        parts: [{ text: 'I look.' }, { functionCall: { id: 'w1', ...made }, thoughtSignature: 'sig' }, { functionCall: made }],
      },
      { role: 'user', parts: [response({ output: 'sunny' }, 'w1'), response({ error: 'no wind' })] },
      { role: 'user', parts: [{ text: 'and?' }] },
    ])
  })

  it('gives a call whose result is missing a result that says so', () => {
    const parts = [call('a', { id: 'w1' }), call('b', { id: 'w2' })]
    const { contents } = asked([user('x'), { role: 'assistant', parts }, { role: 'tool', parts: [result('b')] }, user('y')])
    const results = contents[2]!.parts as { functionResponse: { id: string; response: object } }[]
    expect(results.map(item => [item.functionResponse.id, Object.keys(item.functionResponse.response)[0]])).to.deep.equal([
      ['w2', 'output'],
      ['w1', 'error'],
    ])
    const cancelled = asked([user('x'), { role: 'assistant', parts: [call('a'), call('b')] }, user('y')]).contents
    expect(cancelled.map(content => content.parts.length)).to.deep.equal([1, 2, 2, 1])
  })

  it('lets a call of another provider pass where Gemini 3 wants a signature, and only there', () => {
    const first = (model: string, ...parts: ReturnType<typeof call>[]) =>
      asked([user('x'), { role: 'assistant', parts }], { model }).contents[1]!.parts.map(part => part.thoughtSignature)
    expect(first('gemini-3-flash', call('a'), call('b'))).to.deep.equal(['skip_thought_signature_validator', undefined])
    expect(first('gemini-3-flash', call('a', { thoughtSignature: 'sig' }), call('b'))).to.deep.equal(['sig', undefined])
    expect(first('gemini-2.5-flash', call('a'))).to.deep.equal([undefined])
  })

  it('gives signed thoughts back as they were, the signature of a text after it, and leaves out unsigned ones', () => {
    const { contents } = asked([
      user('x'),
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', text: 'unsigned' },
          { type: 'reasoning', text: 'signed', providerData: { thoughtSignature: 's1', thought: true } },
          { type: 'text', text: 'hello' },
          { type: 'reasoning', text: 'no words of the reply', providerData: { thoughtSignature: 's2' } },
        ],
      },
    ])
    expect(contents[1]!.parts).to.deep.equal([
      { text: 'signed', thought: true, thoughtSignature: 's1' },
      { text: 'hello' },
      { text: '', thoughtSignature: 's2' },
    ])
  })

  it('tells links, resources and parts of other forms in words', () => {
    const link = { type: 'resource_link', uri: 'a:b', name: 'n' } as const
    const resource = { type: 'resource', resource: { uri: 'a:c', text: 'of c' } } as const
    const content = [link, resource, { type: 'other', n: 1 } as never]
    const { contents } = asked([
      user('?'),
      { role: 'assistant', parts: [call('a')] },
      { role: 'tool', parts: [{ ...result('a'), content }] },
    ])
    const output = '[n: a:b]\n{"uri":"a:c","text":"of c"}\n{"type":"other","n":1}'
    expect(contents.at(-1)!.parts).to.deep.equal([response({ output })])
  })

  it('carries images of users and of tools, in the result where the model takes them there', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const
    const inlineData = { mimeType: 'image/png', data: 'AAAA' }
    const messages: ModelMessage[] = [
      { role: 'user', parts: [image, { type: 'text', text: 'what?' }] },
      { role: 'assistant', parts: [call('a')] },
      { role: 'tool', parts: [{ ...result('a'), content: [image, { type: 'text', text: 'see' }] }] },
    ]
    const parts = (model: string) => asked(messages, { model }).contents[2]!.parts
    expect(asked(messages).contents[0]!.parts).to.deep.equal([{ inlineData }, { text: 'what?' }])
    expect(parts('gemini-3-pro')).to.deep.equal([
      { functionResponse: { name: 'weather', response: { output: 'see' }, parts: [{ inlineData }] } },
    ])
    expect(parts('gemini-2.5-pro')).to.deep.equal([response({ output: 'see' }), { inlineData }])
  })

  it('tells what the model wrote where that were no arguments', () => {
    const parts = [{ ...call('a'), arguments: {}, invalid: 'weather(' }]
    expect(asked([user('x'), { role: 'assistant', parts }]).contents[1]!.parts[0]!.functionCall).to.deep.include({
      args: { invalid_json: 'weather(' },
    })
  })

  it('leaves out what is empty', () => {
    expect(asked([user('one'), user(''), { role: 'assistant', parts: [] }, user('two')]).contents).to.deep.equal([
      { role: 'user', parts: [{ text: 'one' }, { text: 'two' }] },
    ])
  })
})

describe('tools and settings of the Gemini API', () => {
  const tools = [{ name: 'weather', description: 'the weather', parameters: { type: 'object' } }]
  for (const [toolChoice, wire] of [
    [undefined, { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [{ tool: 'weather' }, { mode: 'ANY', allowedFunctionNames: ['weather'] }],
  ] as const)
    it(`writes the choice ${JSON.stringify(toolChoice) ?? 'of no tool'} as ${wire.mode}`, () => {
      const body = asked([user('x')], { tools, ...(toolChoice === undefined ? {} : { toolChoice }) })
      expect(body.toolConfig).to.deep.equal({ functionCallingConfig: wire })
      expect(body.tools).to.deep.equal([
        { functionDeclarations: [{ name: 'weather', description: 'the weather', parametersJsonSchema: { type: 'object' } }] },
      ])
    })

  it('writes limits, temperature and the schema of the reply', () => {
    const body = asked([user('x')], { temperature: 0.3, maxTokens: 9, responseSchema: { type: 'object' } })
    expect(body.generationConfig).to.deep.equal({
      temperature: 0.3,
      maxOutputTokens: 9,
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object' },
    })
  })

  it('tells a model before Gemini 3 the schema in words beside tools that it may call', () => {
    const request = { messages: [user('x')], tools, responseSchema: { type: 'object', title: 'size' } }
    const older = bodyOf({ ...request, model: 'gemini-2.5-pro' })
    expect(JSON.stringify(older.systemInstruction)).to.match(/JSON Schema.*size/)
    expect(older).to.not.have.property('generationConfig')
    const newer = bodyOf({ ...request, model: 'gemini-3-pro' })
    expect(newer.generationConfig).to.have.property('responseJsonSchema')
    expect(newer).to.not.have.property('systemInstruction')
  })

  it('leaves tools that may not be called out beside a schema', () => {
    expect(asked([user('x')], { tools, toolChoice: 'none', responseSchema: {} })).to.not.have.any.keys('tools', 'toolConfig')
  })

  it('asks a model that thinks for its thoughts, and one that takes no temperature for none', () => {
    const body = bodyOf({ model: 'm', messages: [user('x')], temperature: 1 }, { thinking: true, temperature: false })
    expect(body.generationConfig).to.deep.equal({ thinkingConfig: { includeThoughts: true } })
  })

  for (const [model, path] of [
    ['gemini-3-flash', 'models/gemini-3-flash'],
    ['tunedModels/mine', 'tunedModels/mine'],
    ['models/gemini-3-flash', 'models/gemini-3-flash'],
    ['openai/gpt-5', 'models/openai/gpt-5'],
    ['../../v1/files?x#y', 'models/_/_/v1/files%3Fx%23y'],
    ['a b:c', 'models/a%20b%3Ac'],
  ] as const)
    it(`leads to ${path} for the model ${model}`, () => {
      expect(modelPath(model)).to.equal(path)
    })
})
