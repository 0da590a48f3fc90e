import { expect } from 'chai'
import OpenAI, { APIError, BadRequestError, NotFoundError, RateLimitError } from 'openai'
import { startApi, user, WEATHER } from './support/api.ts'

const tools = [
  {
    type: 'function',
    function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } }, strict: true },
  },
] as const satisfies OpenAI.Chat.Completions.ChatCompletionTool[]

describe('the client of OpenAI', () => {
  let api: Awaited<ReturnType<typeof startApi>>
  let client: OpenAI
  before(async () => {
    api = await startApi({
      upstream: (_, reply) =>
        reply.json(429, { error: { message: 'slow down', code: 'rate_limit_exceeded' } }, { 'retry-after': '0' }),
    })
    client = new OpenAI({ baseURL: `${api.url}/v1`, apiKey: 'unused' })
  })
  after(() => api[Symbol.asyncDispose]())
  const thrownBy = async (work: PromiseLike<unknown>): Promise<unknown> => {
    try {
      await work
      return undefined
    } catch (error) {
      return error
    }
  }

  it('lists models, and gets one with a slash in its id', async () => {
    const ids = (await Array.fromAsync(client.models.list())).map(({ id }) => id)
    expect(ids).to.include.members(['local/local-1', 'profile:coder'])
    expect(await client.models.retrieve('local/local-1')).to.include({ id: 'local/local-1', owned_by: 'local' })
  })

  it('gets an answer, a stream, and its gathered form', async () => {
    const body = { model: 'local/local-1', messages: [{ role: 'user', content: 'hello' }] } as const
    const whole = await client.chat.completions.create({ ...body, messages: [...body.messages] })
    expect(whole.choices[0]!.message.content).to.equal('You said: hello')
    const runner = client.chat.completions.stream({
      ...body,
      messages: [...body.messages],
      stream_options: { include_usage: true },
    })
    let deltas = ''
    runner.on('content', delta => void (deltas += delta))
    const gathered = await runner.finalChatCompletion()
    expect(deltas).to.equal('You said: hello')
    expect(gathered.choices[0]!.message.content).to.equal(deltas)
    expect(gathered.usage).to.deep.equal(whole.usage)
    expect(await client.chat.completions.create({ ...body, messages: [...body.messages] }).withResponse()).to.have.property(
      'request_id'
    )
  })

  it('runs a tool and sends its result', async () => {
    const asked: object[] = []
    const runner = client.chat.completions.runTools({
      model: 'local/local-1',
      stream: true,
      messages: [{ role: 'user', content: WEATHER }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'the weather',
            parameters: tools[0].function.parameters,
            parse: JSON.parse,
            function(args: object) {
              asked.push(args)
              return 'sunny'
            },
          },
        },
      ],
    })
    expect(await runner.finalContent()).to.include('get_weather answered: sunny')
    expect(asked).to.deep.equal([{ city: 'Ulm, the town with the highest church' }])
  })

  it('reads embeddings, which it asks for in base64', async () => {
    const { data } = await client.embeddings.create({ model: 'local/local-1', input: ['a', 'b'], dimensions: 16 })
    expect(data.map(({ embedding }) => embedding.length)).to.deep.equal([16, 16])
    expect(Math.hypot(...data[0]!.embedding)).to.be.closeTo(1, 1e-5)
  })

  it('throws its own errors, with code and param, also in the middle of a stream', async () => {
    const create = (body: object) =>
      thrownBy(client.chat.completions.create({ model: 'local/local-1', messages: [{ role: 'user', content: 'x' }], ...body }))
    expect(await create({ model: 'nope' }))
      .to.be.instanceOf(NotFoundError)
      .and.include({ code: 'model_not_found', param: 'model' })
    const bad = await create({ temperature: 3 })
    expect(bad).to.be.instanceOf(BadRequestError).and.include({ type: 'invalid_request_error', param: 'temperature' })
    expect((bad as APIError).requestID).to.match(/^[\w-]+$/)
    const before = api.upstream.received.length
    expect(await create({ model: 'up/m' }))
      .to.be.instanceOf(RateLimitError)
      .and.include({ code: 'rate_limit_exceeded' })
    expect(api.upstream.received.length - before, 'it repeats the call twice').to.equal(3)
    const stream = await client.chat.completions.create({
      model: 'local/local-1',
      stream: true,
      messages: [user('one two three\n/fail network after 2') as { role: 'user'; content: string }],
    })
    let pieces = 0
    const error = await thrownBy(
      (async () => {
        for await (const _ of stream) pieces++
      })()
    )
    expect(error).to.be.instanceOf(APIError).and.include({ code: 'upstream_error' })
    expect(pieces).to.be.greaterThan(0)
  })
})
