import { expect } from 'chai'
import { type Answerer, item } from '@svc/testing'
import { type ModelEvent, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { send, type Tree, WEATHER } from './support/api.ts'
import { fn, readEvents, says, startResponses, textOf } from './support/responses.ts'

type Started = Awaited<ReturnType<typeof startResponses>>

const PNG = Buffer.from('89504e470d0a1a0a0000000d', 'hex').toString('base64')

describe('a response', () => {
  let api: Started
  before(async () => {
    api = await startResponses()
  })
  after(() => api[Symbol.asyncDispose]())
  const ok = async (body: Tree) => {
    const got = await api.respond(body)
    expect(got.status, got.text).to.equal(200)
    return got.body
  }
  const said = async (body: Tree) => textOf(await ok(body))

  it('has all keys, also those that are null, and what the request asked for', async () => {
    const { status, body, headers } = await api.respond({ input: 'hello', metadata: { a: 'b' }, temperature: 0, store: false })
    expect(status).to.equal(200)
    expect(headers.get('x-svc-dropped')).to.equal(null)
    expect(body.id).to.match(/^resp_[\da-f]{32}$/)
    expect(body).to.deep.include({
      object: 'response',
      status: 'completed',
      model: 'local/local-1',
      error: null,
      incomplete_details: null,
      instructions: null,
      previous_response_id: null,
      metadata: { a: 'b' },
      temperature: 0,
      top_p: 1,
      tools: [],
      tool_choice: 'auto',
      truncation: 'disabled',
      text: { format: { type: 'text' } },
      store: false,
      background: false,
      service_tier: 'default',
      usage: {
        input_tokens: 5,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 10,
      },
    })
    expect(body.output).to.deep.equal([
      {
        id: `msg_${body.id.slice('resp_'.length)}_0`,
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'You said: hello', annotations: [], logprobs: [] }],
      },
    ])
    expect(Math.abs(body.completed_at - Date.now() / 1000)).to.be.lessThan(60)
  })

  it('streams events in order, numbered from 0, and the same response at the end', async () => {
    const { headers, events, types, isDone, of, response } = await api.stream({ input: 'hello "you"\n\u2028', store: false })
    expect(headers.get('content-type')).to.match(/^text\/event-stream/)
    expect(events.map(({ sequence_number }) => sequence_number)).to.deep.equal(events.map((_, at) => at))
    expect(types.filter((type, at) => type !== types[at - 1])).to.deep.equal([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(isDone).to.equal(true)
    const text = of('response.output_text.delta')
      .map(({ delta }) => delta)
      .join('')
    expect(text).to.equal('You said: hello "you"\n\u2028')
    expect([of('response.output_text.done')[0]!.text, textOf(response)]).to.deep.equal([text, text])
    expect(events[0]!.response).to.include({ status: 'in_progress', id: response.id, usage: null })
    expect(of('response.output_item.added')[0]!.item).to.deep.include({ status: 'in_progress', content: [] })
    expect(of('response.output_item.done')[0]!.item).to.deep.equal(response.output[0])
    const whole = await ok({ input: 'hello "you"\n\u2028', store: false })
    const timeless = ({ id: _id, created_at: _created, completed_at: _completed, output, ...rest }: Tree) => ({
      ...rest,
      output: output.map(({ id: own, ...more }: Tree) => [own.split('_')[2], more]),
    })
    expect(timeless(response)).to.deep.equal(timeless(whole))
  })

  it('takes text, messages of all roles, and content of all kinds', async () => {
    const data = `data:image/png;base64,${PNG}`
    const input = [
      says('system', 'a'),
      { role: 'developer', content: [{ type: 'input_text', text: 'b' }] },
      says('user', 'one'),
      says('assistant', [
        { type: 'output_text', text: 'two', annotations: [] },
        { type: 'refusal', refusal: 'no' },
      ]),
      says('user', [
        { type: 'input_text', text: 'see' },
        { type: 'input_image', image_url: data, detail: 'auto' },
        { type: 'input_image', image_url: 'https://x.example/a.png' },
        {
          type: 'input_file',
          filename: 'a.pdf',
          file_data: `data:application/pdf;base64,${Buffer.from('%PDF').toString('base64')}`,
        },
      ]),
    ]
    expect(await said({ input, instructions: 'be brief' })).to.equal(
      'You said: see [image image/png, 12 bytes] [image at https://x.example/a.png] [file a.pdf, application/pdf, 4 bytes] (turn 2)'
    )
  })

  it('calls functions: by pieces in a stream, whole otherwise, and takes their results', async () => {
    const tools = [fn('get_weather', { strict: true }), fn('get_time')]
    const input = [says('user', `${WEATHER}\n/tool get_time {}`)]
    const { body } = await api.respond({ input, tools })
    expect(body.output.map(({ type, name, status }: Tree) => [type, name, status])).to.deep.equal([
      ['function_call', 'get_weather', 'completed'],
      ['function_call', 'get_time', 'completed'],
    ])
    expect(body.tools).to.deep.equal([
      { ...tools[0], strict: true },
      { ...tools[1], strict: null },
    ])
    const stream = await api.stream({ input, tools })
    for (const { item, output_index } of stream.of('response.output_item.done')) {
      const own = (type: string) =>
        stream.of(`response.function_call_arguments.${type}`).filter(event => event.item_id === item.id)
      const pieces = own('delta')
        .map(({ delta }) => delta)
        .join('')
      expect([pieces, own('done')[0]!.arguments]).to.deep.equal([item.arguments, item.arguments])
      expect(item).to.include({ call_id: body.output[output_index].call_id, arguments: body.output[output_index].arguments })
    }
    expect(stream.of('response.function_call_arguments.delta').length).to.be.greaterThan(2)
    const results = body.output.map(({ call_id }: Tree, at: number) => ({
      type: 'function_call_output',
      call_id,
      output: at === 0 ? 'result 0' : [{ type: 'input_text', text: 'result 1' }],
    }))
    expect(await said({ input: [...input, ...body.output, ...results], tools })).to.include(
      'get_weather answered: result 0\nget_time answered: result 1'
    )
  })

  it('flattens tools of a namespace for the model, and names them as the client does', async () => {
    const namespace = { type: 'namespace', name: 'crm', description: 'customers', tools: [fn('find'), fn('f'.repeat(70))] }
    for (const name of ['find', 'f'.repeat(70)]) {
      const tool_choice = { type: 'function', namespace: 'crm', name }
      const { output, tools } = await ok({ input: 'x', tools: [namespace], tool_choice })
      expect(tools).to.deep.equal([namespace])
      expect(output[0]).to.include({ type: 'function_call', name, namespace: 'crm' })
      const result = { type: 'function_call_output', call_id: output[0].call_id, output: 'found' }
      expect(await said({ input: [says('user', 'x'), ...output, result], tools: [namespace] })).to.include('answered: found')
    }
  })

  it('calls custom tools with a text', async () => {
    const patch = {
      type: 'custom',
      name: 'patch',
      description: 'd',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
    }
    const input = [says('user', '/tool patch {"input":"*** Begin\\nx"}')]
    const { of, response } = await api.stream({ input, tools: [patch] })
    expect(response.output[0]).to.include({ type: 'custom_tool_call', name: 'patch', input: '*** Begin\nx', status: 'completed' })
    expect(of('response.custom_tool_call_input.delta')[0]!.delta).to.equal('*** Begin\nx')
    expect(of('response.custom_tool_call_input.done')[0]!.input).to.equal('*** Begin\nx')
    const result = { type: 'custom_tool_call_output', call_id: response.output[0].call_id, output: 'done' }
    expect(await said({ input: [...input, ...response.output, result], tools: [patch] })).to.include('patch answered: done')
  })

  it('leaves out hosted tools and says so, unless tool_choice names them', async () => {
    const tools = [{ type: 'web_search' }, fn('a'), { type: 'file_search', vector_store_ids: [] }]
    const { headers, body } = await api.respond({ input: 'x', tools })
    expect(headers.get('x-svc-dropped')!.split(', ')).to.have.members(['tools.web_search', 'tools.file_search'])
    expect(body.tools.map(({ name }: Tree) => name)).to.deep.equal(['a'])
    const refused = await api.respond({ input: 'x', tools, tool_choice: { type: 'web_search' } })
    expect([refused.status, refused.body.error.code, refused.body.error.param]).to.deep.equal([
      400,
      'unsupported_parameter',
      'tool_choice.type',
    ])
  })

  it('honours tool_choice', async () => {
    const tools = [fn('a'), fn('b')]
    const called = async (tool_choice: unknown) =>
      (await ok({ input: 'x', tools, tool_choice })).output.flatMap(({ type, name }: Tree) =>
        type === 'function_call' ? [name] : []
      )
    expect(await called('auto')).to.deep.equal([])
    expect(await called('none')).to.deep.equal([])
    expect(await called('required')).to.deep.equal(['a'])
    expect(await called({ type: 'function', name: 'b' })).to.deep.equal(['b'])
    const b = { type: 'function', name: 'b' }
    expect(await called({ type: 'allowed_tools', mode: 'required', tools: [b] })).to.deep.equal(['b'])
  })

  it('honours max_output_tokens: the response is incomplete, and says why', async () => {
    const body = await ok({ input: 'one two three', max_output_tokens: 2 })
    expect(body).to.deep.include({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      completed_at: null,
    })
    expect([textOf(body), body.output[0].status]).to.deep.equal(['You said', 'incomplete'])
    const { types, response, isDone } = await api.stream({ input: 'one two three', max_output_tokens: 2 })
    expect([types.at(-1), textOf(response), isDone]).to.deep.equal(['response.incomplete', 'You said', true])
  })

  it('honours text.format', async () => {
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false }
    const format = { type: 'json_schema', name: 'x', schema, strict: true }
    const body = await ok({ input: 'x', text: { format } })
    expect(textOf(body)).to.equal('{"ok":true}')
    expect(body.text.format).to.deep.include(format)
    expect(JSON.parse(await said({ input: 'x', text: { format: { type: 'json_object' } } }))).to.have.property('reply')
    expect(await said({ input: 'x', text: { format: { type: 'text' }, verbosity: 'medium' } })).to.equal('You said: x')
  })

  it('has log probabilities for who asks', async () => {
    const include = ['message.output_text.logprobs']
    const { output } = await ok({ input: 'hello', include, top_logprobs: 2 })
    const { logprobs } = output[0].content[0]
    expect(logprobs.map(({ token }: Tree) => token).join('')).to.equal('You said: hello')
    expect(logprobs[0].top_logprobs).to.have.length(2)
    const { of } = await api.stream({ input: 'hello', include })
    for (const { delta, logprobs: own } of of('response.output_text.delta'))
      expect(own.map(({ token }: Tree) => token).join('')).to.equal(delta)
    expect(of('response.output_text.done')[0]!.logprobs).to.have.length(logprobs.length)
  })

  it('shows reasoning in an item before the message', async () => {
    const asked = { input: 'hello', reasoning: { effort: 'low', summary: 'auto' } }
    const { output, usage, reasoning } = await ok(asked)
    expect(output.map(({ type }: Tree) => type)).to.deep.equal(['reasoning', 'message'])
    expect(output[0].summary[0].text).to.include('Thought 2 of 2')
    expect(output[0]).to.not.have.property('encrypted_content')
    expect(usage.output_tokens_details.reasoning_tokens).to.be.greaterThan(0)
    expect(reasoning).to.deep.equal({ effort: 'low', summary: 'auto' })
    const { types, of } = await api.stream(asked)
    const text = of('response.reasoning_summary_text.delta')
      .map(({ delta }) => delta)
      .join('')
    expect([text, of('response.reasoning_summary_text.done')[0]!.text]).to.deep.equal([output[0].summary[0].text, text])
    expect(types.indexOf('response.reasoning_summary_part.done')).to.be.lessThan(types.indexOf('response.output_text.delta'))
    const next = await api.respond({ input: [says('user', 'hello'), ...output, says('user', 'more')] })
    expect([next.status, textOf(next.body)]).to.deep.equal([200, 'You said: more (turn 2)'])
  })

  it('lists what it drops in a header, and nothing that has no effect', async () => {
    const dropped = async (more: Tree) => (await api.respond({ input: 'x', ...more })).headers.get('x-svc-dropped')
    const all = {
      user: 'u',
      safety_identifier: 's',
      service_tier: 'flex',
      truncation: 'auto',
      client_metadata: { a: 1 },
      prompt_cache_retention: '24h',
    }
    expect((await dropped(all))!.split(', ')).to.have.members(Object.keys(all))
    expect(await dropped({ text: { verbosity: 'low' } })).to.equal('text.verbosity')
    expect(await dropped({ include: ['web_search_call.results'] })).to.equal('include.web_search_call.results')
    expect(await dropped({ stream_options: { include_obfuscation: true } })).to.equal('stream_options.include_obfuscation')
    const nothing = {
      truncation: 'disabled',
      service_tier: 'auto',
      metadata: {},
      user: null,
      tools: [],
      parallel_tool_calls: true,
    }
    expect(await dropped({ ...nothing, include: ['reasoning.encrypted_content'], prompt_cache_key: 'k' })).to.equal(null)
  })

  it('refuses by name what neither svc nor the model supports', async () => {
    const refused = async (more: Tree) => {
      const { status, body } = await api.respond({ input: 'x', ...more })
      return [status, body.error?.code, body.error?.param]
    }
    const unsupported = (param: string) => [400, 'unsupported_parameter', param]
    for (const name of ['conversation', 'prompt', 'max_tool_calls', 'context_management', 'seed', 'anything'])
      expect(await refused({ [name]: 1 })).to.deep.equal(unsupported(name))
    expect(await refused({ frequency_penalty: 1 })).to.deep.equal(unsupported('frequency_penalty'))
    expect(await refused({ reasoning: { context: 'x' } })).to.deep.equal(unsupported('reasoning.context'))
    expect(await refused({ input: [{ type: 'computer_call', id: 'x' }] })).to.deep.equal(unsupported('input[0].type'))
    const content = [{ type: 'input_image', file_id: 'f' }]
    expect(await refused({ input: [says('user', content)] })).to.deep.equal(unsupported('input[0].content[0].file_id'))
    expect(await refused({ model: 'nope', conversation: 'x' })).to.deep.equal([404, 'model_not_found', 'model'])
  })

  it('fails with a status before the first part, and with response.failed after it', async () => {
    const before = await api.respond({ input: '/fail rate_limited' })
    expect([before.status, before.body.error.type]).to.deep.equal([429, 'rate_limit_error'])
    const early = await api.stream({ input: '/fail overloaded' })
    expect([early.status, early.headers.get('content-type')]).to.deep.equal([503, 'application/json; charset=utf-8'])
    const { types, response, isDone, events } = await api.stream({ input: 'one two three\n/fail network after 2' })
    expect([types.at(-1), response.status, response.error.code, isDone]).to.deep.equal([
      'response.failed',
      'failed',
      'upstream_error',
      true,
    ])
    expect([textOf(response), response.output[0].status]).to.deep.equal(['You said', 'incomplete'])
    expect(events.map(({ sequence_number }) => sequence_number)).to.deep.equal(events.map((_, at) => at))
  })
})

describe('a stream of a response', () => {
  it('does not just end when the server stops', async () => {
    const api = await startResponses({ config: { server: { shutdown_timeout: 1 } } })
    // the head is there with the first piece
    const response = await send(`${api.url}/v1/responses`, {
      model: 'local/local-1',
      stream: true,
      input: 'one two\n/pace 60000',
    })
    const reading = readEvents(response)
    await api[Symbol.asyncDispose]()
    const { events } = await reading
    const last = events.at(-1)!
    expect(['response.failed', 'error']).to.include(last.type)
    expect(last.type === 'error' ? last.message : last.response.error.message).to.be.a('string')
  })
})

describe('a response of an agent', () => {
  it('is made with the tools of svc; calls of the tools of the client come out', async () => {
    await using api = await startResponses()
    const inside = await api.respond({ model: 'profile:coder', input: '/tool current_time {}' })
    expect(inside.body.output.map(({ type }: Tree) => type)).to.deep.equal(['message'])
    expect(textOf(inside.body)).to.include('current_time answered')
    const tools = [fn('edit')]
    const input = [says('user', '/tool current_time {}\n/tool edit {"a":"1"}')]
    const { body } = await api.respond({ model: 'profile:coder', input, tools })
    const [call] = body.output.filter(({ type }: Tree) => type === 'function_call')
    expect(call).to.include({ name: 'edit' })
    const result = { type: 'function_call_output', call_id: call.call_id, output: 'edited' }
    const next = await api.respond({ model: 'profile:coder', input: [...input, ...body.output, result], tools })
    expect(textOf(next.body)).to.include('current_time answered').and.include('edit answered: edited')
  })
})

describe('a response of another server', () => {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`

  it('is made of one attempt only, if another fails before its first part', async () => {
    let attempts = 0
    const upstream: Answerer = async (_, reply) => {
      attempts++
      await reply.write(chunk({ role: 'assistant', content: attempts === 1 ? '' : 'ok' }))
      if (attempts === 1) return reply.cut()
      await reply.write(`${chunk({}, 'stop')}data: [DONE]\n\n`)
      return reply.end()
    }
    await using api = await startResponses({
      upstream,
      plugins: ['chat-policy'],
      config: { chat: { policy: { backoff_ms: 1 } } },
    })
    const { types, response } = await api.stream({ model: 'up/m', input: 'hi' })
    expect([attempts, textOf(response), types.filter(type => type === 'response.created').length]).to.deep.equal([2, 'ok', 1])
  })

  it('sends the pieces of a call that was cut as an incomplete item', async () => {
    const call = { index: 0, id: 'c1', type: 'function', function: { name: 'edit', arguments: '{"a":' } }
    const upstream: Answerer = async (_, reply) => {
      await reply.write(chunk({ role: 'assistant', tool_calls: [call] }))
      return reply.cut()
    }
    await using api = await startResponses({ upstream })
    const { types, response } = await api.stream({ model: 'up/m', input: 'hi', tools: [fn('edit')] })
    expect(types.at(-1)).to.equal('response.failed')
    expect(response.output[0]).to.include({ type: 'function_call', status: 'incomplete' })
  })
})

const DATA = { signature: 'AbC+/=\u0000é', nested: [1, { a: null }] }
const ANSWER: readonly ModelEvent[] = [
  { type: 'reasoning', text: 'first ' },
  { type: 'reasoning', text: 'thought' },
  { type: 'reasoning', text: '', providerData: DATA },
  { type: 'reasoning', text: '', providerData: { redacted: 'xyz' } },
  { type: 'text', text: 'let me see' },
  { type: 'citation', citation: { url: 'https://x.example', title: 'X', start: 0, end: 3 } },
  { type: 'tool_call', id: 'c1', tool: 'edit', arguments: { a: '1' }, providerData: { thoughtSignature: 'sig' } },
  { type: 'tool_call', id: 'c2', tool: 'edit', arguments: {} },
  { type: 'usage', usage: { input: 3, output: 2, cached: 1, cacheWrite: 1, reasoning: 1 } },
  { type: 'finish', reason: 'tool_calls', providerData: { whole: true } },
]
const EXPECTED = {
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
}

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

describe('data of a provider in a response', () => {
  const results = ['c1', 'c2'].map(call_id => ({ type: 'function_call_output', call_id, output: 'ok' }))
  const first = { model: 'think/t', input: [says('user', 'go')], tools: [fn('edit')], store: false }
  const include = ['reasoning.encrypted_content']

  for (const stream of [false, true])
    it(`comes back byte for byte, in order, with encrypted content (${stream ? 'stream' : 'whole'})`, async () => {
      const provider = thinker()
      await using api = await startResponses({ give: [item(Providers, 'think', provider)] })
      const asked = { ...first, include }
      const { output, usage } = stream ? (await api.stream(asked)).response : (await api.respond(asked)).body
      expect(output[0].summary).to.deep.equal([{ type: 'summary_text', text: 'first thought' }])
      expect(output[2].content[0].annotations).to.deep.equal([
        { type: 'url_citation', url: 'https://x.example', title: 'X', start_index: 0, end_index: 3 },
      ])
      expect(usage.input_tokens_details).to.deep.equal({ cached_tokens: 1, cache_write_tokens: 1 })
      const next = await api.respond({ ...asked, input: [...first.input, ...output, ...results] })
      expect([next.status, next.headers.get('x-svc-dropped')]).to.deep.equal([200, null])
      expect(provider.requests[1]!.messages[1]).to.deep.equal(EXPECTED)
    })

  it('has no place in the events of clients that do not ask for it', async () => {
    await using api = await startResponses({ give: [item(Providers, 'think', thinker())] })
    const { text, response, of } = await api.stream(first)
    expect(text).to.not.include('encrypted_content')
    expect(response.output.map(({ type }: Tree) => type)).to.deep.equal([
      'reasoning',
      'message',
      'function_call',
      'function_call',
    ])
    expect(of('response.output_item.added').map(({ output_index }) => output_index)).to.deep.equal([0, 1, 2, 3])
    expect(of('response.output_item.done').map(({ item: done }) => done)).to.deep.equal(response.output)
  })

  it('is kept with a stored response, also without encrypted content', async () => {
    const provider = thinker()
    await using api = await startResponses({ give: [item(Providers, 'think', provider)] })
    const { body } = await api.respond({ ...first, store: true })
    await api.respond({ ...first, input: results, previous_response_id: body.id })
    expect(provider.requests[1]!.messages[1]).to.deep.equal(EXPECTED)
    const hidden = (await api.get(body.id)).body.output
    expect(hidden).to.deep.equal(body.output)
    const shown = (await api.get(body.id, '?include[]=reasoning.encrypted_content')).body.output
    expect(shown.filter((one: Tree) => 'encrypted_content' in one)).to.have.length(4)
  })

  it('is for that provider only, which the message names, and not used if svc did not make it', async () => {
    const other = thinker()
    await using api = await startResponses({ give: [item(Providers, 'think', thinker()), item(Providers, 'other', other)] })
    const { output } = (await api.respond({ ...first, include })).body
    await api.respond({ ...first, model: 'other/t', input: [...first.input, ...output, ...results] })
    expect(other.requests[0]!.messages[1]).to.include({ provider: 'think' })
    const foreign = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' }
    const got = await api.respond({ ...first, model: 'other/t', input: [...first.input, foreign, says('user', 'x')] })
    expect([got.status, got.headers.get('x-svc-dropped')]).to.deep.equal([200, 'input.encrypted_content'])
  })
})

describe('a response of a server that speaks the Responses API', () => {
  const thought = {
    id: 'rs_1',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Hm.' }],
    encrypted_content: 'gAAAA+/==',
  }
  const call = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'edit', arguments: '{"a":"x"}', status: 'completed' }
  const usage = { input_tokens: 9, output_tokens: 4, input_tokens_details: { cached_tokens: 2 } }
  const answerOf = (output: object[]) => ({ id: 'resp_9', object: 'response', status: 'completed', output, usage })
  const event = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
  const eventsOf = (output: object[]) =>
    output.map((done, output_index) => event('response.output_item.done', { output_index, item: done })).join('') +
    event('response.completed', { response: answerOf(output) })

  for (const stream of [false, true])
    it(`has encrypted reasoning that goes back byte for byte (${stream ? 'stream' : 'whole'})`, async () => {
      await using api = await startResponses({
        upstream: ({ body }, reply) =>
          (body as Tree).stream ? reply.end(eventsOf([thought, call])) : reply.json(200, answerOf([thought, call])),
      })
      const { url } = api.api.upstream
      const providers = { up: { type: 'openai', preset: 'openai', api: 'responses', base_url: `${url}/v1`, models: ['gpt-5'] } }
      await using own = await startResponses({
        config: { providers: { local: {}, up: { ...providers.up, api_key_env: 'SVC_TEST_OPENAI_API_KEY' } } },
      })
      const input = [says('user', 'go')]
      const asked = { model: 'up/gpt-5', input, tools: [fn('edit')], include: ['reasoning.encrypted_content'], store: false }
      const { output } = stream ? (await own.stream(asked)).response : (await own.respond(asked)).body
      expect(output[0].summary).to.deep.equal(thought.summary)
      const result = { type: 'function_call_output', call_id: 'c1', output: 'ok' }
      const next = await own.respond({ ...asked, input: [...input, ...output, result] })
      expect(next.status, next.text).to.equal(200)
      const sent = api.api.upstream.received.findLast(({ method }) => method === 'POST')!.body as Tree
      expect(sent.input).to.deep.equal([
        { type: 'message', role: 'user', content: 'go' },
        thought,
        { type: 'function_call', call_id: 'c1', name: 'edit', arguments: '{"a":"x"}' },
        result,
      ])
      expect(sent).to.deep.include({ store: false, include: ['reasoning.encrypted_content'] })
    })
})
