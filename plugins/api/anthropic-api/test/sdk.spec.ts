import Anthropic, { APIError, NotFoundError, RateLimitError } from '@anthropic-ai/sdk'
import { type ModelEvent, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { serveApi } from './support/api.ts'
import { scripted, STOP, USAGE } from './support/upstreams.ts'

const weather: Anthropic.Tool = {
  name: 'weather',
  description: 'the weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
}

const clientOf = (baseURL: string, maxRetries = 0) => new Anthropic({ baseURL, apiKey: 'any', maxRetries })

const said = (content: Anthropic.MessageParam['content']): Anthropic.MessageParam => ({ role: 'user', content })

describe('the official SDK', () => {
  it('gets an answer', async () => {
    await using api = await serveApi()
    const message = await clientOf(api.url).messages.create({
      model: 'local/local-1',
      max_tokens: 100,
      messages: [said('hello')],
    })
    expect(message.content).to.deep.equal([{ type: 'text', text: 'You said: hello' }])
    expect(message.stop_reason).to.equal('end_turn')
    expect(message._request_id).to.be.a('string')
  })

  it('gets a stream, and assembles its message', async () => {
    await using api = await serveApi()
    const stream = clientOf(api.url).messages.stream({
      model: 'local/local-1',
      max_tokens: 4000,
      thinking: { type: 'enabled', budget_tokens: 1024 },
      messages: [said('why?')],
    })
    let text = ''
    stream.on('text', piece => (text += piece))
    const message = await stream.finalMessage()
    expect(message.content.map(({ type }) => type)).to.deep.equal(['thinking', 'text'])
    expect(text).to.equal('You said: why?')
    expect(message.usage.output_tokens).to.be.greaterThan(0)
    expect(message.usage.input_tokens).to.be.greaterThan(0)
  })

  it('makes a round of tools', async () => {
    await using api = await serveApi()
    const client = clientOf(api.url)
    const question = said('/tool weather {"city":"Ulm"}')
    const order = { model: 'local/local-1', max_tokens: 500, tools: [weather] }
    for (const ask of [
      (messages: Anthropic.MessageParam[]) => client.messages.create({ ...order, messages }),
      (messages: Anthropic.MessageParam[]) => client.messages.stream({ ...order, messages }).finalMessage(),
    ]) {
      const first = await ask([question])
      expect(first.stop_reason).to.equal('tool_use')
      const call = first.content.find(block => block.type === 'tool_use')!
      expect(call.input).to.deep.equal({ city: 'Ulm' })
      const last = await ask([
        question,
        { role: 'assistant', content: first.content },
        said([{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }]),
      ])
      expect(last.content).to.deep.equal([{ type: 'text', text: 'weather answered: sunny\nDone.' }])
    }
  })

  it('returns thoughts unchanged', async () => {
    const thought: ModelEvent = { type: 'reasoning', text: 'Hm.', providerData: { encrypted: 'x' } }
    const odd = scripted([[thought, { type: 'text', text: 'ok' }, USAGE, STOP]], { supports: ['reasoning_effort'] })
    await using api = await serveApi({ give: [item(Providers, 'odd', odd)] })
    const client = clientOf(api.url)
    const order = { model: 'odd/m', max_tokens: 4000, thinking: { type: 'enabled' as const, budget_tokens: 1024 } }
    const first = await client.messages.stream({ ...order, messages: [said('hi')] }).finalMessage()
    await client.messages.create({
      ...order,
      messages: [said('hi'), { role: 'assistant', content: first.content }, said('more')],
    })
    expect(odd.requests[1]!.messages[1]!.parts).to.deep.equal([thought, { type: 'text', text: 'ok' }])
  })

  it('maps errors', async () => {
    await using api = await serveApi({ config: { chat: { policy: { attempts: 1, breaker_failures: 0 } } } })
    const client = clientOf(api.url)
    const failing = async (content: string, more: object = {}) => {
      const order = { model: 'local/local-1', max_tokens: 100, messages: [said(content)], ...more }
      const error = await client.messages.create(order).catch((reason: unknown) => reason)
      expect(error).to.be.instanceOf(APIError)
      return error as InstanceType<typeof APIError>
    }
    const limited = await failing('/fail rate_limited')
    expect(limited).to.be.instanceOf(RateLimitError)
    expect(limited.error).to.have.nested.property('error.type', 'rate_limit_error')
    expect(limited.requestID).to.be.a('string')
    expect((await failing('/fail overloaded')).status).to.equal(529)
    expect((await failing('/fail timeout')).status).to.equal(504)
    expect((await failing('/fail network')).status).to.equal(500)
    expect(await failing('hi', { model: 'local/nope' })).to.be.instanceOf(NotFoundError)
    expect((await failing('hi', { max_tokens: 0 })).message).to.contain('max_tokens must be an integer')
    const streamed = client.messages.stream({
      model: 'local/local-1',
      max_tokens: 100,
      messages: [said('one two three\n/fail overloaded after 2')],
    })
    const error = await streamed.finalMessage().catch((reason: unknown) => reason)
    expect(error).to.be.instanceOf(APIError)
    expect((error as Error).message).to.contain('overloaded_error')
  })

  it('repeats a call that may succeed later', async () => {
    const failure = Object.assign(new Error('busy'), {
      code: 'MODEL_FAILED',
      details: { kind: 'overloaded', retryable: true, retryAfterMs: 20 },
    })
    const odd = scripted([[failure], [{ type: 'text', text: 'ok' }, USAGE, STOP]])
    await using api = await serveApi({
      give: [item(Providers, 'odd', odd)],
      config: { chat: { policy: { attempts: 1, breaker_failures: 0 } } },
    })
    const message = await clientOf(api.url, 1).messages.create({ model: 'odd/m', max_tokens: 10, messages: [said('hi')] })
    expect(message.content).to.deep.equal([{ type: 'text', text: 'ok' }])
    expect(odd.requests).to.have.length(2)
  })

  it('counts tokens', async () => {
    await using api = await serveApi()
    const { input_tokens } = await clientOf(api.url).messages.countTokens({ model: 'local/local-1', messages: [said('hello')] })
    expect(input_tokens).to.equal(5)
  })

  it('is aborted: the model call ends', async () => {
    await using api = await serveApi()
    const stream = clientOf(api.url).messages.stream({
      model: 'local/local-1',
      max_tokens: 1000,
      messages: [said(`${'word '.repeat(200)}\n/pace 50`)],
    })
    let pieces = 0
    const error = await new Promise<unknown>(resolve => {
      stream.on('text', () => {
        if (++pieces === 3) stream.abort()
      })
      stream.finalMessage().catch(resolve)
    })
    expect(error).to.be.instanceOf(Anthropic.APIUserAbortError)
  })
})
