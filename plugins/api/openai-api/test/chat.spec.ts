import { expect } from 'chai'
import { startApi, tool, type Tree, user, WEATHER } from './support/api.ts'

describe('a chat completion', () => {
  let api: Awaited<ReturnType<typeof startApi>>
  before(async () => {
    api = await startApi()
  })
  after(() => api[Symbol.asyncDispose]())

  it('is one JSON object in the form of the API', async () => {
    const { status, body, headers } = await api.chat({ messages: [user('hello')] })
    expect(status).to.equal(200)
    expect(headers.get('x-request-id')).to.match(/^[\w-]+$/)
    expect(headers.get('x-svc-dropped')).to.equal(null)
    expect(body.id).to.match(/^chatcmpl-[\da-f]{32}$/)
    expect(body).to.include({ object: 'chat.completion', model: 'local/local-1' })
    expect(Math.abs(body.created - Date.now() / 1000)).to.be.lessThan(60)
    expect(body.choices).to.deep.equal([
      {
        index: 0,
        message: { role: 'assistant', content: 'You said: hello', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ])
    const { prompt_tokens, completion_tokens, total_tokens } = body.usage
    expect(prompt_tokens + completion_tokens).to.equal(total_tokens)
    expect(body.usage.prompt_tokens_details.cached_tokens).to.equal(0)
    expect(body.usage.completion_tokens_details.reasoning_tokens).to.equal(0)
  })

  it('streams chunks of one id: the role first, the finish reason in a chunk of its own, and [DONE] last', async () => {
    const { headers, chunks, isDone, content, choices } = await api.stream({ messages: [user('hello "you"\n\u2028')] })
    expect(headers.get('content-type')).to.match(/^text\/event-stream/)
    expect(isDone).to.equal(true)
    expect(content).to.equal('You said: hello "you"\n\u2028')
    expect(new Set(chunks.map(({ id, created, model, object }) => `${id} ${created} ${model} ${object}`)).size).to.equal(1)
    expect(choices[0]!.delta.role).to.equal('assistant')
    expect(choices.slice(1).some(({ delta }) => 'role' in delta)).to.equal(false)
    expect(choices.at(-1)).to.deep.equal({ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' })
    expect(choices.slice(0, -1).every(({ finish_reason }) => finish_reason === null)).to.equal(true)
    expect(chunks.some(chunk => 'usage' in chunk)).to.equal(false)
  })

  it('has a usage chunk without choices only if the client asks for it', async () => {
    const { chunks } = await api.stream({ messages: [user('hello')], stream_options: { include_usage: true } })
    expect(chunks.filter(({ choices }) => choices.length === 0)).to.have.length(1)
    expect(chunks.at(-1)!.choices).to.deep.equal([])
    expect(chunks.at(-1)!.usage.total_tokens).to.be.greaterThan(0)
  })

  it('takes instructions of the roles system and developer anywhere, and parts as content', async () => {
    const messages = [
      { role: 'system', content: 'a' },
      { role: 'developer', content: [{ type: 'text', text: 'b' }] },
      user([
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ]),
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'system', content: 'c' },
      user('three'),
    ]
    const { body } = await api.chat({ messages })
    expect(body.choices[0].message.content).to.equal('You said: three (turn 2)')
  })

  it('calls tools: by deltas in a stream, whole otherwise, and takes their results', async () => {
    const messages: Tree[] = [user(`${WEATHER}\n/tool get_time {}`)]
    const tools = [tool('get_weather'), tool('get_time')]
    const { body } = await api.chat({ messages, tools })
    const { message, finish_reason } = body.choices[0]
    expect(finish_reason).to.equal('tool_calls')
    expect(message.content).to.equal(null)
    expect(message.tool_calls.map((call: Tree) => call.function.name)).to.deep.equal(['get_weather', 'get_time'])

    const { choices, isDone } = await api.stream({ messages, tools })
    const pieces = choices.flatMap(({ delta }) => (delta.tool_calls ?? []) as Tree[])
    const calls = [0, 1].map(index => {
      const [first, ...more] = pieces.filter(piece => piece.index === index)
      expect(more.every(piece => !('id' in piece))).to.equal(true)
      return { ...first, text: [first, ...more].map(piece => piece!.function.arguments).join('') } as Tree
    })
    expect(pieces.length).to.be.greaterThan(3)
    expect(calls.map(({ id, text }) => ({ id, text }))).to.deep.equal(
      message.tool_calls.map((call: Tree) => ({ id: call.id, text: call.function.arguments }))
    )
    expect([choices.at(-1)!.finish_reason, isDone]).to.deep.equal(['tool_calls', true])

    const results = message.tool_calls.map(({ id }: Tree, at: number) => ({
      role: 'tool',
      tool_call_id: id,
      content: `result ${at}`,
    }))
    const next = await api.chat({ messages: [...messages, message, ...results], tools })
    expect(next.body.choices[0].message.content).to.include('get_weather answered: result 0\nget_time answered: result 1')
  })

  it('gives several answers, each with its index and finish reason', async () => {
    const { body } = await api.chat({ messages: [user('hello')], n: 3 })
    expect(body.choices.map(({ index }: Tree) => index)).to.deep.equal([0, 1, 2])
    expect(new Set(body.choices.map(({ message }: Tree) => message.content)).size).to.equal(3)
    const { chunks, isDone } = await api.stream({ messages: [user('hello')], n: 3 })
    const all = chunks.flatMap(({ choices }) => choices as Tree[])
    for (const { index, message } of body.choices) {
      const own = all.filter(choice => choice.index === index)
      expect(own.map(({ delta }) => delta.content ?? '').join('')).to.equal(message.content)
      expect(own[0]!.delta.role).to.equal('assistant')
      expect(own.filter(({ finish_reason }) => finish_reason !== null)).to.have.length(1)
    }
    expect(isDone).to.equal(true)
  })

  it('has reasoning beside the content, which the client can send back', async () => {
    const body = { messages: [user('hello')], reasoning_effort: 'low' }
    const whole = (await api.chat(body)).body
    const { reasoning_content } = whole.choices[0].message
    expect(reasoning_content).to.include('Thought 2 of 2')
    expect(whole.usage.completion_tokens_details.reasoning_tokens).to.be.greaterThan(0)
    const { join, content } = await api.stream(body)
    expect(join('reasoning_content')).to.equal(reasoning_content)
    expect(content).to.equal('You said: hello')
    const next = await api.chat({ messages: [user('hello'), whole.choices[0].message, user('more')] })
    expect(next.status).to.equal(200)
  })

  it('has log probabilities of each token, in a stream with its text', async () => {
    const body = { messages: [user('hello')], logprobs: true, top_logprobs: 2 }
    const { content } = (await api.chat(body)).body.choices[0].logprobs
    expect(content.map(({ token }: Tree) => token).join('')).to.equal('You said: hello')
    expect(content[0].top_logprobs).to.have.length(2)
    expect(Buffer.from(content[0].bytes).toString()).to.equal(content[0].token)
    const { choices } = await api.stream(body)
    for (const { delta, logprobs, finish_reason } of choices)
      if (finish_reason === null) expect(logprobs.content.map(({ token }: Tree) => token).join('')).to.equal(delta.content)
  })

  it('honours stop, max_tokens, seed, schemas and tool_choice', async () => {
    const say = async (more: Tree) => (await api.chat({ messages: [user('one two three')], ...more })).body.choices[0]
    expect((await say({ stop: 'two' })).message.content).to.equal('You said: one ')
    expect((await say({ stop: ['x', 'said'] })).message.content).to.equal('You ')
    expect(await say({ max_tokens: 2 })).to.nested.include({ finish_reason: 'length', 'message.content': 'You said' })
    expect((await say({ max_completion_tokens: 1, max_tokens: 9 })).message.content).to.equal('You')
    expect((await say({ seed: 7 })).message.content).to.equal((await say({ seed: 7 })).message.content)
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false }
    const json_schema = { name: 'x', schema, strict: true }
    expect((await say({ response_format: { type: 'json_schema', json_schema } })).message.content).to.equal('{"ok":true}')
    expect(JSON.parse((await say({ response_format: { type: 'json_object' } })).message.content)).to.have.property('reply')
    const tools = [tool('a'), tool('b')]
    const called = async (tool_choice: unknown) =>
      ((await say({ tools, tool_choice })).message.tool_calls ?? []).map((call: Tree) => call.function.name)
    expect(await called('required')).to.deep.equal(['a'])
    expect(await called({ type: 'function', function: { name: 'b' } })).to.deep.equal(['b'])
    expect(await called('none')).to.deep.equal([])
    const b = { type: 'function', function: { name: 'b' } }
    expect(await called({ type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [b] } })).to.deep.equal(['b'])
  })

  it('takes images, files and sounds', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d', 'hex').toString('base64')
    const content = [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'auto' } },
      { type: 'image_url', image_url: { url: 'https://x.example/a.png' } },
      {
        type: 'file',
        file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${Buffer.from('%PDF').toString('base64')}` },
      },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
    ]
    const { body } = await api.chat({ messages: [user(content)] })
    expect(body.choices[0].message.content).to.equal(
      'You said: see [image image/png, 12 bytes] [image at https://x.example/a.png] [file a.pdf, application/pdf, 4 bytes] [audio audio/wav, 3 bytes]'
    )
  })

  it('lists what it drops in a header, and nothing that has no effect', async () => {
    const dropped = async (more: Tree) => (await api.chat({ messages: [user('x')], ...more })).headers.get('x-svc-dropped')
    const all = { user: 'u', metadata: { a: 'b' }, store: true, service_tier: 'flex', safety_identifier: 's', prediction: {} }
    expect((await dropped(all))!.split(', ')).to.have.members(Object.keys(all))
    expect(await dropped({ max_tokens: 100_000 })).to.equal('max_tokens')
    expect(await dropped({ max_completion_tokens: 100_000 })).to.equal('max_completion_tokens')
    expect(await dropped({ messages: [{ role: 'user', content: 'x', name: 'anna', 'we\r\nird': 1 }] })).to.equal(
      'messages.name, other'
    )
    const format = { type: 'json_schema', json_schema: { name: 'a', schema: {}, description: 'd', more: 1 }, odd: 1 }
    expect(await dropped({ response_format: format })).to.equal(
      'response_format.odd, response_format.json_schema.description, response_format.json_schema.more'
    )
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`f${at}`, 1]))
    expect((await dropped({ messages: [{ ...user('x'), ...many }] }))!.split(', '))
      .to.have.length(51)
      .and.include('other')
    const neutral = {
      n: 1,
      top_p: 1,
      stop: null,
      frequency_penalty: 0,
      presence_penalty: 0,
      logit_bias: {},
      logprobs: false,
      store: false,
      service_tier: 'auto',
      parallel_tool_calls: true,
      tool_choice: 'auto',
      tools: [],
      response_format: { type: 'text' },
      modalities: ['text'],
      user: null,
      stream_options: null,
      prompt_cache_key: 'k',
    }
    expect(await dropped(neutral)).to.equal(null)
    const { headers } = await api.stream({ messages: [user('x')], user: 'u' })
    expect(headers.get('x-svc-dropped')).to.equal('user')
  })

  it('runs an agent by its name, whose tools the client does not see', async () => {
    const { body } = await api.chat({ model: 'profile:coder', messages: [user('/tool current_time {}')] })
    expect(body.model).to.equal('profile:coder')
    expect(body.choices[0]).to.nested.include({ finish_reason: 'stop' })
    expect(body.choices[0].message).to.not.have.property('tool_calls')
    expect(body.choices[0].message.content).to.include('current_time answered')
    const mixed = await api.stream({
      model: 'agent:coder',
      messages: [user('/tool edit {"a":"x"}')],
      tools: [tool('edit')],
      user: 'u',
    })
    const calls = mixed.choices.flatMap(({ delta }) => (delta.tool_calls ?? []) as Tree[])
    expect(calls.map(call => [call.index, call.function.name, call.id.slice(0, 4)])).to.deep.equal([[0, 'edit', 'svc_']])
    expect(mixed.headers.get('x-svc-dropped')).to.equal('user')
    const capped = await api.chat({ model: 'profile:coder', messages: [user('one two three four')], max_tokens: 2 })
    expect(capped.body.choices[0]).to.nested.include({ finish_reason: 'length', 'message.content': 'You said' })
    const large = await api.chat({ model: 'profile:coder', messages: [user('x')], max_tokens: 100_000 })
    expect([large.status, large.headers.get('x-svc-dropped')]).to.deep.equal([200, 'max_tokens'])
    const order = { model: 'profile:coder', messages: [user('why?')], reasoning_effort: 'low' }
    const { reasoning_content: thought } = (await api.chat(order)).body.choices[0].message
    expect(thought).to.be.a('string').and.not.equal('')
    const streamed = (await api.stream(order)).choices.map(({ delta }) => (delta.reasoning_content ?? '') as string)
    expect(streamed.join('')).to.equal(thought)
  })
})
