import { svcError } from '@svc/core'
import type { ModelEvent, ModelRequest, Provider, Tool } from '@svc/core/contracts'
import { type KitCase, providerKit, toolKit } from '@svc/testing'
import { expect } from 'chai'

const plain: ModelRequest = { model: 'm', messages: [{ role: 'user', parts: [{ type: 'text', text: 'plain' }] }] }
const broken: ModelRequest = { model: 'm', messages: [{ role: 'user', parts: [{ type: 'text', text: 'broken' }] }] }
const FINISH: ModelEvent = { type: 'finish', reason: 'stop' }
const HELLO: ModelEvent[] = [
  { type: 'text', text: 'hel' },
  { type: 'text', text: 'lo' },
  { type: 'usage', usage: { input: 1, output: 2 } },
]
const OTHER: ModelEvent[] = [
  { type: 'text', text: 'ot' },
  { type: 'text', text: 'her' },
]

const other: ModelRequest = { model: 'm', messages: [{ role: 'user', parts: [{ type: 'text', text: 'other' }] }] }
const wordsOf = (request: ModelRequest) => {
  const [part] = request.messages[0]!.parts
  return part?.type === 'text' ? part.text : ''
}

/** A provider that does everything right. */
const honest: Provider = {
  features: { tool_calling: false, streaming: true, vision: false },
  models: async () => ({ models: [{ id: 'm', context: 10, output: 10 }], open: false }),
  countTokens: async () => 1,
  async *chat(request, { signal }) {
    signal.throwIfAborted()
    if (wordsOf(request) === 'broken') throw svcError('MODEL_FAILED', 'gone', { details: { kind: 'network', retryable: true } })
    yield* wordsOf(request) === 'other' ? [...OTHER, FINISH] : [...HELLO, FINISH]
  },
  async probe() {},
}
const says = (...events: ModelEvent[]): Partial<Provider> => ({
  async *chat(_, { signal }) {
    signal.throwIfAborted()
    yield* events
  },
})
const throws = (error: Error): Partial<Provider> => ({
  // oxlint-disable-next-line eslint/require-yield
  async *chat() {
    throw error
  },
})

/** The titles of the cases that fail. */
async function failures(cases: readonly KitCase[]): Promise<string[]> {
  const ended = await Promise.all(
    cases.map(testCase =>
      testCase.run().then(
        () => [],
        () => [testCase.title]
      )
    )
  )
  return ended.flat()
}

const ORDER = 'yields its output in order: usage at most once, finish once and last'
const MANY = 'answers 3 concurrent calls independently, and leaves nothing open'
const NETWORK = 'reports the failure network before anything else'

describe('providerKit', () => {
  const kit = (cheat: Partial<Provider> = {}, secrets: string[] = []) =>
    failures(
      providerKit(
        () => ({ provider: { ...honest, ...cheat } }),
        { plain, unicode: { request: other, text: 'other' }, failures: { network: broken } },
        { concurrent: 3, secrets }
      )
    )

  it('passes a provider that keeps the contract', async () => expect(await kit()).to.deep.equal([]))

  let latest: ModelRequest
  const cheats: Record<string, [Partial<Provider>, ...string[]]> = {
    'does not finish': [says(...HELLO), ORDER, MANY, NETWORK],
    'finishes twice': [says(...HELLO, FINISH, FINISH), ORDER, MANY, NETWORK],
    'goes on after finish': [says(...HELLO, FINISH, { type: 'text', text: '!' }), ORDER, MANY, NETWORK],
    'yields empty pieces': [says({ type: 'text', text: '' }, ...HELLO, FINISH), ORDER, MANY, NETWORK],
    'says that it streams, in one piece': [says({ type: 'text', text: 'hello' }, FINISH), ORDER, NETWORK],
    'calls tools and finishes otherwise': [
      says(...HELLO, { type: 'tool_call', id: '1', tool: 't', arguments: {} }, FINISH),
      ORDER,
      MANY,
      NETWORK,
    ],
    'counts too low': [{ countTokens: async () => 0 }, 'counts the tokens of a request, and not too few'],
    'says that it calls tools and shows none': [
      { features: { ...honest.features, tool_calling: true } },
      'describes its features as plain data',
    ],
    'lists a model twice': [
      { models: async () => ({ models: [{ id: 'm' }, { id: 'm' }], open: false }) },
      'lists its models, each once, with limits that are whole numbers',
    ],
    'gives one the answer of another where many ask': [
      {
        async *chat(request, ctx) {
          latest = request
          await Promise.resolve()
          yield* honest.chat(latest, ctx)
        },
      },
      MANY,
    ],
    'answers a call that was aborted': [
      {
        chat: (request, { requestId, principal }) =>
          honest.chat(request, { requestId, principal, signal: new AbortController().signal }),
      },
      'does not start a call whose signal is already aborted',
    ],
  }
  for (const [what, [cheat, ...expected]] of Object.entries(cheats))
    it(`catches a provider that ${what}`, async () => expect(await kit(cheat)).to.include.members(expected))

  it('skips the cases for which nothing was given, and passes none of them for done', async () => {
    const cases = providerKit(() => ({ provider: honest }), { plain })
    const skipped: string[] = []
    for (const testCase of cases) if (testCase.skipped) await testCase.run.call({ skip: () => void skipped.push(testCase.title) })
    expect(skipped).to.include('reports a connection that breaks in the middle – skipped: `cut` was not given')
    expect(skipped).to.deep.equal(cases.map(testCase => testCase.title).filter(title => title.includes('was not given')))
  })

  it('catches a failure of the wrong code, kind or word on retrying', async () => {
    const wrong = [
      new Error('fetch failed'),
      svcError('MODEL_FAILED', 'x', { details: { kind: 'timeout', retryable: true } }),
      svcError('MODEL_FAILED', 'x', { details: { kind: 'network', retryable: false } }),
      svcError('MODEL_FAILED', 'x', { details: { kind: 'network', retryable: true, retryAfterMs: Number.NaN } }),
    ]
    for (const error of wrong) expect(await kit(throws(error))).to.include(NETWORK)
  })

  it('catches a failure that tells a secret', async () => {
    const error = svcError('MODEL_FAILED', 'refused for key sk-123', { details: { kind: 'network', retryable: true } })
    expect(await kit(throws(error), ['sk-123'])).to.include(NETWORK)
  })
})

describe('toolKit', () => {
  const honestTool: Tool = {
    description: 'Says what it was given',
    category: 'text',
    effects: [],
    parameters: {
      type: 'object',
      properties: { text: { type: 'string', description: 'what to say' } },
      required: ['text'],
      additionalProperties: false,
    },
    result: { type: 'object', properties: { said: { type: 'string' } }, required: ['said'] },
    async call({ text }, { signal }) {
      signal.throwIfAborted()
      if (text === '') throw new Error('there is nothing to say')
      return { content: [{ type: 'text', text: String(text as string) }], structured: { said: text as string } }
    },
  }
  const kit = (cheat: Partial<Tool> = {}, name = 'say') =>
    failures(
      toolKit(() => ({ name, tool: { ...honestTool, ...cheat } }), {
        good: [{ args: { text: 'a' } }],
        bad: [{ args: { text: '' }, message: /nothing/ }, { args: { text: 1 } }],
        concurrent: 3,
      })
    )

  it('passes a tool that keeps the contract', async () => expect(await kit()).to.deep.equal([]))
  it('catches a name that models refuse', async () => expect(await kit({}, 'say it')).to.have.lengthOf(1))

  const answer = (result: object): Partial<Tool> => ({ call: async () => ({ content: [], ...result }) })
  const cheats: Record<string, [Partial<Tool>, string]> = {
    'has an effect of its own': [
      { effects: ['talk' as 'read'] },
      'declares each of its effects once: read, write, execute or network',
    ],
    'has no schema of an object': [{ parameters: { type: 'string' } }, 'has an object schema that describes each argument'],
    'has a broken schema': [
      { parameters: { type: 'object', properties: { text: { type: 'words', description: 'x' } } } },
      'has an object schema that describes each argument',
    ],
    'takes what its author calls bad': [
      { parameters: { type: 'object', properties: { text: { description: 'what to say' } } } },
      'has a schema that rejects the bad calls, except those with a message',
    ],
    'refuses by its schema what it should refuse in words': [
      {
        parameters: {
          type: 'object',
          properties: { text: { type: 'string', minLength: 1, description: 'what to say' } },
          required: ['text'],
        },
      },
      'has a schema that rejects the bad calls, except those with a message',
    ],
    'answers in a structure of which it has no schema': [
      { result: undefined as never },
      'answers good calls with plain content that matches its result schema',
    ],
    'breaks its result schema': [
      answer({ structured: { said: 1 } }),
      'answers good calls with plain content that matches its result schema',
    ],
    'answers with what is not plain': [
      answer({ structured: { said: 'a', at: new Map() as never } }),
      'answers good calls with plain content that matches its result schema',
    ],
    'refuses nothing': [answer({ structured: { said: '' } }), 'rejects bad calls with a readable message'],
    'fails without a word': [{ call: () => Promise.reject(new Error('')) }, 'rejects bad calls with a readable message'],
    'answers a call that was aborted': [
      answer({ structured: { said: 'a' } }),
      'does not start a call whose signal is already aborted',
    ],
    'changes its arguments': [
      {
        async call(args) {
          Object.assign(args, { text: 'b' })
          return { content: [], structured: { said: 'b' } }
        },
      },
      'does not change its arguments',
    ],
  }
  for (const [what, [cheat, title]] of Object.entries(cheats))
    it(`catches a tool that ${what}`, async () => expect(await kit(cheat)).to.include(title))
})
