import type { ConfigTree } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import { expect } from 'chai'
import { asks, offered } from './support/requests.ts'
import { ask, failing, openRig } from './support/rig.ts'
import { completion } from './support/whole.ts'
import { call, chunk, DONE, finish, says, usage } from './support/wire.ts'

/** The events of an answer that is this stream. */
async function eventsOf(stream: string, entry: ConfigTree = {}): Promise<ModelEvent[]> {
  await using rig = await openRig(entry, (_, reply) => reply.end(stream))
  return await ask(rig.provider, asks('any', { tools: offered('weather', 'news') }))
}
const shown = (events: readonly ModelEvent[]) =>
  events.map(event => {
    if (event.type === 'tool_call') return `${event.tool}(${event.invalid ?? JSON.stringify(event.arguments)})`
    if (event.type === 'finish') return `<${event.reason}>`
    return event.type === 'usage'
      ? `${event.usage.input}+${event.usage.output}`
      : `${event.type}:${'text' in event ? event.text : JSON.stringify(event)}`
  })

describe('an answer, as other servers write it', () => {
  it('may begin without a choice, as Azure does', async () => {
    const first = chunk({}, { choices: [], prompt_filter_results: [] })
    expect(shown(await eventsOf(first + says('Hi') + finish('stop') + DONE))).to.deep.equal(['text:Hi', '<stop>'])
  })

  it('has the same text where chunks differ only in their text, whatever it contains', async () => {
    const texts = [
      'a',
      'b',
      'content',
      '',
      '"',
      'c\\',
      '\n\u0000\u2028',
      '\ud83d\ude00',
      '\ud83d',
      'd","finish_reason":"length',
      '"}}]}',
    ]
    for (const first of [...texts, 'delta', 'choices']) {
      const stream = [first, ...texts, first].map(content => chunk({ content })).join('')
      const events = await eventsOf(chunk({ role: 'assistant', content: 'now' }) + stream + finish('stop') + DONE)
      const wanted = ['now', first, ...texts, first].filter(text => text !== '')
      expect(events.flatMap(event => (event.type === 'text' ? event.text : []))).to.deep.equal(wanted)
      expect(events.at(-1)).to.deep.equal({ type: 'finish', reason: 'stop' })
    }
  })

  it('is read completely where a chunk has more than text after many that have not', async () => {
    const words = ['a', 'b', 'c'].map(says).join('')
    const more =
      chunk({ content: 'd', reasoning_content: 'hm' }) +
      chunk({ content: 'e' }, { usage: { prompt_tokens: 3, completion_tokens: 1 } })
    const events = await eventsOf(
      words + more + says('f') + call(0, { id: 'a', name: 'news', arguments: '{}' }) + finish('tool_calls') + DONE
    )
    expect(shown(events)).to.deep.equal([
      'text:a',
      'text:b',
      'text:c',
      'reasoning:hm',
      'text:d',
      'text:e',
      'text:f',
      'news({})',
      '3+1',
      '<tool_calls>',
    ])
  })

  it('fails where a chunk that begins and ends as the others is not valid JSON', async () => {
    const broken = chunk({ content: 'XX' })
    for (const text of ['"', '\\', '\\u12', '\t', 'a"b']) {
      const stream = says('a') + says('b') + broken.replace('XX', () => text) + finish('stop') + DONE
      expect((await failing(eventsOf(stream))).details, text).to.include({ kind: 'network' })
    }
  })

  it('may end without [DONE], or without a reason', async () => {
    expect(shown(await eventsOf(says('Hi') + finish('stop')))).to.deep.equal(['text:Hi', '<stop>'])
    expect(shown(await eventsOf(says('Hi') + DONE))).to.deep.equal(['text:Hi', '<stop>'])
  })

  it('may tell its usage with each chunk, in a place of its own, or in another form', async () => {
    const running = [1, 2, 3].map(n => chunk({ content: `${n}` }, { usage: { prompt_tokens: 9, completion_tokens: n } })).join('')
    expect(shown(await eventsOf(running + finish('stop') + DONE)).at(-2)).to.equal('9+3')
    const groq = chunk(
      {},
      { choices: [{ delta: {}, finish_reason: 'stop' }], x_groq: { usage: { prompt_tokens: 4, completion_tokens: 2 } } }
    )
    expect(shown(await eventsOf(says('Hi') + groq + DONE)).at(-2)).to.equal('4+2')
    const deepseek = await eventsOf(
      says('Hi') + finish('stop') + usage({ prompt_tokens: 4, completion_tokens: 2, prompt_cache_hit_tokens: 9 }) + DONE
    )
    expect(deepseek.find(event => event.type === 'usage')?.usage).to.deep.equal({ input: 4, output: 2, cached: 4 })
  })

  it('may send whole calls: without an index, all with the same one, as objects, and end with stop', async () => {
    const both = ['weather({"city":"Ulm"})', 'news({})']
    const whole = (index: number | undefined, id: string | undefined) =>
      call(index, { ...(id ? { id: `${id}1` } : {}), name: 'weather', arguments: { city: 'Ulm' } }) +
      call(index, { ...(id ? { id: `${id}2` } : {}), name: 'news', arguments: '' })
    for (const stream of [whole(undefined, 'a'), whole(undefined, undefined), whole(0, 'a')]) {
      const events = await eventsOf(stream + finish('stop') + DONE)
      expect(shown(events)).to.deep.equal([...both, '<tool_calls>'])
      const ids = events.flatMap(event => (event.type === 'tool_call' ? event.id : []))
      expect(new Set(ids).size).to.equal(2)
    }
  })

  it('has no calls where it was cut, for they may not be whole', async () => {
    const cut = call(0, { id: 'a', name: 'weather', arguments: '{"city": "U' }) + finish('length') + DONE
    expect(shown(await eventsOf(says('Hm') + cut))).to.deep.equal(['text:Hm', '<length>'])
  })

  it('may hold its thoughts among its content', async () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
      { type: 'text', text: 'Hi' },
    ]
    expect(shown(await eventsOf(chunk({ content }) + finish('stop') + DONE))).to.deep.equal(['reasoning:Hm', 'text:Hi', '<stop>'])
  })

  it('tells what is both in the old and the new field once', async () => {
    expect(
      shown(await eventsOf(chunk({ reasoning: 'Hm', reasoning_content: 'Hm' }) + says('Hi') + finish('stop')))
    ).to.deep.equal(['reasoning:Hm', 'text:Hi', '<stop>'])
  })

  it('keeps blocks of reasoning whole, to be given back', async () => {
    const details = (reasoning_details: object[]) => chunk({ reasoning_details })
    const stream =
      details([{ type: 'reasoning.text', text: 'Let ', index: 0, format: 'x' }]) +
      details([{ type: 'reasoning.text', text: 'me', index: 0, signature: 's' }]) +
      details([{ type: 'reasoning.encrypted', data: 'abc', index: 1, id: 'r1' }])
    const events = await eventsOf(stream + says('Hi') + finish('stop') + DONE, { preset: 'openrouter' })
    expect(events.at(-1)).to.deep.equal({
      type: 'finish',
      reason: 'stop',
      providerData: {
        reasoning_details: [
          { type: 'reasoning.text', text: 'Let me', index: 0, format: 'x', signature: 's' },
          { type: 'reasoning.encrypted', data: 'abc', index: 1, id: 'r1' },
        ],
      },
    })
  })

  it('that refuses is text, and ends as filtered', async () => {
    expect(shown(await eventsOf(chunk({ refusal: 'I will not' }) + finish('stop') + DONE))).to.deep.equal([
      'text:I will not',
      '<content_filter>',
    ])
  })

  it('may come whole although a stream was asked for', async () => {
    const calls = [{ id: 'a', function: { name: 'weather', arguments: '{}' } }]
    const whole = completion({ content: 'Hi', tool_calls: calls }, 'tool_calls', { prompt_tokens: 1, completion_tokens: 2 })
    await using rig = await openRig({}, (_, reply) => reply.json(200, whole))
    expect(shown(await ask(rig.provider, asks('any')))).to.deep.equal(['text:Hi', 'weather({})', '1+2', '<tool_calls>'])
  })
})

describe('a failure, as other servers write it', () => {
  for (const [what, status, body, details] of [
    [
      'a filter',
      400,
      { error: { code: 'content_filter', innererror: { code: 'ResponsibleAIPolicyViolation' } } },
      { kind: 'content_refused', retryable: false },
    ],
    [
      'moderation',
      403,
      { error: { code: 403, message: 'The input was flagged' } },
      { kind: 'content_refused', retryable: false },
    ],
    [
      'a quota that is spent',
      429,
      { error: { code: 'insufficient_quota', message: 'You exceeded your current quota' } },
      { kind: 'rate_limited', retryable: false },
    ],
    [
      'a list of faults',
      422,
      { object: 'error', message: { detail: [{ msg: 'Extra inputs are not permitted' }] } },
      { kind: 'bad_request', retryable: false },
    ],
    ['a plain text', 400, { error: 'model not found' }, { kind: 'bad_request', retryable: false }],
    [
      'a server out of context',
      400,
      { error: { code: 400, type: 'exceed_context_size_error', message: 'the request exceeds the available context size' } },
      { kind: 'context_too_long', retryable: false },
    ],
    ['no credit', 402, { error: { message: 'Insufficient Balance' } }, { kind: 'authentication', retryable: false }],
    ['a null', 500, null, { kind: 'overloaded', retryable: true }],
  ] as const)
    it(`is reported: ${what}`, async () => {
      await using rig = await openRig({}, (_, reply) => reply.json(status, body))
      const error = await failing(ask(rig.provider, asks('any')))
      expect(error.details).to.deep.equal({ upstreamStatus: status, ...details })
    })

  for (const [what, frame, kind] of [
    ['with a status', { error: { code: 429, message: 'slow down' } }, 'rate_limited'],
    ['with a type', { error: { type: 'server_error', message: 'oops' } }, 'overloaded'],
    ['with a code', { error: { code: 'context_length_exceeded' } }, 'context_too_long'],
    ['as plain text', { error: 'out of memory' }, 'overloaded'],
  ] as const)
    it(`is reported inside a stream ${what}`, async () => {
      await using rig = await openRig({}, (_, reply) => reply.end(`data: ${JSON.stringify(frame)}\n\n`))
      expect((await failing(ask(rig.provider, asks('any')))).details).to.include({ kind })
    })

  it('is reported where the model broke off', async () => {
    await using rig = await openRig({}, (_, reply) => reply.end(says('Hm') + finish('insufficient_system_resource') + DONE))
    expect((await failing(ask(rig.provider, asks('any')))).details).to.deep.equal({ kind: 'overloaded', retryable: true })
  })

  it('is reported where a call names no tool', async () => {
    await using rig = await openRig({}, (_, reply) =>
      reply.end(call(0, { id: 'a', arguments: '{}' }) + finish('tool_calls') + DONE)
    )
    expect((await failing(ask(rig.provider, asks('any')))).details).to.include({ kind: 'network' })
  })
})
