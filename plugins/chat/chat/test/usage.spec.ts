import { setTimeout as wait } from 'node:timers/promises'
import { definePlugin, type PluginRef, svcError } from '@svc/core'
import {
  Chat,
  ModelCalls,
  type ModelDone,
  type ModelEvent,
  Providers,
  Tools,
  type TurnEnd,
  type TurnRequest,
} from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, says, scripted, tool } from './chat-host.ts'

const broken = () => svcError('MODEL_FAILED', 'it broke', { details: { kind: 'network', retryable: true } })
const text = (words: string): ModelEvent => ({ type: 'text', text: words })
const usage = (input: number, output: number): ModelEvent => ({ type: 'usage', usage: { input, output } })
const flowing = (chat: () => AsyncIterable<ModelEvent>) => scripted([], [{ id: 'm' }], { chat })
const forever = () => new Promise<never>(() => undefined)

const PROVIDERS = {
  whole: scripted([says('so')]),
  rounds: scripted([[usage(4, 1), ...calls(['t'])], says('so')]),
  cut: scripted([[text('ha'), usage(3, 2), { type: 'finish', reason: 'length' }]]),
  mute: scripted([[text('so'), { type: 'finish', reason: 'stop' }]]),
  failing: flowing(async function* () {
    yield text('half')
    throw broken()
  }),
  told: flowing(async function* () {
    yield text('half')
    yield usage(7, 5)
    throw broken()
  }),
  never: flowing(async function* () {
    yield usage(2, 0)
    throw broken()
  }),
  stalled: flowing(async function* () {
    yield text('half')
    await forever()
  }),
} as const

/** Runs one turn: what its end says it has taken, and what the calls of models are counted with in the metrics. */
async function taken(
  asked: Partial<TurnRequest>,
  { give = [], leaveAfter }: { give?: readonly PluginRef[]; leaveAfter?: 'token' } = {}
) {
  const done: ModelDone[] = []
  const ends: TurnEnd[] = []
  const listening = definePlugin({
    setup(scope) {
      scope.tap(ModelCalls.hooks.modelDone, entry => void done.push(entry))
      scope.tap(Chat.hooks.end, ({ end }) => void ends.push(end))
    },
  })
  const providers = Object.entries(PROVIDERS).map(([name, entry]) => item(Providers, name, entry))
  await using chatHost = await startChatHost({ give: [{ name: 'listening', use: listening }, ...providers, ...give] })
  for await (const event of chatHost.chat.stream({ message: 'a question', ...asked }, testContext()))
    if (event.type === leaveAfter) break
  while (ends.length === 0) await wait(1)
  const [{ usage, status } = expect.fail('it did not end')] = ends
  const sum = (pick: (modelDone: ModelDone) => number) =>
    done.reduce((all, modelDone) => all + (modelDone.answered ? 0 : pick(modelDone)), 0)
  const counted = { input: sum(entry => entry.usage.input), output: sum(entry => entry.usage.output) }
  return { status, told: { input: usage.input, output: usage.output }, counted, calls: done.length }
}

describe('the tokens of a turn, in its end and in the metrics,', () => {
  for (const [title, asked, tokens, status, more = {}] of [
    ['are what the provider told of an answer that is whole', { provider: 'whole' }, { input: 3, output: 2 }, 'completed'],
    [
      'are those of all rounds',
      { provider: 'rounds' },
      { input: 7, output: 3 },
      'completed',
      { give: [item(Tools, 't', tool({}))] },
    ],
    ['are what the provider told of an answer that was cut', { provider: 'cut' }, { input: 3, output: 2 }, 'completed'],
    ['are none where a provider that ended well told none', { provider: 'mute' }, { input: 0, output: 0 }, 'completed'],
    ['are what it told before it failed', { provider: 'told' }, { input: 7, output: 5 }, 'failed'],
  ] as const satisfies readonly (readonly [string, Partial<TurnRequest>, object, string, object?])[])
    it(title, async () => {
      const { status: ended, told: reported, counted } = await taken(asked, more)
      expect({ ended, told: reported, counted }).to.deep.equal({ ended: status, told: tokens, counted: tokens })
    })

  for (const [title, asked, status, more = {}] of [
    ['of a model that failed after some words', { provider: 'failing' }, 'failed'],
    ['of a model that is left after some words', { provider: 'stalled' }, 'cancelled', { leaveAfter: 'token' }],
  ] as const satisfies readonly (readonly [string, Partial<TurnRequest>, string, object?])[])
    it(`are counted, and once, where no provider reported them: ${title}`, async () => {
      const { status: ended, told: reported, counted, calls } = await taken(asked, more)
      expect([ended, calls]).to.deep.equal([status, 1])
      expect(reported.input).to.be.greaterThan('a question'.length)
      expect(reported.output).to.equal(4)
      expect(counted).to.deep.equal(reported)
    })

  it('have those of a try that failed before another one answered, as far as it reported them', async () => {
    const elsewhere = definePlugin({
      setup: scope => void scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'whole', model: 'm' })),
    })
    const {
      told: reported,
      counted,
      calls,
    } = await taken({ provider: 'never' }, { give: [{ name: 'elsewhere', use: elsewhere }] })
    expect([reported, counted, calls]).to.deep.equal([{ input: 5, output: 2 }, { input: 5, output: 2 }, 2])
  })

  it('are not counted for what a plugin said in place of a model, and broke off', async () => {
    const instead = definePlugin({
      setup: scope => void scope.tap(ModelCalls.hooks.modelCall, () => ({ events: [text('half')] })),
    })
    const { status, told: reported } = await taken({ provider: 'whole' }, { give: [{ name: 'instead', use: instead }] })
    expect([status, reported]).to.deep.equal(['failed', { input: 0, output: 0 }])
  })

  it('tell the tokens that the provider had cached, of all steps, where there are any', async () => {
    const cached = (input: number, count: number): ModelEvent => ({ type: 'usage', usage: { input, output: 1, cached: count } })
    const a = scripted([
      [cached(9, 0), ...calls(['t'])],
      [cached(9, 7), ...calls(['t'])],
      [text('so'), cached(9, 8), { type: 'finish', reason: 'stop' }],
      says('so'),
    ])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({}))] })
    const ask = async () => (await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())).usage
    expect(await ask()).to.deep.equal({ input: 27, output: 3, total: 30, cached: 15 })
    expect(await ask()).to.deep.equal({ input: 3, output: 2, total: 5 })
  })

  it('of a conversation have one cache key in all its requests, and without a conversation none', async () => {
    const a = scripted([says('so')])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a)] })
    const ask = (more: Partial<TurnRequest>) => chatHost.chat.reply({ message: 'hi', provider: 'a', ...more }, testContext())
    const { conversationId } = await ask({})
    await ask({ conversationId })
    await ask({})
    await ask({ keep: false })
    const [one, two, three, four] = a.requests.map(request => request.cacheKey)
    expect([one === two, one === three, one === undefined, four]).to.deep.equal([true, false, false, undefined])
  })
})
