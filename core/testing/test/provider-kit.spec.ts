import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mock } from 'node:test'
import { svcError, type CallContext } from '@svc/core'
import type { ModelEvent, ModelFeature, ModelRequest, Provider, ToolCallPart } from '@svc/core/contracts'
import { providerKit, type ProviderRequests } from '@svc/testing'
import { expect } from 'chai'

/** What is asked is the name of the model. */
const asks = (model: string): ModelRequest => ({ model, messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }] })
const text = (piece: string): ModelEvent => ({ type: 'text', text: piece })
const end = (reason: 'stop' | 'content_filter' | 'tool_calls' = 'stop'): ModelEvent => ({ type: 'finish', reason })
const call = (tool: string): ToolCallPart => ({ type: 'tool_call', id: tool, tool, arguments: {} })
const broken = (details: object = { kind: 'network', retryable: true }) =>
  svcError('MODEL_FAILED', 'it broke', { details: { ...details } })

const offered = (...names: string[]) => names.map(name => ({ name, description: '', parameters: { type: 'object' } }))
const ALL: readonly ModelFeature[] = [
  'stop',
  'seed',
  'n',
  'logprobs',
  'tool_choice',
  'tool_call_deltas',
  'json',
  'response_schema',
  'embeddings',
  'top_k',
  'cache_hints',
]

type Answer = readonly (ModelEvent | Error | 'wait')[]
const ANSWERS: Readonly<Record<string, Answer>> = {
  plain: [text('a'), text('b'), { type: 'usage', usage: { input: 1, output: 2 } }, end()],
  reasoning: [{ type: 'reasoning', text: 'Hm' }, text('a'), end()],
  filtered: [text('a'), end('content_filter')],
  pieces: [call('x'), call('y'), end('tool_calls')],
  late: [broken({ kind: 'rate_limited', retryable: true, retryAfterMs: 70 })],
  cut: [text('a'), broken()],
  stalled: [text('a'), 'wait'],
  silent: ['wait'],
  stop: [text('a'), { type: 'finish', reason: 'stop', stopText: 'b' }],
  twice: [{ ...text('b'), choice: 1 } as ModelEvent, { ...end(), choice: 1 } as ModelEvent, text('a'), end()],
  logprobs: [
    text('a'),
    { type: 'logprobs', tokens: [{ token: 'a', logprob: -0.1, top: [{ token: 'a', logprob: -0.1 }] }] },
    end(),
  ],
  named: [call('y'), end('tool_calls')],
  deltas: [
    { type: 'tool_call_delta', index: 0, id: 'x', tool: 'x', text: '{' },
    { type: 'tool_call_delta', index: 0, id: 'x', tool: 'x', text: '}' },
    call('x'),
    end('tool_calls'),
  ],
  data: [text('{"a":1}'), end()],
  native: [{ type: 'native', event: 'one', data: { a: 1 } }, text('a'), end()],
}
const CALLS = ['x', 'y'].map(tool => ({ tool, arguments: {} }))
const REQUESTS: ProviderRequests = {
  plain: asks('plain'),
  tools: { request: asks('pieces'), calls: CALLS },
  usage: { request: asks('plain'), usage: { input: 1, output: 2 } },
  reasoning: { request: asks('reasoning'), text: 'Hm' },
  filtered: asks('filtered'),
  pieces: { request: asks('pieces'), calls: CALLS },
  retryAfter: { request: asks('late'), ms: 70 },
  cut: asks('cut'),
  endsEarly: asks('cut'),
  malformed: asks('cut'),
  stalled: asks('stalled'),
  silent: asks('silent'),
  failures: { rate_limited: asks('late') },
  features: {
    stop: { request: { ...asks('stop'), stop: ['b'] }, text: 'a', stopText: 'b' },
    seed: { ...asks('plain'), seed: 1 },
    n: { ...asks('twice'), n: 2 },
    logprobs: { ...asks('logprobs'), logprobs: 2 },
    tool_choice: { ...asks('named'), tools: offered('x', 'y'), toolChoice: { tool: 'y' } },
    tool_call_deltas: asks('pieces'),
    json: { ...asks('data'), responseFormat: 'json' },
    response_schema: { ...asks('data'), responseSchema: { type: 'object', properties: { a: { const: 1 } }, required: ['a'] } },
    embeddings: { model: 'plain', input: ['a', 'bb'], dimensions: 2 },
  },
  native: {
    request: { ...asks('native'), native: { protocol: 'anthropic', body: {} } },
    events: [{ event: 'one', data: { a: 1 } }],
  },
}

/** A provider that says what is written down, or what a cheat says instead. */
function scripted(cheat: Readonly<Record<string, Answer>>, more: Partial<Provider> = {}): Provider {
  async function* chat({ model, gathered, toolCallDeltas }: ModelRequest, { signal }: CallContext): AsyncGenerator<ModelEvent> {
    signal.throwIfAborted()
    const name = toolCallDeltas && model === 'pieces' ? 'deltas' : model
    const cheated = cheat[gathered ? `gathered ${name}` : name] ?? cheat[name]
    for (const item of cheated ?? ANSWERS[name] ?? []) {
      if (item instanceof Error) throw item
      if (item !== 'wait') yield item
      else if (!signal.aborted) await once(signal, 'abort')
    }
    signal.throwIfAborted()
  }
  return {
    features: { tool_calling: true, streaming: true, vision: false, supports: ALL },
    models: async () => ({ models: [{ id: 'plain' }], open: true }),
    countTokens: async () => 10,
    chat,
    embed: async ({ input }, { signal }) => {
      signal.throwIfAborted()
      return { vectors: input.map(item => [item.length, 1]), usage: { input: 1, output: 0 } }
    },
    probe: async () => {},
    ...more,
  }
}

async function failuresOf(
  cheat: Readonly<Record<string, Answer>> = {},
  { more = {}, sent, requests = REQUESTS }: Cheat = {}
): Promise<string[]> {
  const failed: string[] = []
  const open = () => {
    let last: ModelRequest | undefined
    const provider = scripted(cheat, more)
    const chat: Provider['chat'] = (request, ctx) => {
      last = request
      return provider.chat(request, ctx)
    }
    return { provider: { ...provider, chat }, ...(sent ? { sent: () => sent(last!) } : {}) }
  }
  for (const testCase of providerKit(open, requests)) await testCase.run().catch(() => failed.push(testCase.title))
  return failed
}

interface Cheat {
  readonly more?: Partial<Provider>
  /** What the upstream gets of a request. */
  readonly sent?: (request: ModelRequest) => unknown
  readonly requests?: ProviderRequests
}

describe('the provider kit', () => {
  it('passes a provider that does all of it', async () => expect(await failuresOf()).to.deep.equal([]))

  for (const [what, cheat, ...titles] of [
    ['tells another usage', { plain: [text('a'), text('b'), end()] }, 'reports the usage of a call'],
    [
      'thinks after it has spoken',
      { reasoning: [text('a'), { type: 'reasoning', text: 'Hm' }, end()] },
      'separates reasoning from text',
    ],
    ['takes a filter for a good end', { filtered: [text('a'), end()] }, 'says when it was cut by a filter'],
    [
      'mixes calls up',
      { pieces: [call('y'), call('x'), end('tool_calls')] },
      'puts tool calls together that come in pieces, mixed with each other',
    ],
    [
      'forgets how long to wait',
      { late: [broken({ kind: 'rate_limited', retryable: true })] },
      'reports when a retry makes sense, if the upstream says so',
    ],
    [
      'takes what was cut for whole',
      { cut: [text('a'), end()] },
      'reports a connection that breaks in the middle',
      'takes an answer that ends too soon for no whole one',
      'reports a piece that cannot be read',
    ],
    ['says nothing before a cut', { cut: [broken()] }, 'reports a connection that breaks in the middle'],
    [
      'loses its calls when nobody reads along',
      { 'gathered pieces': [text('a'), end()] },
      'answers `tools` the same when the answer is collected',
    ],
    [
      'counts otherwise when nobody reads along',
      { 'gathered plain': [text('ab'), { type: 'usage', usage: { input: 1, output: 3 } }, end()] },
      'answers `plain` the same when the answer is collected',
    ],
    [
      'fails otherwise when nobody reads along',
      { 'gathered late': [broken({ kind: 'rate_limited', retryable: true, retryAfterMs: 71 })] },
      'fails in the same way when the answer is collected',
    ],
    [
      'takes what was cut for whole when nobody reads along',
      { 'gathered cut': [text('a'), end()] },
      'reports a broken answer when the answer is collected',
    ],
    [
      'finishes an aborted whole answer',
      { 'gathered silent': ['wait', text('a'), end()] },
      'ends when it is aborted while it waits for the whole answer',
    ],
    [
      'finishes what was aborted',
      { stalled: [text('a'), 'wait', end()] },
      'ends when it is aborted while it waits for the next piece',
    ],
    ['goes on after a stop text', { stop: [text('ab'), end()] }, 'ends before a text of `stop`'],
    ['gives one answer of two', { twice: [text('a'), end()] }, 'gives as many answers as `n` asks for'],
    ['ends the first answer too early', { twice: ANSWERS.twice!.toReversed() }, 'gives as many answers as `n` asks for'],
    ['leaves the log probabilities out', { logprobs: [text('a'), end()] }, 'gives the log probability of each token'],
    [
      'calls another tool than the named one',
      { named: [call('x'), end('tool_calls')] },
      'calls the tool that `toolChoice` names',
    ],
    [
      'reports deltas that are not the arguments',
      { deltas: [ANSWERS.deltas![0]!, call('x'), end('tool_calls')] },
      'reports the arguments of tool calls while they arrive',
    ],
    [
      'reports deltas without a request for them',
      { pieces: ANSWERS.deltas! },
      'reports the arguments of tool calls while they arrive',
    ],
    ['answers text for data', { data: [text('well'), end()] }, 'answers a JSON object', 'answers JSON of the schema'],
    ['answers other data', { data: [text('{"a":2}'), end()] }, 'answers JSON of the schema'],
    [
      'keeps the original answer to itself',
      { native: [text('a'), end()] },
      'sends an original request, and returns the original answer',
    ],
    [
      'does not read the original answer',
      { native: [ANSWERS.native![0]!, end()] },
      'sends an original request, and returns the original answer',
    ],
  ] as const satisfies readonly (readonly [string, Record<string, Answer>, ...string[]])[])
    it(`catches a provider that ${what}`, async () => {
      expect(await failuresOf(cheat)).to.include.members(titles)
    })

  const IGNORES = 'ignores no feature that it supports'
  it('catches a provider that ignores a feature in silence', async () => {
    expect(await failuresOf({}, { sent: request => request })).to.deep.equal([])
    expect(await failuresOf({}, { sent: request => ({ ...request, topK: 0 }) })).to.deep.equal([IGNORES])
    const texts = ({ messages }: ModelRequest) =>
      messages.map(({ parts }) => parts.map(part => part.type === 'text' && part.text))
    expect(await failuresOf({}, { sent: request => ({ ...request, messages: texts(request) }) })).to.deep.equal([IGNORES])
    const effects = { top_k: [asks('plain'), asks('plain')] as const }
    expect(await failuresOf({}, { requests: { ...REQUESTS, effects } })).to.deep.equal([IGNORES])
  })

  it('requires a sample of each feature that a provider supports', async () => {
    const { seed: _, ...features } = REQUESTS.features!
    expect(await failuresOf({}, { requests: { ...REQUESTS, features } })).to.deep.equal([
      'has a sample of each feature that it supports',
    ])
  })

  it('catches embeddings in another order, of another length, and of nothing', async () => {
    const title = 'makes embeddings in the order of the input'
    const usage = { input: 1, output: 0 }
    for (const vectors of [
      [
        [1, 1],
        [2, 1],
      ],
      [[1]],
      [
        [1, 1],
        [1, 1],
      ],
      [
        [1, 1],
        [Number.NaN, 1],
      ],
    ])
      expect(await failuresOf({}, { more: { embed: async () => ({ vectors, usage }) } })).to.deep.equal([title])
  })

  const CLOSES = 'closes the connection upstream when it is aborted'
  const closing = (connections?: () => number) => {
    const open = () => ({ provider: scripted({}), ...(connections ? { connections } : {}) })
    return providerKit(open, { plain: asks('plain'), tools: REQUESTS.tools!, silent: asks('silent') }).find(
      testCase => testCase.title === CLOSES
    )!
  }

  it('catches a provider whose call upstream goes on after an abort', async () => {
    let now = 0
    using _ = Object.assign(mock.method(Date, 'now', () => (now += 1_000)).mock, {
      [Symbol.dispose]: () => mock.restoreAll(),
    })
    const { message } = await closing(() => 1)
      .run()
      .then(
        () => assert.fail('it passed'),
        (error: Error) => error
      )
    expect(message).to.include('closing the connection upstream')
  })

  it('skips that case, with the reason, where the upstream cannot be inspected', async () => {
    const skipped: string[] = []
    await closing().run.call({ skip: (why: string) => void skipped.push(why) })
    expect(skipped).to.deep.equal(['`connections` was not given'])
  })
})
