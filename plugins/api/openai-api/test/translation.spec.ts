import { type ModelEvent, type ModelFeature, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { type Tree, user } from './support/api.ts'
import { says, startResponses, textOf } from './support/responses.ts'

const SUPPORTS: readonly ModelFeature[] = [
  'stop',
  'top_p',
  'top_k',
  'seed',
  'n',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'high_temperature',
  'reasoning_effort',
  'parallel_tool_calls',
  'strict_tools',
  'tool_choice',
  'cache_hints',
  'response_schema',
  'image_urls',
  'files',
  'audio',
]

const USAGE: ModelEvent = { type: 'usage', usage: { input: 3, output: 2 } }

/** A provider of another protocol that answers with these events, and remembers its requests. */
function scripted(...events: readonly ModelEvent[]): Provider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    features: { tool_calling: true, streaming: true, vision: true, supports: SUPPORTS },
    models: async () => ({ models: [{ id: 'm', output: 10_000 }], open: false }),
    countTokens: async () => 1,
    async *chat(request) {
      requests.push(request)
      yield* events
    },
    probe: async () => undefined,
  }
}

const serve = (provider: Provider) => startResponses({ give: [item(Providers, 'odd', provider)] })
const ok = () => scripted({ type: 'text', text: 'ok' }, USAGE, { type: 'finish', reason: 'stop' })

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = Buffer.from('%PDF-').toString('base64')
const SCHEMA = { type: 'object', properties: { a: { type: 'string' } } }
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const MESSAGES = [
  { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
  {
    role: 'user',
    parts: [
      { type: 'text', text: 'see' },
      { type: 'image', mimeType: 'image/png', data: PNG },
      { type: 'image_url', url: 'https://x.example/a.png' },
      { type: 'file', mimeType: 'application/pdf', data: PDF, name: 'a.pdf' },
    ],
  },
  { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', tool: 'weather', arguments: { city: 'Ulm' } }] },
  {
    role: 'tool',
    parts: [{ type: 'tool_result', id: 'c1', tool: 'weather', content: [{ type: 'text', text: 'sunny' }], isError: false }],
  },
]

describe('a request for a model behind another protocol', () => {
  it('keeps all fields of a chat completion', async () => {
    const provider = ok()
    await using api = await serve(provider)
    const { status, headers, text } = await api.api.chat({
      model: 'odd/m',
      max_completion_tokens: 4_000,
      temperature: 1.7,
      top_p: 0.9,
      top_k: 7,
      n: 2,
      stop: ['END', 'STOP'],
      seed: -7,
      frequency_penalty: 1.5,
      presence_penalty: -1.5,
      logit_bias: { 50256: -100 },
      logprobs: true,
      top_logprobs: 3,
      reasoning_effort: 'low',
      tools: [
        {
          type: 'function',
          function: { name: 'weather', description: 'the weather', parameters: PARAMETERS, strict: true },
          cache_control: { type: 'ephemeral', ttl: '1h' },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      parallel_tool_calls: false,
      response_format: { type: 'json_schema', json_schema: { name: 'thing', schema: SCHEMA, strict: true } },
      prompt_cache_key: 'session-1',
      messages: [
        { role: 'developer', content: 'Be brief.' },
        user([
          { type: 'text', text: 'see', cache_control: { type: 'ephemeral' } },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
          { type: 'image_url', image_url: { url: 'https://x.example/a.png' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` } },
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        ]),
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Ulm"}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
      ],
    })
    expect([status, headers.get('x-svc-dropped')], text).to.deep.equal([200, null])
    const { messages, ...request } = JSON.parse(JSON.stringify(provider.requests[0])) as Tree
    expect(request).to.deep.equal({
      model: 'm',
      maxTokens: 4_000,
      temperature: 1.7,
      topP: 0.9,
      topK: 7,
      n: 2,
      stop: ['END', 'STOP'],
      seed: -7,
      frequencyPenalty: 1.5,
      presencePenalty: -1.5,
      logitBias: { 50256: -100 },
      logprobs: 3,
      reasoningEffort: 'low',
      tools: [{ name: 'weather', description: 'the weather', parameters: PARAMETERS, strict: true, cacheHint: { ttl: '1h' } }],
      toolChoice: { tool: 'weather' },
      parallelToolCalls: false,
      responseSchema: SCHEMA,
      responseSchemaName: 'thing',
      responseSchemaStrict: true,
      cacheKey: 'session-1',
      gathered: true,
    })
    const [system, asked, ...rest] = MESSAGES
    const [first, ...parts] = asked!.parts
    const audio = { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' }
    expect(messages).to.deep.equal([system, { ...asked, parts: [{ ...first, cacheHint: {} }, ...parts, audio] }, ...rest])
  })

  it('keeps all fields of a response', async () => {
    const provider = ok()
    await using api = await serve(provider)
    const { status, headers, text } = await api.respond({
      model: 'odd/m',
      max_output_tokens: 4_000,
      temperature: 1.7,
      top_p: 0.9,
      top_logprobs: 3,
      frequency_penalty: 1.5,
      presence_penalty: -1.5,
      reasoning: { effort: 'low' },
      tools: [{ type: 'function', name: 'weather', description: 'the weather', parameters: PARAMETERS, strict: true }],
      tool_choice: { type: 'function', name: 'weather' },
      parallel_tool_calls: false,
      text: { format: { type: 'json_schema', name: 'thing', schema: SCHEMA, strict: true } },
      prompt_cache_key: 'session-1',
      instructions: 'Be brief.',
      input: [
        says('user', [
          { type: 'input_text', text: 'see' },
          { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
          { type: 'input_image', image_url: 'https://x.example/a.png' },
          { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
        ]),
        { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"city":"Ulm"}' },
        { type: 'function_call_output', call_id: 'c1', output: 'sunny' },
      ],
    })
    expect([status, headers.get('x-svc-dropped')], text).to.deep.equal([200, null])
    const { messages, ...request } = JSON.parse(JSON.stringify(provider.requests[0])) as Tree
    expect(request).to.deep.equal({
      model: 'm',
      maxTokens: 4_000,
      temperature: 1.7,
      topP: 0.9,
      logprobs: 3,
      frequencyPenalty: 1.5,
      presencePenalty: -1.5,
      reasoningEffort: 'low',
      tools: [{ name: 'weather', description: 'the weather', parameters: PARAMETERS, strict: true }],
      toolChoice: { tool: 'weather' },
      parallelToolCalls: false,
      responseSchema: SCHEMA,
      responseSchemaName: 'thing',
      responseSchemaStrict: true,
      cacheKey: 'session-1',
      gathered: true,
    })
    expect(messages).to.deep.equal(MESSAGES)
  })
})

describe('an answer of a model behind another protocol', () => {
  const REFUSES = [
    { type: 'text', text: 'I can', refusal: true },
    { type: 'text', text: 'not.', refusal: true },
    USAGE,
    { type: 'finish', reason: 'content_filter' },
  ] as const satisfies readonly ModelEvent[]
  const CITES = [
    { type: 'text', text: 'It is so' },
    { type: 'citation', citation: { url: 'https://x.example', title: 'X', quote: 'so it is', start: 0, end: 8 } },
    { type: 'citation', citation: { url: 'https://y.example' } },
    { type: 'text', text: '.' },
    USAGE,
    { type: 'finish', reason: 'stop' },
  ] as const satisfies readonly ModelEvent[]

  it('that is a refusal is one in a chat completion, with the finish reason', async () => {
    await using api = await serve(scripted(...REFUSES))
    const asked = { model: 'odd/m', messages: [user('hi')] }
    const { body } = await api.api.chat(asked)
    const [choice] = body.choices as Tree[]
    expect(choice).to.deep.include({ finish_reason: 'content_filter' })
    expect(choice!.message).to.deep.equal({ role: 'assistant', content: null, refusal: 'I cannot.' })
    const { join, content, choices, isDone } = await api.api.stream(asked)
    expect([join('refusal'), content, choices.at(-1)!.finish_reason, isDone]).to.deep.equal([
      'I cannot.',
      '',
      'content_filter',
      true,
    ])
  })

  it('that is a refusal is one in a response, which is incomplete', async () => {
    await using api = await serve(scripted(...REFUSES))
    const asked = { model: 'odd/m', input: 'hi' }
    const { body } = await api.respond(asked)
    const { types, of, response } = await api.stream(asked)
    for (const { status, incomplete_details, output } of [body, response]) {
      expect([status, incomplete_details]).to.deep.equal(['incomplete', { reason: 'content_filter' }])
      expect(output).to.have.length(1)
      expect(output[0].content).to.deep.equal([{ type: 'refusal', refusal: 'I cannot.' }])
    }
    expect(of('response.refusal.delta').map(({ delta }) => delta)).to.deep.equal(['I can', 'not.'])
    expect(of('response.refusal.done').map(({ refusal }) => refusal)).to.deep.equal(['I cannot.'])
    expect([types.includes('response.output_text.delta'), types.at(-1)]).to.deep.equal([false, 'response.incomplete'])
  })

  it('has its citations as annotations of a chat completion', async () => {
    await using api = await serve(scripted(...CITES))
    const annotations = [
      {
        type: 'url_citation',
        url_citation: { url: 'https://x.example', title: 'X', start_index: 0, end_index: 8, content: 'so it is' },
      },
      { type: 'url_citation', url_citation: { url: 'https://y.example', title: '', start_index: 0, end_index: 0 } },
    ]
    const asked = { model: 'odd/m', messages: [user('hi')] }
    const { message } = (await api.api.chat(asked)).body.choices[0]
    expect(message).to.deep.equal({ role: 'assistant', content: 'It is so.', refusal: null, annotations })
    const { choices, content } = await api.api.stream(asked)
    expect(content).to.equal('It is so.')
    expect(choices.flatMap(({ delta }) => (delta.annotations ?? []) as Tree[])).to.deep.equal(annotations)
  })

  it('has its citations as annotations of a response', async () => {
    await using api = await serve(scripted(...CITES))
    const annotations = [
      { type: 'url_citation', url: 'https://x.example', title: 'X', start_index: 0, end_index: 8 },
      { type: 'url_citation', url: 'https://y.example', title: '', start_index: 0, end_index: 0 },
    ]
    const asked = { model: 'odd/m', input: 'hi' }
    const { body } = await api.respond(asked)
    const { of, response } = await api.stream(asked)
    for (const made of [body, response]) {
      expect(textOf(made)).to.equal('It is so.')
      expect(made.output[0].content[0].annotations).to.deep.equal(annotations)
    }
    const added = of('response.output_text.annotation.added')
    expect(added.map(({ annotation }) => annotation)).to.deep.equal(annotations)
    expect(added.map(({ annotation_index }) => annotation_index)).to.deep.equal([0, 1])
  })
})
