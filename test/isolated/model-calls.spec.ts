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
  'provider-local',
]

describeWith('bubblewrap', 'model calls of an isolated plugin', function () {
  this.timeout(60_000)
  let service: Awaited<ReturnType<typeof serveStrangers>>
  before(async () => {
    service = await serveStrangers([CALLER], { beside: BESIDE })
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

  it('fail with codes and details of svc', async () => {
    expect(await ask('refused')).to.deep.include({ code: 'INVALID_VALUE' })
    expect(await ask('reply', '/fail rate_limited')).to.include({ code: 'MODEL_FAILED' })
  })
})
