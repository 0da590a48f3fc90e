import { setTimeout as sleep } from 'node:timers/promises'
import type { ConfigTree } from '@svc/core'
import type { ModelEvent, ModelMessage } from '@svc/core/contracts'
import { type Answerer, providerKit } from '@svc/testing'
import { expect } from 'chai'
import { asks, offered, REQUESTS, user } from './support/requests.ts'
import { answer, call, event, message, reasoning, response, speakResponses } from './support/responses.ts'
import { ask, failing, KEY, openRig, startPlugin } from './support/rig.ts'

const rigOf = async (entry: ConfigTree = {}, by: Answerer = speakResponses) => ({
  ...(await openRig({ api: 'responses', ...entry }, by)),
  own: ['stop'] as const,
})
const { stop, seed: _seed, n: _n, ...others } = REQUESTS.features!
const features = { ...others, stop: { ...stop!, stopText: ' wo' } }
const { native: _native, ...rest } = REQUESTS

describe('provider-openai with the Responses API, by the provider kit', () => {
  for (const preset of ['openai', 'compatible'] as const) {
    const cases = providerKit(() => rigOf({ preset }), { ...rest, features }, { secrets: [KEY], concurrent: 200 })
    for (const { title, skipped, run } of cases) if (skipped === undefined) it(`${title}: ${preset}`, run)
    it(`leaves only the fields out that the API does not have: ${preset}`, () => {
      expect(cases.filter(one => one.skipped !== undefined).map(({ skipped }) => skipped)).to.deep.equal([
        '`features.seed`',
        '`features.n`',
        '`native`',
      ])
    })
  }
})

const shown = (events: readonly ModelEvent[]) =>
  events.map(one => {
    if (one.type === 'tool_call') return `${one.id} ${one.tool}(${one.invalid ?? JSON.stringify(one.arguments)})`
    if (one.type === 'finish') return `<${one.reason}>`
    return one.type === 'usage' ? 'usage' : `${one.type}:${'text' in one ? one.text : JSON.stringify(one)}`
  })
/** Without the pieces that only show that the model works. */
const heard = (events: readonly ModelEvent[]) =>
  events.filter(one => one.type !== 'reasoning' || one.text !== '' || one.providerData !== undefined)

const assistant = (parts: ModelMessage['parts'], provider = 'main'): ModelMessage => ({ role: 'assistant', provider, parts })
const png = { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' } as const

describe('a request of provider-openai with the Responses API', () => {
  it('has all messages as items, and reasoning of this server as it came', async () => {
    await using rig = await rigOf()
    const own = { ...reasoning('Hm', 'a+/='), id: 'rs_7', status: null }
    const messages: ModelMessage[] = [
      { role: 'system', parts: [{ type: 'text', text: 'Be kind.' }] },
      {
        role: 'user',
        parts: [
          { type: 'text', text: 'Look' },
          png,
          { type: 'image_url', url: 'https://a.example/x.png' },
          { type: 'file', data: 'AAAA', mimeType: 'application/pdf' },
        ],
      },
      assistant([
        { type: 'reasoning', text: 'Hm', providerData: own },
        { type: 'text', text: 'I look.' },
        { type: 'tool_call', id: 'c1', tool: 'weather', arguments: { city: 'Ulm' } },
        { type: 'tool_call', id: 'c2', tool: 'weather', arguments: {}, invalid: '{"ci' },
      ]),
      {
        role: 'tool',
        parts: [
          { type: 'tool_result', id: 'c1', tool: 'weather', content: [{ type: 'text', text: 'rain' }, png], isError: false },
          { type: 'tool_result', id: 'c2', tool: 'weather', content: [{ type: 'text', text: 'no' }], isError: true },
        ],
      },
      assistant(
        [
          { type: 'reasoning', text: 'Else', providerData: { ...own, id: 'rs_8' } },
          { type: 'text', text: 'So.' },
        ],
        'other'
      ),
      assistant([{ type: 'text', text: 'I will not', refusal: true }]),
      user('Why?'),
    ]
    await ask(rig.provider, asks('plain', { messages, tools: offered('weather') }))
    const image = { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'auto' }
    expect(rig.sent()).to.deep.equal({
      model: 'plain',
      stream: true,
      store: false,
      input: [
        { type: 'message', role: 'system', content: 'Be kind.' },
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look' },
            image,
            { type: 'input_image', image_url: 'https://a.example/x.png', detail: 'auto' },
            { type: 'input_file', filename: 'file.pdf', file_data: 'data:application/pdf;base64,AAAA' },
          ],
        },
        own,
        { type: 'message', role: 'assistant', content: 'I look.' },
        { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"city":"Ulm"}' },
        { type: 'function_call', call_id: 'c2', name: 'weather', arguments: '{"invalid_json":"{\\"ci"}' },
        { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'rain' }, image] },
        { type: 'function_call_output', call_id: 'c2', output: 'Error: no' },
        { type: 'message', role: 'assistant', content: 'So.' },
        { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'I will not' }] },
        { type: 'message', role: 'user', content: 'Why?' },
      ],
      tools: [
        { type: 'function', name: 'weather', description: 'the tool weather', parameters: { type: 'object' }, strict: false },
      ],
    })
  })

  it('has the settings under the names of the API', async () => {
    await using rig = await rigOf({ preset: 'openai', reasoning_summary: 'auto' })
    const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
    const settings = { temperature: 1.5, topP: 0.5, maxTokens: 9, logprobs: 2, cacheKey: 'k', parallelToolCalls: false } as const
    const tools = [{ ...offered('weather')[0]!, strict: true }]
    await ask(rig.provider, asks('plain', { ...settings, tools, toolChoice: 'required', responseSchema: schema, gathered: true }))
    const { prompt_cache_key, input: _input, ...sent } = rig.sent() as { [name: string]: unknown }
    expect(prompt_cache_key).to.be.a('string').and.not.equal('k')
    expect(sent).to.deep.equal({
      model: 'plain',
      stream: false,
      store: false,
      include: ['message.output_text.logprobs'],
      temperature: 1.5,
      top_p: 0.5,
      max_output_tokens: 9,
      top_logprobs: 2,
      tools: [
        { type: 'function', name: 'weather', description: 'the tool weather', parameters: { type: 'object' }, strict: true },
      ],
      tool_choice: 'required',
      parallel_tool_calls: false,
      text: { format: { type: 'json_schema', name: 'reply', schema, strict: true } },
    })
  })

  it('asks reasoning models for their encrypted reasoning, and for a summary if configured', async () => {
    for (const [entry, wanted] of [
      [{ preset: 'openai' }, { effort: 'xhigh' }],
      [
        { preset: 'openai', reasoning_summary: 'detailed' },
        { effort: 'xhigh', summary: 'detailed' },
      ],
    ] as const) {
      await using rig = await rigOf(entry, (received, reply) =>
        speakResponses({ ...received, body: { ...(received.body as object), model: 'plain' } }, reply)
      )
      await ask(rig.provider, asks('gpt-5', { reasoningEffort: 'max', temperature: 1 }))
      expect(rig.sent()).to.deep.include({ reasoning: wanted, include: ['reasoning.encrypted_content'] })
      expect(rig.sent()).to.not.have.property('temperature')
    }
  })

  it('does not have what the API lacks: a model says so', async () => {
    await using rig = await rigOf({ preset: 'openai', models: ['gpt-5', 'gpt-4.1', 'text-embedding-3'] })
    const { models } = await rig.provider.models({ signal: AbortSignal.timeout(5_000) } as never)
    const supports = Object.fromEntries(
      models.map(({ id, features }) => [id, features?.supports ?? rig.provider.features.supports])
    )
    for (const lacking of ['seed', 'n', 'frequency_penalty', 'logit_bias', 'audio'])
      for (const id of ['gpt-5', 'gpt-4.1']) expect(supports[id], id).to.not.include(lacking)
    expect(supports['gpt-5']).to.include('reasoning_effort').and.not.include('top_p')
    expect(supports['text-embedding-3']).to.deep.equal(['embeddings'])
    expect(rig.provider.features).to.not.have.property('protocol')
  })

  it('needs api: responses for a summary', async () => {
    const problem: unknown = await startPlugin({
      main: { type: 'openai', base_url: 'http://127.0.0.1:1/v1', reasoning_summary: 'auto' },
    }).catch((error: unknown) => error)
    expect(String((problem as Error).stack)).to.contain('reasoning_summary is for the Responses API only')
  })
})

describe('an answer of provider-openai with the Responses API', () => {
  const spoken = (...pieces: string[]) =>
    pieces.map(delta => event('response.output_text.delta', { output_index: 0, delta })).join('')
  const completed = event('response.completed', { response: response([]) })

  it('ends before the first of the stop texts, which the API does not have, and closes the stream', async () => {
    const cases: [string[], string[], string[]][] = [
      // a stop text can come in pieces, and its beginning can be something else
      [['END'], ['one E', 'N', 'END two', ' three'], ['one ', 'EN', '<stop END>']],
      [['aab'], ['aa', 'aa', 'b!'], ['aa', '<stop aab>']],
      [['b', 'ab'], ['xab'], ['x', '<stop ab>']],
      [['\n\n'], ['\n', 'a\n', '\nb'], ['\na', '<stop \n\n>']],
      [['END'], ['END'], ['<stop END>']],
      [['END'], ['all E', 'N'], ['all ', 'EN', '<stop>']],
    ]
    for (const [stop, pieces, wanted] of cases) {
      await using rig = await rigOf({}, (_, reply) => reply.end(spoken(...pieces) + completed))
      const events = await ask(rig.provider, asks('any', { stop }))
      const words = events.map(one =>
        one.type === 'text' ? one.text : one.type === 'finish' ? `<${[one.reason, one.stopText].filter(Boolean).join(' ')}>` : ''
      )
      expect(words.filter(word => word !== '').join('|')).to.equal(wanted.join('|'))
      expect(rig.sent()).to.not.have.property('stop')
    }
    await using rig = await rigOf({}, (_, reply) => reply.endless(at => spoken(`${at} `)))
    const events = await ask(rig.provider, asks('any', { stop: [' 7 '] }))
    expect(events.map(one => (one.type === 'text' ? one.text : '')).join('')).to.match(/5 6$/)
    const usage = events.find(one => one.type === 'usage')
    expect(usage?.type === 'usage' && usage.usage.output).to.be.greaterThan(0)
    while (rig.connections() > 0) await sleep(10)
  })

  it('shows text before a call that is no stop text, and cuts a whole response', async () => {
    const calls = [call('c1', 'weather', '{}')]
    await using rig = await rigOf({}, (asked, reply) => answer(asked.body, reply, [message({ text: 'so E' }), ...calls]))
    for (const gathered of [true, false])
      expect(shown(heard(await ask(rig.provider, asks('any', { stop: ['END'], gathered })))).join('|')).to.match(
        /^text:so( |\|text: )?.*E\|c1 weather\(\{\}\)\|usage\|<tool_calls>$/
      )
    await using whole = await rigOf({}, (asked, reply) => answer(asked.body, reply, [message({ text: 'one END two' }), ...calls]))
    const events = await ask(whole.provider, asks('any', { stop: ['END'], gathered: true }))
    expect(shown(events)).to.deep.equal(['text:one ', 'usage', '<stop>'])
    expect(events.find(one => one.type === 'usage')).to.have.nested.property('usage.output', 7)
  })

  for (const gathered of [true, false])
    it(`has reasoning with its item, text, and calls${gathered ? ', from one response' : ', from a stream'}`, async () => {
      const item = { ...reasoning('Let me'), summary: ['Let me', 'think'].map(text => ({ type: 'summary_text', text })) }
      const cited = { type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 0, end_index: 2 }
      const output = [
        item,
        message({ text: 'Hi', annotations: [cited] }),
        reasoning('', 'second'),
        call('c1', 'weather', '{"city": "Ulm"}'),
      ]
      await using rig = await rigOf({}, ({ body }, reply) => answer(body, reply, output))
      const events = heard(await ask(rig.provider, asks('any', { gathered, tools: offered('weather') })))
      const reasoned = events.filter(one => one.type === 'reasoning')
      expect(
        reasoned
          .map(({ text }) => text)
          .join('|')
          .replaceAll('|', '')
      ).to.equal('Let me\n\nthink')
      expect(reasoned.flatMap(({ providerData }) => (providerData === undefined ? [] : [providerData]))).to.deep.equal([
        item,
        reasoning('', 'second'),
      ])
      expect(shown(events).filter(one => !one.startsWith('reasoning') && !one.startsWith('text'))).to.include.members([
        'c1 weather({"city":"Ulm"})',
        'usage',
        '<tool_calls>',
      ])
      expect(events.map(one => (one.type === 'text' ? one.text : '')).join('')).to.equal('Hi')
      if (gathered)
        expect(events.find(one => one.type === 'citation')).to.have.nested.property('citation.url', 'https://a.example')
    })

  it('does not give reasoning back that nothing can read', async () => {
    await using rig = await rigOf({}, ({ body }, reply) => answer(body, reply, [reasoning('Hm', null), message({ text: 'Hi' })]))
    const events = await ask(rig.provider, asks('any'))
    expect(events.some(one => one.type === 'reasoning' && one.providerData !== undefined)).to.equal(false)
  })

  it('that refuses is text, and ends as filtered', async () => {
    await using rig = await rigOf()
    for (const gathered of [true, false]) {
      const events = heard(await ask(rig.provider, asks('refusal', { gathered })))
      expect(events.filter(one => one.type === 'text').every(one => one.refusal === true)).to.equal(true)
      expect(shown(events).at(-1)).to.equal('<content_filter>')
    }
  })

  it('that fails in the middle has the kind of its error', async () => {
    await using rig = await rigOf()
    expect(await failing(ask(rig.provider, asks('midway-error')))).to.have.nested.property('details.kind', 'rate_limited')
    expect(await failing(ask(rig.provider, asks('midway-error', { gathered: true })))).to.have.nested.property(
      'details.kind',
      'rate_limited'
    )
  })

  it('is read from odd servers: whole items without pieces, a response at the end, tools of the server', async () => {
    const odd: [string, string[]][] = [
      [
        event('response.output_item.done', { output_index: 0, item: { type: 'web_search_call', id: 'ws_1' } }) +
          event('response.output_item.done', { output_index: 1, item: message({ text: 'Hi' }) }) +
          event('response.output_item.done', { output_index: 2, item: call('c1', 'weather', '') }) +
          event('response.completed', { response: response([]) }),
        ['text:Hi', 'c1 weather({})', 'usage', '<tool_calls>'],
      ],
      [
        `${event('response.completed', { response: response([message({ text: 'Hi' })], { usage: null }) })}data: [DONE]\n\n`,
        ['text:Hi', '<stop>'],
      ],
      [
        event('response.function_call_arguments.delta', { output_index: 3, delta: '{' }) +
          event('response.unknown.delta', { delta: 5 }) +
          event('response.completed', { response: response([], { status: undefined }) }),
        ['usage', '<stop>'],
      ],
    ]
    for (const [frames, wanted] of odd) {
      await using rig = await rigOf({}, (_, reply) => reply.end(frames))
      expect(shown(heard(await ask(rig.provider, asks('any'))))).to.deep.equal(wanted)
    }
    for (const bad of ['data: 5\n\n', event('response.output_item.done', { item: 5 })]) {
      await using rig = await rigOf({}, (_, reply) => reply.end(bad))
      expect(await failing(ask(rig.provider, asks('any')))).to.have.nested.property('details.kind', 'network')
    }
  })
})
