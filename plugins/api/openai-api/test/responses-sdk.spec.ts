import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import OpenAI, { APIError, BadRequestError, NotFoundError } from 'openai'
import { WEATHER } from './support/api.ts'
import { startResponses } from './support/responses.ts'

const model = 'local/local-1'
const tools: OpenAI.Responses.FunctionTool[] = [
  {
    type: 'function',
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    strict: false,
  },
]

describe('the client of OpenAI, for responses,', () => {
  let api: Awaited<ReturnType<typeof startResponses>>
  let client: OpenAI
  before(async () => {
    api = await startResponses()
    client = new OpenAI({ baseURL: `${api.url}/v1`, apiKey: 'unused', maxRetries: 0 })
  })
  after(() => api[Symbol.asyncDispose]())
  const thrownBy = async (work: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(work).then(
      () => undefined,
      (error: unknown) => error
    )

  it('creates, retrieves and deletes them, and lists their input', async () => {
    const made = await client.responses.create({ model, input: 'hello', store: true })
    expect(made.output_text).to.equal('You said: hello')
    const got = await client.responses.retrieve(made.id)
    expect([got.id, got.output_text]).to.deep.equal([made.id, made.output_text])
    const items = await Array.fromAsync(client.responses.inputItems.list(made.id, { limit: 1 }))
    expect(items).to.have.length(1)
    await client.responses.delete(made.id)
    expect(await thrownBy(client.responses.retrieve(made.id))).to.be.instanceOf(NotFoundError)
  })

  it('streams them, gathers the events, and parses their JSON', async () => {
    const stream = client.responses.stream({ model, input: 'hello', reasoning: { effort: 'low', summary: 'auto' } })
    let text = ''
    stream.on('response.output_text.delta', ({ delta }) => void (text += delta))
    const gathered = await stream.finalResponse()
    expect([text, gathered.output_text]).to.deep.equal(['You said: hello', 'You said: hello'])
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false }
    const parsed = await client.responses.parse({
      model,
      input: 'x',
      text: { format: { type: 'json_schema', name: 'x', schema, strict: true } },
    })
    expect(parsed.output_parsed).to.deep.equal({ ok: true })
  })

  it('runs a tool and sends its result, with and without stored responses', async () => {
    const first = await client.responses.create({ model, input: WEATHER, tools, store: true })
    const [call] = first.output
    if (call?.type !== 'function_call') throw new Error('no call')
    expect(JSON.parse(call.arguments)).to.have.property('city')
    const result = { type: 'function_call_output' as const, call_id: call.call_id, output: 'sunny' }
    const next = await client.responses.create({ model, tools, input: [result], previous_response_id: first.id })
    expect(next.output_text).to.include('get_weather answered: sunny')
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: WEATHER }, call, result]
    expect((await client.responses.create({ model, tools, input })).output_text).to.equal(next.output_text)
  })

  it('polls, streams again and cancels those in the background', async () => {
    const made = await client.responses.create({ model, input: 'hello', background: true })
    expect(made.status).to.equal('queued')
    let got = made
    while (got.status === 'queued' || got.status === 'in_progress') {
      await sleep(50)
      got = await client.responses.retrieve(made.id)
    }
    expect([got.status, got.output_text]).to.deep.equal(['completed', 'You said: hello'])
    const events = await Array.fromAsync(await client.responses.retrieve(made.id, { stream: true, starting_after: 2 }))
    expect([events[0]!.sequence_number, events.at(-1)!.type]).to.deep.equal([3, 'response.completed'])
    const slow = await client.responses.create({ model, input: 'one two three\n/pace 60000', background: true })
    expect((await client.responses.cancel(slow.id)).status).to.equal('cancelled')
  })

  it('throws its own errors', async () => {
    const create = (body: object) => thrownBy(client.responses.create({ model, input: 'x', ...body }))
    expect(await create({ model: 'nope' }))
      .to.be.instanceOf(NotFoundError)
      .and.include({ code: 'model_not_found', param: 'model' })
    expect(await create({ temperature: 3 }))
      .to.be.instanceOf(BadRequestError)
      .and.include({ type: 'invalid_request_error', param: 'temperature' })
    expect(await create({ previous_response_id: 'resp_1' })).to.be.instanceOf(NotFoundError)
    expect(await create({ input: '/fail rate_limited' }))
      .to.be.instanceOf(APIError)
      .and.include({ status: 429 })
    const stream = await client.responses.create({ model, input: 'one two three\n/fail network after 2', stream: true })
    const types = (await Array.fromAsync(stream)).map(({ type }) => type)
    expect(types.at(-1)).to.equal('response.failed')
  })
})
