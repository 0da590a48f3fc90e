import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { send, type Tree } from './support/api.ts'
import { fn, says, startResponses } from './support/responses.ts'

describe('a bad request for a response', () => {
  let api: Awaited<ReturnType<typeof startResponses>>
  before(async () => {
    api = await startResponses()
  })
  after(() => api[Symbol.asyncDispose]())
  const refused = async (body: Tree) => {
    const got = await api.respond({ input: 'x', ...body })
    expect(got.status, got.text).to.equal(400)
    expect(got.body.error.type).to.equal('invalid_request_error')
    return got.body.error.param as string
  }

  it('is refused with the place of the value', async () => {
    const message = (content: unknown) => ({ input: [says('user', content)] })
    const places: Readonly<Record<string, Tree>> = {
      model: { model: 5 },
      input: { input: [] },
      'input[0]': { input: ['x'] },
      'input[0].role': { input: [{ content: 'x', role: 'critic' }] },
      'input[0].content': message(5),
      'input[0].content[0].type': message([{}]),
      'input[0].content[0].text': message([{ type: 'input_text' }]),
      'input[0].call_id': { input: [{ type: 'function_call', name: 'x', arguments: '{}' }] },
      'input[0].name': { input: [{ type: 'function_call', call_id: 'x', arguments: '{}' }] },
      'input[0].summary[0].type': { input: [{ type: 'reasoning', summary: [{ type: 'x' }] }] },
      instructions: { instructions: [] },
      stream: { stream: 'yes' },
      store: { store: 'yes' },
      background: { background: 1 },
      previous_response_id: { previous_response_id: {} },
      temperature: { temperature: 2.1 },
      top_p: { top_p: -1 },
      top_logprobs: { top_logprobs: 21 },
      max_output_tokens: { max_output_tokens: 0 },
      include: { include: 'x' },
      'include[0]': { include: ['x'] },
      'reasoning.effort': { reasoning: { effort: 'much' } },
      'reasoning.summary': { reasoning: { summary: 'long' } },
      metadata: { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, 'x'])) },
      'metadata.a': { metadata: { a: 1 } },
      truncation: { truncation: 'some' },
      tools: { tools: {} },
      'tools[0].type': { tools: [{}] },
      'tools[0].name': { tools: [fn('')] },
      'tools[0].parameters': { tools: [fn('x', { parameters: [] })] },
      'tools[0].tools': { tools: [{ type: 'namespace', name: 'x' }] },
      'tools[0].format.type': { tools: [{ type: 'custom', name: 'x', format: { type: 'x' } }] },
      tool_choice: { tool_choice: 'required' },
      'tool_choice.name': { tool_choice: { type: 'function' } },
      'tool_choice.mode': { tool_choice: { type: 'allowed_tools', tools: [] } },
      text: { text: 'json' },
      'text.format.type': { text: { format: { type: 'xml' } } },
      'text.format.schema': { text: { format: { type: 'json_schema' } } },
      stream_options: { stream_options: [] },
      'stream_options.include_obfuscation': { stream_options: { include_obfuscation: 1 } },
    }
    for (const [param, body] of Object.entries(places)) expect(await refused(body), param).to.equal(param)
    expect(await refused({ tools: [fn('a'), fn('a')] })).to.equal('tools')
    expect(await refused({ tools: [fn('a')], tool_choice: { type: 'function', name: 'b' } })).to.equal('tool_choice')
    expect((await api.api.post('/v1/responses', { input: 'x' })).body.error.param).to.equal('model')
    expect((await api.api.post('/v1/responses', '{"model":')).status).to.equal(400)
  })

  it('has a result without its call', async () => {
    const result = { type: 'function_call_output', call_id: 'c1', output: 'x' }
    expect(await refused({ input: [says('user', 'x'), result] })).to.equal('input[1].call_id')
    const call = { type: 'function_call', call_id: 'c2', name: 'x', arguments: '{}' }
    expect(await refused({ input: [says('user', 'x'), call, result] })).to.equal('input[2].call_id')
  })

  it('has an image or file whose data is something else', async () => {
    const image = (image_url: unknown) => refused({ input: [says('user', [{ type: 'input_image', image_url }])] })
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
      expect(await image(url), String(url).slice(0, 30)).to.equal('input[0].content[0].image_url')
    const file = (more: Tree) => refused({ input: [says('user', [{ type: 'input_file', ...more }])] })
    expect(await file({ file_data: 'abc' })).to.equal('input[0].content[0].file_data')
    expect(await file({})).to.equal('input[0].content[0].file_data')
    expect(await file({ file_url: 'https://x.example/a.pdf' })).to.equal('input[0].content[0].file_url')
  })

  it('has 5,000 tools, also in a namespace, a schema that is too deep, or too many odd fields', async () => {
    const many = (length: number) => Array.from({ length }, (_, at) => fn(`t${at}`))
    expect(await refused({ tools: many(5_000) })).to.equal('tools')
    expect(await refused({ tools: [{ type: 'namespace', name: 'x', tools: many(5_000) }] })).to.equal('tools')
    expect((await api.respond({ input: 'x', tools: many(1_000) })).status).to.equal(200)
    const deep = (levels: number): object => (levels === 0 ? {} : { properties: { a: deep(levels - 1) } })
    expect(await refused({ tools: [fn('x', { parameters: deep(60) })] })).to.equal('body')
    const names = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`field_${at}`, 1]))
    const odd = await api.respond({ input: [{ ...says('user', 'x'), ...names }] })
    expect(odd.headers.get('x-svc-dropped')!.split(', ')).to.have.length(51)
    const nested = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const call = { type: 'function_call', call_id: 'c', name: 'x', arguments: nested }
    const reply = await api.respond({ input: [call, { type: 'function_call_output', call_id: 'c', output: '' }] })
    expect(reply.status).to.equal(200)
  })

  it('is larger than 32 MiB', async () => {
    const size = 32 * 1024 * 1024
    const bodyOf = (length: number) => {
      const [head, tail] = JSON.stringify({ model: 'nope', store: false, input: 'CUT' }).split('CUT') as [string, string]
      return `${head}${'x'.repeat(length - head.length - tail.length)}${tail}`
    }
    const large = await api.api.post('/v1/responses', bodyOf(size + 1))
    expect([large.status, large.body.error.code]).to.deep.equal([413, 'request_too_large'])
    const fits = await api.api.post('/v1/responses', bodyOf(size))
    expect([fits.status, fits.body.error.code]).to.deep.equal([404, 'model_not_found'])
  }).timeout(120_000)

  it('has encrypted content that svc did not make', async () => {
    const of = (value: unknown) => `svc1.${Buffer.from(JSON.stringify(value)).toString('base64url')}`
    const deep = `svc1.${Buffer.from(`{"provider":"local","of":"message","data":${'['.repeat(9_000)}${']'.repeat(9_000)}}`).toString('base64url')}`
    for (const encrypted_content of ['svc1.', 'svc1.!!!', 'other', of(null), of([]), of({ provider: 5 }), deep, 5]) {
      const reasoning = { type: 'reasoning', summary: [], encrypted_content }
      const { status, headers } = await api.respond({ input: [says('user', 'x'), reasoning, says('user', 'y')] })
      expect([status, headers.get('x-svc-dropped')]).to.deep.equal([200, 'input.encrypted_content'])
    }
  })
})

describe('a client of responses', () => {
  it('that never reads is disconnected, and its model call ends', async () => {
    const gone = Promise.withResolvers<void>()
    const piece = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(60_000) }, finish_reason: null }] })}\n\n`
    await using api = await startResponses({
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
    const body = JSON.stringify({ model: 'up/m', stream: true, store: true, input: 'x' })
    socket.pause()
    socket.write(
      `POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    )
    await gone.promise
    socket.destroy()
  })

  it('that leaves ends the model call, but not that of a response in the background', async () => {
    const gone = Promise.withResolvers<void>()
    await using api = await startResponses({
      upstream: async (_, reply) => {
        reply.gone.addEventListener('abort', () => gone.resolve())
        await reply.silence()
      },
    })
    const leaving = new AbortController()
    const asked = fetch(`${api.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'up/m', stream: true, input: 'x' }),
      signal: leaving.signal,
    }).catch(() => undefined)
    while (api.api.upstream.received.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    leaving.abort()
    await Promise.all([gone.promise, asked])
    const body = { model: 'local/local-1', background: true, stream: true, input: 'one two three\n/pace 200' }
    const reading = await send(`${api.url}/v1/responses`, body)
    const reader = reading.body!.getReader()
    const { value } = await reader.read()
    const [, id] = /"id":"(resp_\w+)"/.exec(Buffer.from(value!).toString())!
    await reader.cancel()
    const { response } = await api.again(id!)
    expect(response.status).to.equal('completed')
  })
})
