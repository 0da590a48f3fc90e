// Not a unit test: starts servers.
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { serveStrangers, type Stranger } from '../support/stranger.ts'

/** A third-party plugin that calls models by itself, in a process of its own. */
const CALLER: Stranger = {
  name: 'svc-plugin-caller',
  svc: {
    kind: 'surface',
    contributes: { routes: { caller: { method: 'POST', path: '/caller', scope: 'chat' } } },
    permissions: { services: ['model_calls'] },
  },
  code: `import { definePlugin } from '@svc/core'
import { ModelCalls, Routes } from '@svc/core/contracts'

export default definePlugin({
  requires: { calls: ModelCalls },
  setup(scope, { calls }) {
    const messages = text => [{ role: 'user', parts: [{ type: 'text', text }] }]
    const doing = {
      async reply({ text }, ctx) {
        const { message, usage, provider } = await calls.reply({ request: { messages: messages(text) } }, ctx)
        return { text: message.parts.map(part => part.text).join(''), usage, provider }
      },
      async stream({ text }, ctx) {
        const types = []
        for await (const event of calls.stream({ request: { messages: messages(text) } }, ctx)) types.push(event.type)
        return { types }
      },
      async leave({ text }, ctx) {
        for await (const event of calls.stream({ request: { messages: messages(text) } }, ctx)) if (event.type === 'text') break
        return {}
      },
      embed: async ({ text }, ctx) => {
        const { vectors, provider } = await calls.embed({ request: { input: [text] } }, ctx)
        return { length: vectors[0].length, provider }
      },
      count: async ({ text }, ctx) => ({ count: await calls.countTokens({ request: { messages: messages(text) } }, ctx) }),
      refused: async ({ text }, ctx) => calls.reply({ request: { messages: messages(text), logitBias: { 1: 2 } } }, ctx),
    }
    scope.add(Routes, 'caller', {
      method: 'POST', path: '/caller', summary: 'Calls a model', scope: 'chat',
      body: { type: 'object', properties: { what: { enum: Object.keys(doing) }, text: { type: 'string' } }, required: ['what', 'text'], additionalProperties: false },
      async handle({ body }, ctx) {
        try {
          return { body: await doing[body.what](body, ctx) }
        } catch ({ code, message, details }) {
          return { body: { code, message, details } }
        }
      },
    })
  },
})`,
}

/** A third-party plugin with a wire of its own: the body decides between JSON and a stream, and all errors have its form. */
const WIRE: Stranger = {
  name: 'svc-plugin-wire',
  svc: {
    kind: 'surface',
    contributes: {
      routes: { wire: { method: 'POST', path: '/wire/v1/ask', scope: 'chat' } },
      error_formats: { wire: { path: '/wire' } },
    },
    permissions: { services: ['named_models', 'http'] },
  },
  code: `import { definePlugin } from '@svc/core'
import { ErrorFormats, Http, NamedModels, Routes } from '@svc/core/contracts'

const codeOf = ({ record }) => ({ failed: record.error_code })

export default definePlugin({
  requires: { models: NamedModels, http: Http },
  setup(scope, { models, http }) {
    const explained = async ({ code = 'INTERNAL_ERROR', message, details = {} }, ctx) => http.explain({ code, message, details }, ctx)
    scope.add(ErrorFormats, 'wire', { path: '/wire', format: async failed => ({ body: codeOf(failed), headers: { 'x-should-retry': 'false' } }) })
    scope.add(Routes, 'wire', {
      method: 'POST', path: '/wire/v1/ask', summary: 'Asks a model', scope: 'chat', bodyLimit: 33554432, streams: 'text/event-stream',
      body: { type: 'object', required: ['model', 'text'], properties: { model: { type: 'string' }, text: { type: 'string' }, stream: { type: 'boolean' } } },
      async *stream({ body: { model, text, stream } }, ctx) {
        const messages = [{ role: 'user', parts: [{ type: 'text', text }] }]
        let said = ''
        let isOpen = false
        try {
          for await (const event of models.stream({ name: model, request: { messages } }, ctx)) {
            if (stream && !isOpen) { isOpen = true; yield { headers: { 'x-svc-dropped': 'nothing' } } }
            if (event.type === 'text' && stream) yield 'data: ' + JSON.stringify(event.text) + '\\n\\n'
            if (event.type === 'text') said += event.text
          }
          if (stream) yield 'data: "end"\\n\\n'
          else yield { headers: { 'openai-version': '1' }, body: { said } }
        } catch (error) {
          const { status, record } = await explained(error, ctx)
          if (isOpen) yield 'data: ' + JSON.stringify(codeOf({ record })) + '\\n\\n'
          else yield { status, body: codeOf({ record }) }
        }
      },
    })
  },
})`,
}

const BESIDE = [
  'rest',
  'chat',
  'conversations',
  'selection',
  'modes',
  'model-calls',
  'chat-policy',
  'cache',
  'chat-cache',
  'models',
  'named-models',
  'provider-local',
]

describeWith('bubblewrap', 'model calls of an isolated plugin', function () {
  this.timeout(60_000)
  let service: Awaited<ReturnType<typeof serveStrangers>>
  before(async () => {
    service = await serveStrangers([CALLER, WIRE], { beside: BESIDE })
  })
  after(() => service[Symbol.asyncDispose]())

  const ask = async (what: string, text = 'hello') => (await post(`${service.url}/caller`, { what, text })).body

  it('answer, stream, embed and count', async () => {
    expect(await ask('reply')).to.deep.include({ text: 'You said: hello', provider: 'local' })
    const { types } = (await ask('stream')) as { types: string[] }
    expect([types[0], types.at(-1)]).to.deep.equal(['start', 'end'])
    expect(types).to.include.members(['text', 'usage', 'finish'])
    expect(await ask('embed')).to.include({ provider: 'local' })
    expect((await ask('count')).count).to.be.a('number')
    await ask('leave', 'a b c d e f')
  })

  it('leave no conversation', async () => {
    const list = async () => {
      const response = await fetch(`${service.url}/api/v1/conversations`)
      return ((await response.json()) as { conversations: unknown[] }).conversations
    }
    for (const what of ['reply', 'stream', 'leave']) await ask(what, 'hello')
    expect(await list()).to.deep.equal([])
    // a chat leaves one
    await post(`${service.url}/api/v1/chat`, { message: 'hello' })
    expect(await list()).to.have.length(1)
  })

  it('fail with codes and details of svc', async () => {
    expect(await ask('refused')).to.deep.include({ code: 'INVALID_VALUE' })
    expect(await ask('reply', '/fail rate_limited')).to.include({ code: 'MODEL_FAILED' })
  })

  const askWire = async (body: object, path = '/wire/v1/ask') => {
    const response = await fetch(`${service.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  it('are served by a route whose body decides between JSON and a stream', async () => {
    const asked = { model: 'local/local-1', text: 'hello' }
    const whole = await askWire(asked)
    expect([whole.status, JSON.parse(whole.text)]).to.deep.equal([200, { said: 'You said: hello' }])
    expect(whole.headers.get('content-type')).to.match(/^application\/json/)
    const streamed = await askWire({ ...asked, stream: true })
    expect(streamed.headers.get('content-type')).to.match(/^text\/event-stream/)
    expect([streamed.status, streamed.headers.get('x-svc-dropped')]).to.deep.equal([200, 'nothing'])
    const frames = streamed.text.split('\n\n').filter(part => part.startsWith('data: '))
    const words = frames.map(part => JSON.parse(part.slice(6)) as string)
    expect([words.slice(0, -1).join(''), words.at(-1)]).to.deep.equal(['You said: hello', 'end'])
  })

  it('fail in the form of that route, also where the server or a model refuses, and 2 MiB are not too much', async () => {
    const failed = async (body: object, path?: string) => {
      const { status, headers, text } = await askWire(body, path)
      return [status, (JSON.parse(text) as { failed: string }).failed, headers.get('x-should-retry')]
    }
    const asked = { model: 'local/local-1', text: 'hello' }
    expect(await failed({ ...asked, model: 'missing/model' })).to.deep.equal([404, 'MODEL_NOT_FOUND', null])
    expect(await failed({ ...asked, text: '/fail rate_limited' })).to.deep.equal([503, 'PROVIDER_ERROR', null])
    expect(await failed({ model: 1 })).to.deep.equal([400, 'MISSING_FIELD', 'false'])
    expect(await failed(asked, '/wire/v1/other')).to.deep.equal([404, 'NOT_FOUND', 'false'])
    expect((await askWire({ ...asked, text: 'a'.repeat(2 * 1024 * 1024) })).status).to.equal(200)
  })
})
