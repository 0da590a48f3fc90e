import type { ModelEvent, ModelRequest, ToolCallPart } from '@svc/core/contracts'
import { expect } from 'chai'
import { ask, endlessContext, failureOf, offered, openLocal, says, textOf, usageOf } from './support/local.ts'

const finishOf = (events: readonly ModelEvent[]) => events.findLast(event => event.type === 'finish')
const callsOf = (events: readonly ModelEvent[]) => events.filter((event): event is ToolCallPart => event.type === 'tool_call')

describe('provider-local, with the further fields of a request', () => {
  it('ends before the first of several stop texts, also across its pieces', async () => {
    await using local = await openLocal()
    const events = await ask(local.provider, says('one two three four', { stop: ['four', 'e two th'] }))
    expect(textOf(events)).to.equal('You said: on')
    expect(finishOf(events)).to.deep.equal({ type: 'finish', reason: 'stop', stopText: 'e two th' })
  })

  it('is cut by the limit of tokens where that comes before the stop text', async () => {
    await using local = await openLocal()
    const events = await ask(local.provider, says('one two three four', { stop: ['four'], maxTokens: 4 }))
    expect(finishOf(events)).to.deep.equal({ type: 'finish', reason: 'length' })
  })

  it('ends at once where the answer begins with a stop text, and ignores an empty one', async () => {
    await using local = await openLocal()
    const events = await ask(local.provider, says('hello', { stop: ['', 'You'] }))
    expect(events.map(({ type }) => type)).to.deep.equal(['usage', 'finish'])
    expect(textOf(await ask(local.provider, says('hello', { stop: [''] })))).to.equal('You said: hello')
  })

  it('gives answers that differ, with the usage of all of them', async () => {
    await using local = await openLocal()
    const events = await ask(local.provider, says('hello', { n: 3 }))
    const texts = [undefined, 1, 2].map(choice =>
      events.flatMap(event => (event.type === 'text' && event.choice === choice ? event.text : [])).join('')
    )
    expect(new Set(texts).size).to.equal(3)
    const one = usageOf(await ask(local.provider, says('hello')))
    expect(usageOf(events).input).to.equal(one.input)
    expect(usageOf(events).output).to.be.above(2 * one.output)
    expect(events.slice(-2).map(({ type }) => type)).to.deep.equal(['usage', 'finish'])
  })

  it('reasons more with more effort, not at all with none, and counts that', async () => {
    await using local = await openLocal()
    const tokens = async (more: Partial<ModelRequest>) => usageOf(await ask(local.provider, says('hello', more))).reasoning ?? 0
    const [none, low, high] = [
      await tokens({ reasoningEffort: 'none' }),
      await tokens({ reasoningEffort: 'low' }),
      await tokens({ reasoningEffort: 'high' }),
    ]
    expect(none).to.equal(0)
    expect(low).to.be.above(0)
    expect(high).to.be.above(low)
    expect(await tokens({ reasoningTokens: 5 })).to.be.within(1, 5)
  })

  it('calls one tool at a time without parallel calls, then goes on', async () => {
    await using local = await openLocal()
    const request = says('/tool weather {"city": "Ulm"}\n/tool news', {
      tools: offered('weather', 'news'),
      parallelToolCalls: false,
    })
    const answered = (calls: readonly ToolCallPart[]): ModelRequest => ({
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', parts: calls },
        {
          role: 'tool',
          parts: calls.map(({ id, tool }) => ({
            type: 'tool_result' as const,
            id,
            tool,
            content: [{ type: 'text' as const, text: 'ok' }],
            isError: false,
          })),
        },
      ],
    })
    const first = callsOf(await ask(local.provider, request))
    const second = callsOf(await ask(local.provider, answered(first)))
    expect([first, second].map(calls => calls.map(({ tool }) => tool))).to.deep.equal([['weather'], ['news']])
    expect(first[0]?.id).not.to.equal(second[0]?.id)
    expect(textOf(await ask(local.provider, answered([...first, ...second])))).to.include('news answered: ok')
  })

  it('calls the named tool, whatever other tool the message names, and again after a result', async () => {
    await using local = await openLocal()
    const request = says('/tool weather', { tools: offered('weather', 'news'), toolChoice: { tool: 'news' } })
    const calls = callsOf(await ask(local.provider, request))
    expect(calls.map(({ tool }) => tool)).to.deep.equal(['news'])
    const result = { type: 'tool_result' as const, id: calls[0]!.id, tool: 'news', content: [], isError: false }
    const messages: ModelRequest['messages'] = [
      ...request.messages,
      { role: 'assistant', parts: calls },
      { role: 'tool', parts: [result] },
    ]
    expect(callsOf(await ask(local.provider, { ...request, messages })).map(({ tool }) => tool)).to.deep.equal(['news'])
  })

  it('names the type and size of what it cannot see or hear', async () => {
    await using local = await openLocal()
    const messages: ModelRequest['messages'] = [
      {
        role: 'user',
        parts: [
          { type: 'text', text: 'Look' },
          { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
          { type: 'file', data: 'aGVsbG8=', mimeType: 'application/pdf', name: 'a.pdf' },
        ],
      },
    ]
    const request = { model: 'local-1', messages }
    expect(textOf(await ask(local.provider, request))).to.equal(
      'You said: Look [image image/png, 5 bytes] [file a.pdf, application/pdf, 5 bytes]'
    )
    const count = await local.provider.countTokens(request, endlessContext())
    expect(count).to.be.above((await local.provider.countTokens(says('Look'), endlessContext())) + 85)
  })

  for (const [what, schema] of [
    ['branches of a union', { properties: { a: { type: 'string' } }, anyOf: [{ required: ['a'] }, { required: ['b'] }] }],
    ['a pattern', { type: 'string', pattern: '^[A-Z]{3}$' }],
    ['unique items', { type: 'array', items: { type: 'integer' }, minItems: 3, uniqueItems: true }],
    [
      'a schema that refers to itself many times',
      {
        $ref: '#/$defs/n',
        $defs: {
          n: {
            type: 'object',
            properties: Object.fromEntries('a b c d e f g h'.split(' ').map(key => [key, { $ref: '#/$defs/n' }])),
          },
        },
      },
    ],
    [
      'a schema that refers to itself',
      { $ref: '#/$defs/n', $defs: { n: { type: 'object', properties: { n: { $ref: '#/$defs/n' } } } } },
    ],
    ['a tuple', { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], minItems: 2 }],
    ['true', true],
  ] as const)
    it(`finds data for ${what}`, async () => {
      await using local = await openLocal()
      const events = await ask(local.provider, says('hello', { responseSchema: schema, maxTokens: 4096 }))
      expect(textOf(events)).not.to.equal('')
      if (finishOf(events)?.reason === 'stop') expect(JSON.parse(textOf(events))).not.to.equal(undefined)
    })

  for (const [what, schema] of [
    ['nothing', false],
    ['contradictions', { type: 'integer', minimum: 5, maximum: 3 }],
    ['a pattern that no text of ours fits', { type: 'string', pattern: '^x{3}y{9}$' }],
    ['no schema', { type: 'nonsense', properties: 5 }],
    ['a pattern that takes for ever', { type: 'string', pattern: '^(a+)+$', minLength: 1000 }],
    [
      'nesting without end',
      JSON.parse('{"type":"object","required":["a"],"properties":{"a":'.repeat(200) + '{}' + '}}'.repeat(200)) as object,
    ],
  ] as const)
    it(`refuses a schema that is ${what}, at once and with a reason`, async () => {
      await using local = await openLocal()
      const error = await failureOf(ask(local.provider, says('hello', { responseSchema: schema as never })))
      expect(error.details).to.include({ kind: 'bad_request', requestOnly: true })
    })
})

describe('embeddings of provider-local', () => {
  const product = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, at) => sum + value * b[at]!, 0)
  const embed = async (input: readonly (string | number[])[], dimensions?: number) => {
    await using local = await openLocal()
    const request = { model: 'local-1', input, ...(dimensions === undefined ? {} : { dimensions }) }
    return await local.provider.embed!(request, endlessContext())
  }

  it('have length 1, and are nearer for texts with common words', async () => {
    const { vectors, usage } = await embed([
      'The cat sleeps on the sofa',
      'A cat is sleeping on a sofa',
      'Quarterly revenue grew by twelve percent',
      '',
      '⚙️',
    ])
    for (const vector of vectors) expect(product(vector, vector)).to.be.closeTo(1, 1e-9)
    expect(product(vectors[0]!, vectors[1]!)).to.be.above(product(vectors[0]!, vectors[2]!) + 0.2)
    expect(vectors.map(({ length }) => length)).to.deep.equal(Array(5).fill(256))
    expect(usage.input).to.be.above(15)
  })

  it('take token ids of their tokenizer for text', async () => {
    const { vectors } = await embed(['Hello world', [9906, 1917]])
    expect(vectors[1]).to.deep.equal(vectors[0])
  })

  for (const [what, input, dimensions] of [
    ['an unknown token id', [[9_000_000]], undefined],
    ['an id between those of tokens', [[100_256]], undefined],
    ['a negative id', [[-1]], undefined],
    ['no dimensions', ['a'], 0],
    ['too many dimensions', ['a'], 1e9],
  ] as const)
    it(`refuse ${what}`, async () => {
      const error = await failureOf(embed(input as never, dimensions))
      expect(error.details).to.include({ kind: 'bad_request', requestOnly: true })
    })

  it('are those of a model that exists', async () => {
    await using local = await openLocal()
    const error = await failureOf(local.provider.embed!({ model: 'nobody', input: ['a'] }, endlessContext()))
    expect(error.details).to.include({ kind: 'bad_request' })
  })
})
