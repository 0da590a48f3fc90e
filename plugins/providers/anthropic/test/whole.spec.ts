import type { ModelRequest } from '@svc/core/contracts'
import { ask, failureOf } from '@svc/testing'
import { expect } from 'chai'
import { offered, openAnthropic, to } from './support/anthropic.ts'
import { ended, openMessagesApi, started, text } from './support/messages-api.ts'
import { message, ctx, words } from './support/whole.ts'

const GATHERED: ModelRequest = to('own', { gathered: true, tools: offered })
const reads = async (body: unknown) => {
  await using upstream = await openMessagesApi({ own: reply => reply.json(200, body) })
  await using opened = await openAnthropic(upstream.url)
  return await ask(opened.provider, GATHERED)
}
const USAGE = { type: 'usage', usage: { input: 10, output: 7, cached: 3, cacheWrite: 2 } }

describe('a message of provider-anthropic that is not streamed', () => {
  it('is asked for as one JSON', async () => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url)
    await ask(opened.provider, to('plain', { gathered: true }))
    expect(upstream.received[0]?.body).to.include({ stream: false })
    expect(upstream.received[0]?.headers.accept).to.equal('application/json')
  })

  it('has all of its blocks in order: signed thoughts, text, calls', async () => {
    const thought = { type: 'thinking', thinking: 'Hm', signature: 'sig-1' }
    const others = [
      { type: 'redacted_thinking', data: 'enc' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
    ]
    const calls = [ctx('a', { city: 'Ulm' }), ctx('b', {}), ctx('c', '{"city": '), ctx('a', ['Ulm'])]
    const events = await reads(message([thought, ...others, words('Hi'), ...calls], 'tool_use'))
    expect(events.slice(0, 7)).to.deep.equal([
      { type: 'reasoning', text: 'Hm' },
      { type: 'reasoning', text: '', providerData: { signature: 'sig-1' } },
      { type: 'reasoning', text: '', providerData: { redacted: 'enc' } },
      { type: 'text', text: 'Hi' },
      { type: 'tool_call', id: 'a', tool: 'weather', arguments: { city: 'Ulm' } },
      { type: 'tool_call', id: 'b', tool: 'weather', arguments: {} },
      { type: 'tool_call', id: 'c', tool: 'weather', arguments: {}, invalid: '{"city": ' },
    ])
    expect(events[7]).to.include({ tool: 'weather', invalid: '["Ulm"]' }).and.not.include({ id: 'a' })
    expect(events.slice(8)).to.deep.equal([USAGE, { type: 'finish', reason: 'tool_calls' }])
  })

  it('may come as a stream all the same', async () => {
    await using upstream = await openMessagesApi({
      own: reply => reply.end(started() + text(0, 'Hel', 'lo') + ended('end_turn')),
    })
    await using opened = await openAnthropic(upstream.url)
    expect((await ask(opened.provider, GATHERED)).slice(0, 2)).to.deep.equal([words('Hel'), words('lo')])
  })

  it('is asked for once more without a temperature that the model refuses', async () => {
    await using upstream = await openMessagesApi({
      own: (reply, body) =>
        'temperature' in body
          ? reply.json(400, { type: 'error', error: { type: 'invalid_request_error', message: '`temperature` may not be set' } })
          : reply.json(200, message([words('Hi')])),
    })
    await using opened = await openAnthropic(upstream.url)
    expect((await ask(opened.provider, { ...GATHERED, temperature: 0.5 }))[0]).to.deep.equal(words('Hi'))
  })

  for (const [what, body] of [
    ['of no form', {}],
    ['a list', [message([words('Hi')])]],
    ['of another type', { ...message([words('Hi')]), type: 'completion' }],
    ['without content', { ...message([]), content: 'Hi' }],
    ['with a block that is none', message([words('Hi'), 'Hi' as never])],
    ['with a call that names no tool', message([{ type: 'tool_use', id: 'a', input: {} }], 'tool_use')],
    ['without a reason', message([words('Hi')], null)],
  ] as const)
    it(`fails as network where the JSON is ${what}`, async () => {
      expect((await failureOf(reads(body))).details).to.deep.equal({ kind: 'network', retryable: true })
    })
})
