import type { ConfigTree } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import { expect } from 'chai'
import { asks, offered } from './support/requests.ts'
import { ask, failing, openRig } from './support/rig.ts'
import { completion } from './support/whole.ts'
import { DONE, finish, says } from './support/wire.ts'

const GATHERED = asks('any', { gathered: true, tools: offered('weather') })
const shown = (events: readonly ModelEvent[]) =>
  events.map(event => {
    if (event.type === 'tool_call') return `${event.id} ${event.tool}(${event.invalid ?? JSON.stringify(event.arguments)})`
    if (event.type === 'finish') return `<${event.reason}>`
    return event.type === 'usage' ? event.usage : `${event.type}:${'text' in event ? event.text : JSON.stringify(event)}`
  })
const rigOf = (body: unknown, entry: ConfigTree = {}) => openRig(entry, (_, reply) => reply.json(200, body))
const eventsOf = async (body: unknown, entry: ConfigTree = {}) => {
  await using rig = await rigOf(body, entry)
  return await ask(rig.provider, GATHERED)
}
const wanted = (id: unknown, name: unknown, args: unknown) => ({ id, type: 'function', function: { name, arguments: args } })
const USAGE = { input: 12, output: 7, cached: 5, reasoning: 3 }

describe('an answer of provider-openai that is not streamed', () => {
  it('is asked for as one JSON', async () => {
    await using rig = await openRig()
    await ask(rig.provider, asks('plain', { gathered: true }))
    const [{ body, headers }] = rig.upstream.received as [(typeof rig.upstream.received)[0]]
    expect(body).to.deep.equal({ model: 'plain', messages: [{ role: 'user', content: 'What is it?' }], stream: false })
    expect(headers.accept).to.equal('application/json')
  })

  it('has all of the message: thoughts, text, calls each with an id of its own, and usage', async () => {
    const tool_calls = [
      wanted('a', 'weather', '{"city": "Ulm"}'),
      { ...wanted('a', 'weather', '{"city": '), index: 0 },
      wanted(null, 'weather', { city: 'Bern' }),
      wanted('d', 'weather', ''),
    ]
    const events = shown(await eventsOf(completion({ reasoning: 'Hm', content: 'Hi', tool_calls }, 'tool_calls')))
    expect(events.slice(0, 3)).to.deep.equal(['reasoning:Hm', 'text:Hi', 'a weather({"city":"Ulm"})'])
    expect(events[3]).to.match(/^call_\w{24} weather\(\{"city": \)$/)
    expect(events[4]).to.match(/^call_\w{24} weather\(\{"city":"Bern"\}\)$/)
    expect(events.slice(5)).to.deep.equal(['d weather({})', USAGE, '<tool_calls>'])
  })

  it('has its thoughts among its content, or in blocks to be given back', async () => {
    const pieces = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
      { type: 'text', text: 'Hi' },
    ]
    expect(shown(await eventsOf(completion({ content: pieces }))).slice(0, 2)).to.deep.equal(['reasoning:Hm', 'text:Hi'])
    const reasoning_details = [{ type: 'reasoning.encrypted', data: 'x', id: 'r', index: 0 }]
    const events = await eventsOf(completion({ content: 'Hi', reasoning_details }), { preset: 'openrouter' })
    expect(events.at(-1)).to.deep.equal({ type: 'finish', reason: 'stop', providerData: { reasoning_details } })
  })

  it('that refuses is text, and ends as filtered; calls of one that was cut are none', async () => {
    expect(shown(await eventsOf(completion({ refusal: 'I will not' })))).to.deep.equal([
      'text:I will not',
      USAGE,
      '<content_filter>',
    ])
    const cut = completion({ content: 'Hi', tool_calls: [wanted('a', 'weather', '{"ci')] }, 'length')
    expect(shown(await eventsOf(cut))).to.deep.equal(['text:Hi', USAGE, '<length>'])
  })

  it('may come as a stream all the same, or as a JSON without its content type', async () => {
    await using streaming = await openRig({}, (_, reply) => reply.end(says('Hel') + says('lo') + finish('stop') + DONE))
    expect(shown(await ask(streaming.provider, GATHERED))).to.deep.equal(['text:Hel', 'text:lo', '<stop>'])
    const body = JSON.stringify({ ...completion({ content: 'Hi' }), error: null })
    await using plain = await openRig({}, (_, reply) => reply.raw(200, 'text/plain', body))
    expect(shown(await ask(plain.provider, GATHERED))).to.deep.equal(['text:Hi', USAGE, '<stop>'])
  })

  for (const [what, body] of [
    ['of no form', {}],
    ['a list', [completion({ content: 'Hi' })]],
    ['a word', 'hello'],
    ['nothing', null],
    ['without a choice', { ...completion({}), choices: [] }],
    ['without a message', { ...completion({}), choices: [{ index: 0, finish_reason: 'stop' }] }],
    ['with content that is no text', completion({ content: 5 })],
    ['with calls that are no list', completion({ tool_calls: {} })],
    ['with a call that names no tool', completion({ tool_calls: [wanted('a', 5, '{}')] }, 'tool_calls')],
    ['without a reason', completion({ content: 'Hi' }, null)],
  ] as const)
    it(`fails as network where the JSON is ${what}`, async () => {
      expect((await failing(eventsOf(body))).details).to.deep.equal({ kind: 'network', retryable: true })
    })

  it('fails as what an error inside it says', async () => {
    const error = { message: 'no credits', code: 402 }
    expect((await failing(eventsOf({ error }))).details).to.include({ kind: 'authentication' })
    expect((await failing(eventsOf(completion({ content: 'a' }, 'error')))).details).to.include({ kind: 'overloaded' })
  })
})
