import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mock } from 'node:test'
import { svcError, type CallContext } from '@svc/core'
import type { ModelEvent, ModelRequest, Provider, ToolCallPart } from '@svc/core/contracts'
import { providerKit, type ProviderRequests } from '@svc/testing'
import { expect } from 'chai'

/** What is asked is the name of the model. */
const asks = (model: string): ModelRequest => ({ model, messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }] })
const text = (piece: string): ModelEvent => ({ type: 'text', text: piece })
const end = (reason: 'stop' | 'content_filter' | 'tool_calls' = 'stop'): ModelEvent => ({ type: 'finish', reason })
const call = (tool: string): ToolCallPart => ({ type: 'tool_call', id: tool, tool, arguments: {} })
const broken = (details: object = { kind: 'network', retryable: true }) =>
  svcError('MODEL_FAILED', 'it broke', { details: { ...details } })

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
}

/** A provider that says what is written down, or what a cheat says instead. */
function scripted(cheat: Readonly<Record<string, Answer>>): Provider {
  async function* chat({ model, gathered }: ModelRequest, { signal }: CallContext): AsyncGenerator<ModelEvent> {
    signal.throwIfAborted()
    const cheated = cheat[gathered ? `gathered ${model}` : model] ?? cheat[model]
    for (const item of cheated ?? ANSWERS[model] ?? []) {
      if (item instanceof Error) throw item
      if (item !== 'wait') yield item
      else if (!signal.aborted) await once(signal, 'abort')
    }
    signal.throwIfAborted()
  }
  return {
    features: { tool_calling: true, streaming: true, vision: false },
    models: async () => ({ models: [{ id: 'plain' }], open: true }),
    countTokens: async () => 10,
    chat,
    probe: async () => {},
  }
}

async function failuresOf(cheat: Readonly<Record<string, Answer>> = {}): Promise<string[]> {
  const failed: string[] = []
  for (const testCase of providerKit(() => ({ provider: scripted(cheat) }), REQUESTS))
    await testCase.run().catch(() => failed.push(testCase.title))
  return failed
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
  ] as const satisfies readonly (readonly [string, Record<string, Answer>, ...string[]])[])
    it(`catches a provider that ${what}`, async () => {
      expect(await failuresOf(cheat)).to.include.members(titles)
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
