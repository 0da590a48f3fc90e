import { item } from '@svc/testing'
import { Providers } from '@svc/core/contracts'
import { expect } from 'chai'
import { assistant, serveApi, user } from './support/api.ts'
import { CALLS, scripted, STOP, USAGE } from './support/upstreams.ts'

const WEATHER = {
  name: 'weather',
  description: 'the weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

describe('POST /v1/messages', () => {
  it('answers with a message', async () => {
    await using api = await serveApi()
    const { status, body, headers } = await api.ask({ messages: [user('hello')] })
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.deep.include({ type: 'message', role: 'assistant', model: 'local/local-1', stop_reason: 'end_turn' })
    expect(body.content).to.deep.equal([{ type: 'text', text: 'You said: hello' }])
    expect(body.usage).to.include({ input_tokens: 5, output_tokens: 5 })
    expect(headers.get('request-id')).to.equal(headers.get('x-request-id'))
    expect(headers.has('x-svc-dropped')).to.equal(false)
  })

  it('streams the events of a message in their order, and never [DONE]', async () => {
    await using api = await serveApi()
    const { status, headers, events, data } = await api.stream({ messages: [user('hello')] })
    expect(status).to.equal(200)
    expect(headers.get('content-type')).to.equal('text/event-stream')
    expect(events.every(({ event, data: json }) => JSON.parse(json).type === event)).to.equal(true)
    const types = events.map(({ event }) => event).filter((type, at, all) => type !== all[at - 1])
    expect(types).to.deep.equal([
      'message_start',
      'ping',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(data.map(event => event.delta?.text ?? '').join('')).to.equal('You said: hello')
    expect(data.at(-2)).to.deep.include({ delta: { stop_reason: 'end_turn', stop_sequence: null } })
    expect(data.at(-2).usage).to.include({ input_tokens: 5, output_tokens: 5 })
  })

  it('says why an answer ended', async () => {
    await using api = await serveApi()
    const ended = async (body: object) => {
      const { body: message } = await api.ask({ messages: [user('one two three four five')], ...body })
      const { data } = await api.stream({ messages: [user('one two three four five')], ...body })
      expect(data.at(-2).delta).to.deep.equal({ stop_reason: message.stop_reason, stop_sequence: message.stop_sequence })
      return [message.stop_reason, message.stop_sequence]
    }
    expect(await ended({ max_tokens: 3 })).to.deep.equal(['max_tokens', null])
    expect(await ended({ stop_sequences: ['three'] })).to.deep.equal(['stop_sequence', 'three'])
    const tools = { tools: [WEATHER], messages: [user('/tool weather {"city":"Ulm"}')] }
    expect(await ended(tools)).to.deep.equal(['tool_use', null])
  })

  it('passes tool calls to the client, and their results to the model', async () => {
    await using api = await serveApi()
    const question = user('/tool weather {"city":"Ulm"}\n/tool weather {"city":"Bern"}')
    const { body } = await api.ask({ tools: [WEATHER], messages: [question] })
    const calls = body.content.filter(({ type }: { type: string }) => type === 'tool_use')
    expect(calls.map(({ name, input }: { name: string; input: object }) => [name, input])).to.deep.equal([
      ['weather', { city: 'Ulm' }],
      ['weather', { city: 'Bern' }],
    ])
    const results = [
      { type: 'tool_result', tool_use_id: calls[0].id, content: 'sunny' },
      { type: 'tool_result', tool_use_id: calls[1].id, content: [{ type: 'text', text: 'no wind' }], is_error: true },
      { type: 'text', text: 'well?' },
    ]
    const answer = await api.ask({ tools: [WEATHER], messages: [question, assistant(body.content), user(results)] })
    expect(answer.status, answer.text).to.equal(200)
    const given = await api.ask({
      tools: [WEATHER],
      messages: [question, assistant(body.content), user(results.slice(0, 2))],
    })
    expect(given.body.content[0].text).to.contain('weather answered: sunny\nweather failed: no wind')
  })

  it('streams the arguments of a tool call', async () => {
    await using api = await serveApi()
    const { data } = await api.stream({ tools: [WEATHER], messages: [user('/tool weather {"city":"Ulm"}')] })
    const start = data.find(({ type }) => type === 'content_block_start')
    expect(start.content_block).to.deep.include({ type: 'tool_use', name: 'weather', input: {} })
    expect(JSON.parse(data.map(event => event.delta?.partial_json ?? '').join(''))).to.deep.equal({ city: 'Ulm' })
  })

  it('obeys tool_choice', async () => {
    await using api = await serveApi()
    const chosen = async (tool_choice: object) =>
      (await api.ask({ tools: [WEATHER, { ...WEATHER, name: 'time' }], tool_choice, messages: [user('hello')] })).body.content
    expect(await chosen({ type: 'tool', name: 'time' })).to.satisfy((content: { name?: string }[]) =>
      content.some(({ name }) => name === 'time')
    )
    expect(await chosen({ type: 'any' })).to.satisfy((content: { type: string }[]) =>
      content.some(({ type }) => type === 'tool_use')
    )
    expect(await chosen({ type: 'none' })).to.deep.equal([{ type: 'text', text: 'You said: hello' }])
  })

  it('shows reasoning only to clients that ask for it', async () => {
    await using api = await serveApi()
    const ask = (thinking: object | undefined) =>
      api.ask({ max_tokens: 2000, messages: [user('why?')], ...(thinking && { thinking }) })
    const types = async (thinking?: object) => (await ask(thinking)).body.content.map(({ type }: { type: string }) => type)
    expect(await types({ type: 'enabled', budget_tokens: 1024 })).to.deep.equal(['thinking', 'text'])
    expect(await types({ type: 'adaptive' })).to.deep.equal(['thinking', 'text'])
    expect(await types({ type: 'disabled' })).to.deep.equal(['text'])
    expect(await types()).to.deep.equal(['text'])
    const { body } = await ask({ type: 'adaptive', display: 'omitted' })
    expect(body.content[0]).to.deep.include({ type: 'thinking', thinking: '' })
    expect(body.content[0].signature).to.match(/^svc1\./)
  })

  it('answers with JSON of a schema', async () => {
    await using api = await serveApi()
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false }
    const { body } = await api.ask({ messages: [user('hi')], output_config: { format: { type: 'json_schema', schema } } })
    expect(JSON.parse(body.content[0].text)).to.have.property('n')
  })

  it('counts tokens', async () => {
    await using api = await serveApi()
    const count = async (messages: object[]) => {
      const response = await api.post('/v1/messages/count_tokens?beta=true', { model: 'local/local-1', messages })
      expect(response.status).to.equal(200)
      return ((await response.json()) as { input_tokens: number }).input_tokens
    }
    expect(await count([user('hello')])).to.equal(5)
    expect(await count([user('hello'), assistant('hi'), user('how are you?')])).to.be.greaterThan(5)
  })

  it('shows the reasoning of agents, and lists what their model does not get', async () => {
    await using api = await serveApi({ profiles: { own: {} } })
    const order = { model: 'profile:own', max_tokens: 2000, messages: [user('why?')], thinking: { type: 'adaptive' } }
    const { body } = await api.ask(order)
    expect(body.content.map(({ type }: { type: string }) => type)).to.deep.equal(['thinking', 'text'])
    const { data } = await api.stream(order)
    const thought = data.map(event => event.delta?.thinking ?? '').join('')
    expect(thought).to.equal(body.content[0].thinking).and.not.equal('')
    const hidden = await api.ask({ ...order, thinking: undefined })
    expect(hidden.body.content.map(({ type }: { type: string }) => type)).to.deep.equal(['text'])

    const spent = { type: 'usage', usage: { input: 9, output: 5, cached: 2, cacheWrite: 4, reasoning: 3 } } as const
    const plain = scripted([[{ type: 'text', text: 'yes' }, spent, STOP]], { supports: [] })
    await using other = await serveApi({
      give: [item(Providers, 'plain', plain)],
      profiles: { own: { provider: 'plain', model: 'm', tools: [] } },
    })
    const { headers, body: answer } = await other.ask({ ...order, max_tokens: 20_000, context_management: {} })
    expect(answer.usage).to.include({ cache_read_input_tokens: 2, cache_creation_input_tokens: 4, output_tokens: 5 })
    expect(headers.get('x-svc-dropped')!.split(', ').toSorted()).to.deep.equal(['context_management', 'max_tokens', 'thinking'])
  })

  it('calls agents: their tools run inside, and the client runs its own', async () => {
    const two = scripted([
      [{ type: 'tool_call', id: 'c1', tool: 'current_time', arguments: {} }, CALLS],
      [{ type: 'tool_call', id: 'c2', tool: 'weather', arguments: { city: 'Ulm' } }, CALLS],
      [{ type: 'text', text: 'sunny at noon' }, USAGE, STOP],
    ])
    await using api = await serveApi({
      give: [item(Providers, 'two', two)],
      profiles: { clerk: { provider: 'two', model: 'm', tools: ['current_time'] } },
    })
    const question = user('weather?')
    const order = {
      model: 'profile:clerk',
      max_tokens: 32_000,
      thinking: { type: 'adaptive' },
      tools: [WEATHER],
      messages: [question],
    }
    const first = await api.stream(order)
    // the limit of the model counts
    expect(two.requests[0]).to.include({ maxTokens: 10_000 })
    const starts = first.data.filter(({ type }) => type === 'content_block_start').map(event => event.content_block)
    expect(starts.map(({ type, name }) => [type, name])).to.deep.equal([['tool_use', 'weather']])
    const call = { ...starts[0], input: { city: 'Ulm' } }
    const result = { type: 'tool_result', tool_use_id: call.id, content: 'sunny' }
    const last = await api.ask({
      model: 'profile:clerk',
      tools: [WEATHER],
      messages: [question, assistant([call]), user([result])],
    })
    expect(last.body.content).to.deep.equal([{ type: 'text', text: 'sunny at noon' }])
    expect(two.requests[2]).to.include({ maxTokens: 1000 })
    expect(two.requests[2]!.messages.filter(({ role }) => role === 'tool')).to.have.length(2)
  })
})
