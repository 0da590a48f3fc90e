import { once } from 'node:events'
import { connect } from 'node:net'
import { type ModelEvent, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { assistant, type Body, serveApi, user } from './support/api.ts'
import { scripted, STOP, USAGE } from './support/upstreams.ts'

const NO_IMAGE = Buffer.from('this is no image').toString('base64')
const image = (media_type: string, data: string) => user([{ type: 'image', source: { type: 'base64', media_type, data } }])
const call = (id: string) => assistant([{ type: 'tool_use', id, name: 'weather', input: {} }])
const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'x' })
const TOOL = { name: 'weather', input_schema: { type: 'object' } }

/** Bodies that are refused, and what the error says. */
const REFUSED: readonly [Body, string][] = [
  [{ max_tokens: undefined }, 'max_tokens is required'],
  [{ max_tokens: '5' }, 'max_tokens must be an integer'],
  [{ max_tokens: -1 }, 'max_tokens must be an integer'],
  [{ model: '' }, 'model must have 1 to'],
  [{ model: 7 }, 'model must be a string'],
  [{ messages: 'x' }, 'messages must be a list'],
  [{ messages: [] }, 'messages must have at least one'],
  [{ messages: [null] }, 'messages.0 must be an object'],
  [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages.0.role must be'],
  [{ messages: [user(5)] }, 'messages.0.content must be a list'],
  [{ messages: [user([5])] }, 'messages.0.content.0 must be an object'],
  [{ messages: [user([{ type: 'text' }])] }, 'messages.0.content.0.text must be a string'],
  [{ messages: [user([{ type: 'text', text: 'x', cache_control: { type: 'x' } }])] }, 'messages.0.content.0.cache_control.type'],
  [{ messages: [user([{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '2h' } }])] }, 'cache_control.ttl'],
  [{ messages: [user([result('t1')])] }, 'messages.0.content.0.tool_use_id must be the id of an earlier tool_use'],
  [{ messages: [user('x'), call('t1'), user([result('t2')])] }, 'messages.2.content.0.tool_use_id must be the id'],
  [{ messages: [user('x'), call('t1'), user([result('t1'), result('t1')])] }, 'messages.2.content.1.tool_use_id has a result'],
  [{ messages: [user('x'), call('t1'), call('t1')] }, 'messages.2.content.0.id must be unique'],
  [{ messages: [image('image/png', NO_IMAGE)] }, 'messages.0.content.0.source.data is not an image of the type image/png'],
  [{ messages: [image('image/png', '%%%')] }, 'messages.0.content.0.source.data must be base64'],
  [{ messages: [image('image/svg+xml', NO_IMAGE)] }, 'messages.0.content.0.source.media_type must be one of'],
  [{ messages: [user([{ type: 'image', source: { type: 'url', url: 'file:///etc/passwd' } }])] }, 'source.url must be an http'],
  [{ system: 5 }, 'system must be a list'],
  [{ system: [{ type: 'image' }] }, 'system.0.type must be "text"'],
  [{ stream: 'yes' }, 'stream must be true or false'],
  [{ temperature: 1.5 }, 'temperature must be a number from 0 to 1'],
  [{ top_p: 0 }, 'top_p must be above 0'],
  [{ top_k: -1 }, 'top_k must be an integer'],
  [{ stop_sequences: 'x' }, 'stop_sequences must be a list'],
  [{ stop_sequences: [''] }, 'stop_sequences.0 must have 1 to'],
  [{ stop_sequences: ['1', '2', '3', '4', '5'] }, 'stop_sequences must have at most 4'],
  [{ thinking: { type: 'enabled', budget_tokens: 10 } }, 'thinking.budget_tokens must be an integer of at least 1024'],
  [{ thinking: { type: 'enabled', budget_tokens: 5000 } }, 'thinking.budget_tokens must be less than max_tokens'],
  [{ thinking: { type: 'much' } }, 'thinking.type must be'],
  [{ output_config: { effort: 'much' } }, 'output_config.effort must be one of low, medium, high, xhigh, max'],
  [{ output_config: { format: { type: 'xml' } } }, 'output_config.format.type must be'],
  [{ tools: [{}] }, 'tools.0.name must be a string'],
  [{ tools: [{ ...TOOL, name: 'a b' }] }, 'tools.0.name must have'],
  [{ tools: [TOOL, TOOL] }, 'tools.1.name must be unique'],
  [{ tools: [{ name: 'x', input_schema: { type: 'string' } }] }, 'tools.0.input_schema.type must be "object"'],
  [{ tools: [TOOL], tool_choice: { type: 'tool', name: 'other' } }, 'tool_choice.name must be one of the tools'],
  [{ tool_choice: { type: 'any' } }, 'tool_choice is "any", but the request has no tools'],
  [{ tools: [TOOL], tool_choice: { type: 'x' } }, 'tool_choice.type must be'],
  [{ metadata: { user_id: '' } }, 'metadata.user_id must have'],
]

describe('a request that is not valid', () => {
  it('is refused with 400, in the form of the API, by the name of the field', async () => {
    await using api = await serveApi()
    for (const [body, message] of REFUSED) {
      const { status, body: answer, headers } = await api.ask({ messages: [user('hi')], ...body })
      expect([status, answer.type, answer.error?.type], message).to.deep.equal([400, 'error', 'invalid_request_error'])
      expect(answer.error.message).to.contain(message)
      expect(answer.request_id).to.equal(headers.get('request-id'))
      expect(headers.get('x-should-retry')).to.equal('false')
    }
  })

  it('is refused by the server in the same form', async () => {
    await using api = await serveApi()
    const bad: [string, Record<string, string>, number, string][] = [
      ['{', {}, 400, 'invalid_request_error'],
      ['[]', {}, 400, 'invalid_request_error'],
      ['{}', {}, 400, 'invalid_request_error'],
      ['x', { 'content-type': 'text/plain' }, 415, 'invalid_request_error'],
      [
        `{"model":"local/local-1","max_tokens":5,"messages":${'['.repeat(500)}${']'.repeat(500)}}`,
        {},
        400,
        'invalid_request_error',
      ],
    ]
    for (const [body, headers, status, type] of bad) {
      const response = await api.post('/v1/messages', body, headers)
      const answer = (await response.json()) as { error: { type: string } }
      expect([response.status, answer.error.type], body.slice(0, 40)).to.deep.equal([status, type])
    }
    const get = await fetch(`${api.url}/v1/messages`)
    expect([get.status, ((await get.json()) as { type: string }).type]).to.deep.equal([405, 'error'])
    const unknown = await fetch(`${api.url}/v1/messages/batches`, { method: 'POST' })
    expect([unknown.status, ((await unknown.json()) as { error: { type: string } }).error.type]).to.deep.equal([
      404,
      'not_found_error',
    ])
    const models = await fetch(`${api.url}/v1/nothing`, { headers: { 'anthropic-version': '2023-06-01' } })
    expect(((await models.json()) as { error: { type: string } }).error.type).to.equal('not_found_error')
    const head = await fetch(api.url, { method: 'HEAD' })
    expect(head.status).to.equal(404)
  })

  it('names a model that does not exist', async () => {
    await using api = await serveApi()
    for (const stream of [true, false]) {
      const { status, body } = await api.ask({ model: 'local/nope', messages: [user('hi')], stream })
      expect([status, body.error.type]).to.deep.equal([404, 'not_found_error'])
    }
  })

  it('may have long lists and schemas, which are refused or served in time', async () => {
    await using api = await serveApi()
    const tools = Array.from({ length: 5_000 }, (_, at) => ({ ...TOOL, name: `tool_${at}`, description: 'x'.repeat(100) }))
    const many = await api.ask({ messages: [user('hi')], tools })
    expect([many.status, many.body.error.type], many.text.slice(0, 300)).to.deep.equal([400, 'invalid_request_error'])
    expect(many.body.error.message).to.equal('tools must have at most 1024 tools')
    expect((await api.ask({ messages: [user('hi')], tools: tools.slice(0, 1_025) })).status).to.equal(400)
    expect((await api.ask({ messages: [user('hi')], tools: tools.slice(0, 1_024) })).status).to.equal(200)
    let schema: object = { type: 'string' }
    for (let depth = 0; depth < 40; depth++) schema = { type: 'object', properties: { a: schema } }
    const deep = await api.ask({ messages: [user('hi')], tools: [{ name: 'deep', input_schema: schema }] })
    expect(deep.status).to.equal(200)
    const names = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`field_${at}_é\n`, 1]))
    const { status, headers } = await api.ask({ messages: [user('hi')], ...names })
    expect(status).to.equal(200)
    expect(headers.get('x-svc-dropped')!.length).to.be.at.most(1_000)
  })

  it('may be as long as 32 MiB, and no longer', async () => {
    await using api = await serveApi({ give: [item(Providers, 'odd', scripted([[{ type: 'text', text: 'ok' }, USAGE, STOP]]))] })
    const body = (length: number) => {
      const [head, tail] = ['{"model":"odd/m","max_tokens":9,"messages":[{"role":"user","content":"', '"}]}']
      return `${head}${'x'.repeat(length - head!.length - tail!.length)}${tail}`
    }
    const limit = 32 * 1024 * 1024
    const over = await api.post('/v1/messages', body(limit + 1))
    expect([over.status, ((await over.json()) as { error: { type: string } }).error.type]).to.deep.equal([
      413,
      'request_too_large',
    ])
    const exact = await api.post('/v1/messages', body(limit))
    expect(exact.status, await exact.text()).to.equal(200)
  })
})

describe('a client', () => {
  it('that never reads does not make the server collect its answer', async () => {
    let sent = 0
    let left = false
    const endless = {
      ...scripted([[]]),
      async *chat(): AsyncGenerator<ModelEvent, void> {
        try {
          for (; sent < 1_000_000; sent++) yield { type: 'text', text: 'x'.repeat(1_000) }
        } finally {
          left = true
        }
      },
    }
    await using api = await serveApi({ give: [item(Providers, 'odd', endless)], config: { server: { stall_timeout_ms: 500 } } })
    const { port, hostname } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    const body = JSON.stringify({ model: 'odd/m', max_tokens: 9, stream: true, messages: [user('hi')] })
    socket.pause()
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    )
    await new Promise<void>(resolve => {
      const look = setInterval(() => {
        if (!left) return
        clearInterval(look)
        resolve()
      }, 50)
    })
    // the buffers of both sockets, and not the whole answer
    expect(sent).to.be.lessThan(50_000)
    socket.destroy()
  })

  it('gets pings while the model is silent, and a proper status for a failure meanwhile', async () => {
    await using api = await serveApi({
      config: { server: { heartbeat_ms: 50 }, chat: { policy: { attempts: 1, breaker_failures: 0 } } },
    })
    const { events } = await api.stream({ messages: [user('one two\n/pace 200')] })
    expect(events.filter(({ event }) => event === 'ping').length).to.be.greaterThan(2)
    expect(events.at(-1)!.event).to.equal('message_stop')
    const late = await api.stream({ messages: [user('/delay 300\n/fail overloaded')] })
    expect([late.status, late.body.error.type]).to.deep.equal([529, 'overloaded_error'])
  })

  it('gets the head of a stream after a while, pings, and then an error event', async () => {
    await using api = await serveApi({
      config: { server: { heartbeat_ms: 200 }, chat: { policy: { attempts: 1, breaker_failures: 0 } } },
    })
    const { status, events, data } = await api.stream({ messages: [user('/delay 16500\n/fail overloaded')] })
    expect(status).to.equal(200)
    expect(events.length).to.be.greaterThan(3)
    expect(new Set(events.slice(0, -1).map(({ event }) => event))).to.deep.equal(new Set(['ping']))
    expect(data.at(-1)).to.have.nested.property('error.type', 'overloaded_error')
  })

  it('that sends too many requests gets the error of the API', async () => {
    await using api = await serveApi({
      plugins: ['rate-limit'],
      config: { server: { rate_limit: { enabled: true, requests_per_minute: 1 } } },
    })
    await api.ask({ messages: [user('hi')] })
    const { status, headers, body } = await api.ask({ messages: [user('hi')] })
    expect([status, body.error.type, headers.get('x-should-retry')]).to.deep.equal([429, 'rate_limit_error', 'true'])
    expect(Number(headers.get('retry-after'))).to.be.greaterThan(0)
  })

  it('without a credential, or with two different ones, gets the error of the API', async () => {
    process.env.SVC_TEST_API_KEY = 'k'.repeat(40)
    await using api = await serveApi({
      plugins: ['auth-api-key'],
      config: { server: { auth: { enabled: true, api_key_env: 'SVC_TEST_API_KEY' } } },
    })
    const nothing = await api.ask({ messages: [user('hi')] })
    expect([nothing.status, nothing.body.error.type]).to.deep.equal([401, 'authentication_error'])
    const credentials: Record<string, string>[] = [{ 'x-api-key': 'k'.repeat(40) }, { authorization: `Bearer ${'k'.repeat(40)}` }]
    for (const headers of credentials) {
      const { status, text } = await api.ask({ messages: [user('hi')] }, headers)
      expect(status, text).to.equal(200)
    }
    const both = await api.ask({ messages: [user('hi')] }, { 'x-api-key': 'k'.repeat(40), authorization: 'Bearer other' })
    expect([both.status, both.body.error.type]).to.deep.equal([401, 'authentication_error'])
  })
})
