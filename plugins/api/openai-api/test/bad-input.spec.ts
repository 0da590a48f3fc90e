import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { send, startApi, tool, type Tree, user } from './support/api.ts'

describe('a bad request', () => {
  let api: Awaited<ReturnType<typeof startApi>>
  before(async () => {
    api = await startApi()
  })
  after(() => api[Symbol.asyncDispose]())
  const refused = async (body: Tree) => {
    const got = await api.chat({ messages: [user('x')], ...body })
    expect(got.status, got.text).to.equal(400)
    expect(got.body.error.type).to.equal('invalid_request_error')
    return got.body.error.param as string
  }

  it('is refused with the place of the value', async () => {
    const places: Readonly<Record<string, Tree>> = {
      model: { model: 5 },
      messages: { messages: [] },
      'messages[0]': { messages: ['x'] },
      'messages[0].role': { messages: [{ content: 'x' }] },
      'messages[0].content': { messages: [{ role: 'user', content: 5 }] },
      'messages[0].content[1].type': { messages: [user([{ type: 'text', text: 'x' }, { text: 'x' }])] },
      'messages[0].content[0].text': { messages: [user([{ type: 'text' }])] },
      'messages[1].tool_calls[0].id': { messages: [user('x'), { role: 'assistant', tool_calls: [{ function: { name: 'x' } }] }] },
      stream: { stream: 'yes' },
      temperature: { temperature: 2.1 },
      top_p: { top_p: -1 },
      max_tokens: { max_tokens: 0 },
      max_completion_tokens: { max_completion_tokens: 1.5 },
      n: { n: 9 },
      stop: { stop: ['a', 'b', 'c', 'd', 'e'] },
      'stop[0]': { stop: [1] },
      seed: { seed: 'x' },
      frequency_penalty: { frequency_penalty: 3 },
      'logit_bias.5': { logit_bias: { 5: 101 } },
      top_logprobs: { top_logprobs: 3 },
      reasoning_effort: { reasoning_effort: 'much' }, // only a server of the protocol can know it
      tools: { tools: {} },
      'tools[0].function': { tools: [{ type: 'function' }] },
      'tools[0].function.name': { tools: [tool('')] },
      'tools[0].function.parameters': { tools: [tool('x', { parameters: [] })] },
      tool_choice: { tool_choice: 'required' },
      'tool_choice.function': { tool_choice: { type: 'function' } },
      response_format: { response_format: 'json' },
      'response_format.json_schema': { response_format: { type: 'json_schema' } },
      stream_options: { stream_options: [] },
      'stream_options.include_usage': { stream_options: { include_usage: 1 } },
    }
    for (const [param, body] of Object.entries(places)) expect(await refused(body), param).to.equal(param)
    expect(await refused({ stop: 'a'.repeat(10_001) })).to.equal('stop')
    expect(await refused({ tools: [tool('a'), tool('a')] })).to.equal('tools')
    expect(await refused({ tools: [tool('a')], tool_choice: { type: 'function', function: { name: 'b' } } })).to.equal(
      'tool_choice'
    )
  })

  it('has a tool result without its call', async () => {
    const result = { role: 'tool', tool_call_id: 'c1', content: 'x' }
    expect(await refused({ messages: [user('x'), result] })).to.equal('messages[1].tool_call_id')
    const call = { role: 'assistant', tool_calls: [{ id: 'c2', type: 'function', function: { name: 'x', arguments: '{}' } }] }
    expect(await refused({ messages: [user('x'), call, result] })).to.equal('messages[2].tool_call_id')
  })

  it('has an image, file or sound whose data is something else', async () => {
    const place = 'messages[0].content[0].image_url.url'
    const image = (url: unknown) => refused({ messages: [user([{ type: 'image_url', image_url: { url } }])] })
    for (const url of [
      'data:image/png;base64,aGVsbG8gd29ybGQ=',
      'data:image/png;base64,???',
      'data:image/png;base64,',
      'data:image/png,abc',
      'data:text/plain;base64,aGk=',
      'file:///etc/passwd',
      'x'.repeat(1_000_000),
      '',
      7,
    ])
      expect(await image(url), String(url).slice(0, 30)).to.equal(place)
    const part = (item: Tree) => refused({ messages: [user([item])] })
    expect(await part({ type: 'file', file: { file_data: 'abc' } })).to.equal('messages[0].content[0].file.file_data')
    expect(await part({ type: 'input_audio', input_audio: { data: '!', format: 'wav' } })).to.equal(
      'messages[0].content[0].input_audio.data'
    )
    expect(await part({ type: 'input_audio', input_audio: { data: 'AAAA', format: '\r\n' } })).to.equal(
      'messages[0].content[0].input_audio.format'
    )
    expect(await part({ type: 'file', file: { file_id: 'f' } })).to.equal('messages[0].content[0].file.file_id')
  })

  it('has 5,000 tools, a schema that is too deep, or too many messages of odd forms', async () => {
    expect(await refused({ tools: Array.from({ length: 5_000 }, (_, at) => tool(`t${at}`)) })).to.equal('tools')
    const deep = (levels: number): object => (levels === 0 ? {} : { properties: { a: deep(levels - 1) } })
    expect(await refused({ tools: [tool('x', { parameters: deep(60) })] })).to.equal('body')
    const many = await api.chat({ messages: [user('x')], tools: Array.from({ length: 1_000 }, (_, at) => tool(`t${at}`)) })
    expect(many.status).to.equal(200)
    const names = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`field_${at}`, 1]))
    const odd = await api.chat({ messages: [{ role: 'user', content: 'x', ...names }] })
    expect(odd.status).to.equal(200)
    expect(odd.headers.get('x-svc-dropped')!.split(', ')).to.have.length(51)
    const nested = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const call = { id: 'c', type: 'function', function: { name: 'x', arguments: nested } }
    const reply = await api.chat({
      messages: [user('x'), { role: 'assistant', tool_calls: [call] }, { role: 'tool', tool_call_id: 'c', content: '' }],
    })
    expect(reply.status).to.equal(200)
  })

  it('is larger than 32 MiB', async () => {
    const size = 32 * 1024 * 1024
    const bodyOf = (length: number) => {
      const [head, tail] = JSON.stringify({ model: 'nope', messages: [user('CUT')] }).split('CUT') as [string, string]
      return `${head}${'x'.repeat(length - head.length - tail.length)}${tail}`
    }
    const large = await api.post('/v1/chat/completions', bodyOf(size + 1))
    expect([large.status, large.body.error.code]).to.deep.equal([413, 'request_too_large'])
    const fits = await api.post('/v1/chat/completions', bodyOf(size))
    expect([fits.status, fits.body.error.code]).to.deep.equal([404, 'model_not_found'])
  }).timeout(120_000)

  it('has opaque data that svc did not make', async () => {
    const of = (value: unknown) => `svc1.${Buffer.from(JSON.stringify(value)).toString('base64url')}`
    const texts = [
      'svc1.',
      'svc1.!!!',
      'other',
      of(null),
      of({}),
      of([{ provider: 5 }]),
      of([{ provider: 'up', of: 'x', data: 1 }]),
      of([5]),
    ]
    const deep = `svc1.${Buffer.from(`[{"provider":"local","of":"message","data":${'['.repeat(9_000)}${']'.repeat(9_000)}}]`).toString('base64url')}`
    for (const data of [...texts, deep]) {
      const message = { role: 'assistant', content: 'x', reasoning_details: [{ data }, null, 5] }
      const { status, headers } = await api.chat({ messages: [user('x'), message, user('y')] })
      expect([status, headers.get('x-svc-dropped')], data.slice(0, 40)).to.deep.equal([200, 'messages.reasoning_details'])
    }
  })
})

describe('a client that never reads', () => {
  it('is disconnected, and its model call ends', async () => {
    const gone = Promise.withResolvers<void>()
    const piece = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(60_000) }, finish_reason: null }] })}\n\n`
    await using api = await startApi({
      upstream: async (_, reply) => {
        reply.gone.addEventListener('abort', () => gone.resolve())
        await reply.endless(() => piece)
      },
      config: { server: { stall_timeout_ms: 300 } },
    })
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    await once(socket, 'connect')
    const body = JSON.stringify({ model: 'up/m', stream: true, messages: [user('x')] })
    socket.pause()
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    )
    await gone.promise
    socket.destroy()
  })

  it('and one that leaves ends the model call, too', async () => {
    const gone = Promise.withResolvers<void>()
    await using api = await startApi({
      upstream: async (_, reply) => {
        reply.gone.addEventListener('abort', () => gone.resolve())
        await reply.silence()
      },
    })
    const leaving = new AbortController()
    const asked = fetch(`${api.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'up/m', stream: true, messages: [user('x')] }),
      signal: leaving.signal,
    }).catch(() => undefined)
    while (api.upstream.received.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    leaving.abort()
    await Promise.all([gone.promise, asked])
  })
})

it('the switch `enabled: false` serves nothing of the API', async () => {
  await using api = await startApi({ config: { api: { openai: { enabled: false } } } })
  for (const path of ['/v1/models', '/v1/models/a/b', '/v1/nothing']) {
    const { status, body } = await api.get(path)
    expect([status, body.error_code]).to.deep.equal([404, 'NOT_FOUND'])
  }
  expect((await send(`${api.url}/v1/chat/completions`, {})).status).to.equal(404)
})
