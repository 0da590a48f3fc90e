import { setImmediate } from 'node:timers/promises'
import { definePlugin, type PluginRef, svcError } from '@svc/core'
import {
  Chat,
  ModelCalls,
  type ModelDone,
  type ModelEvent,
  type ModelFailure,
  Providers,
  Tools,
  type TurnDone,
} from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { handClock } from './hand-clock.ts'
import { calls, startChatHost, codeThrown, says, scripted, textOf, tool } from './chat-host.ts'

/** Keeps what chat tells. */
function listening() {
  const done: ModelDone[] = []
  const turns: TurnDone[] = []
  const use = definePlugin({
    setup(scope) {
      scope.tap(ModelCalls.hooks.modelDone, entry => void done.push(entry))
      scope.tap(Chat.hooks.end, entry => void turns.push(entry))
    },
  })
  return { done, turns, plugin: { name: 'listening', use } satisfies PluginRef }
}

/** A provider whose events come when the test's generator has them. */
const flowing = (chat: () => AsyncIterable<ModelEvent>) => scripted([], [{ id: 'm' }], { chat })
const text = (words: string): ModelEvent => ({ type: 'text', text: words })
const FINISH: ModelEvent = { type: 'finish', reason: 'stop' }
const failing = (failure: ModelFailure) => svcError('MODEL_FAILED', 'it broke', { details: { ...failure } })

describe('the limits of a turn', () => {
  it('are no failure of a model whose answer is flowing: no other turn is refused for them', async () => {
    const policy = new URL('../../chat-policy/', import.meta.url)
    await using chatHost = await startChatHost({ give: [policy], config: { chat: { timeout_ms: 1_000 } } })
    const long = `/pace 100\n${'word '.repeat(200)}`
    const ends = await Promise.all(Array.from({ length: 6 }, () => chatHost.stream(long)))
    expect(ends.map(events => events.at(-1)))
      .to.have.lengthOf(6)
      .and.satisfy((all: { status: string }[]) => all.every(end => end.status === 'failed'))
    expect(textOf(await chatHost.stream('hello'))).to.equal('You said: hello')
  })

  it('are the fault of a model that was silent for most of it', async () => {
    const { done, plugin } = listening()
    const never = () => new Promise<never>(() => undefined)
    const deaf = flowing(() => ({ [Symbol.asyncIterator]: () => ({ next: never, return: never }) }))
    await using chatHost = await startChatHost({
      give: [plugin, item(Providers, 'deaf', deaf)],
      config: { chat: { timeout_ms: 100 } },
    })
    await codeThrown(chatHost.stream({ message: 'hi', provider: 'deaf' }))
    expect(done[0]?.failure).to.deep.include({ kind: 'timeout' }).and.not.have.property('requestOnly')
  })

  it('do not take the time of a slow reader for silence of the model', async () => {
    const paced = flowing(async function* () {
      for (const word of ['one ', 'two ', 'three']) {
        clock.tick(60)
        yield text(word)
      }
      yield FINISH
    })
    const give = [item(Providers, 'paced', paced)]
    await using chatHost = await startChatHost({ give, config: { chat: { token_timeout_ms: 400 } } })
    using clock = handClock()
    let [said, status] = ['', '']
    for await (const event of chatHost.chat.stream({ message: 'hi', provider: 'paced' }, testContext())) {
      if (event.type === 'token') said += event.content
      if (event.type === 'token') clock.tick(800)
      if (event.type === 'end') status = event.status
    }
    expect([said, status]).to.deep.equal(['one two three', 'completed'])
  })

  it('hold nothing against a model whose reader has let it wait', async () => {
    const { done, plugin } = listening()
    const left = flowing(async function* () {
      yield text('one')
      throw failing({ kind: 'network', retryable: true })
    })
    await using chatHost = await startChatHost({ give: [plugin, item(Providers, 'left', left)] })
    using clock = handClock()
    for await (const event of chatHost.chat.stream({ message: 'hi', provider: 'left' }, testContext()))
      if (event.type === 'token') clock.tick(1_300)
    await chatHost.stream({ message: 'hi', provider: 'left' })
    expect(done.map(entry => entry.failure)).to.deep.equal([
      { kind: 'network', retryable: true, requestOnly: true },
      { kind: 'network', retryable: true },
    ])
  })

  it('end an answer that never ends, and keep what there was of it', async () => {
    const { done, turns, plugin } = listening()
    const endless = flowing(async function* () {
      for (;;) yield text('0123456789')
    })
    await using chatHost = await startChatHost({
      give: [plugin, item(Providers, 'endless', endless)],
      config: { chat: { answer_limit: 95 } },
    })
    const events = await chatHost.stream({ message: 'hi', provider: 'endless' })
    const error = events.find(event => event.type === 'error')?.error
    expect(error).to.deep.include({
      code: 'MODEL_FAILED',
      message: 'the answer of provider "endless" has more than 95 characters',
    })
    expect(textOf(events)).to.have.lengthOf(90)
    expect(turns[0]?.kept.at(-1)).to.deep.include({ parts: [text('0123456789'.repeat(9))] })
    expect(done[0]?.failure).to.include({ kind: 'bad_request', retryable: false })
  })

  it('count reasoning, tool calls and opaque data too', async () => {
    const long = 'x'.repeat(60)
    const parts: ModelEvent[][] = [
      [
        { type: 'reasoning', text: long },
        { type: 'reasoning', text: long },
      ],
      [...calls(['t', { a: long }]).slice(0, 1), ...calls(['t', { a: long }])],
      [{ ...FINISH, providerData: long.repeat(2) } as ModelEvent],
    ]
    for (const said of parts) {
      const give = [item(Providers, 'a', scripted([said])), item(Tools, 't', tool({}))]
      await using chatHost = await startChatHost({ give, config: { chat: { answer_limit: 100 } } })
      const { message } = await codeThrown(chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext()))
      expect(message).to.equal('the answer of provider "a" has more than 100 characters')
    }
  })

  it('let so many tools run at a time, and tell their results in the order of the calls', async () => {
    let [begun, now, most, atOnce] = [0, 0, 0, 0]
    const waiting: (() => void)[] = []
    const slow = tool({
      parameters: { type: 'object' },
      async call({ n }) {
        most = Math.max(most, ++now)
        // all that may run do: one more turn of the loop, and whoever comes beyond that is here too
        if (++begun === wanted.length || now >= atOnce) for (const go of waiting.splice(0)) go()
        else await new Promise<void>(resolve => waiting.push(resolve))
        await setImmediate()
        now--
        return { content: [{ type: 'text', text: JSON.stringify(n) }] }
      },
    })
    const wanted = Array.from({ length: 30 }, (_, n): [string, object] => ['slow', { n }])
    for (const [config, limit] of [
      [{}, 8],
      [{ chat: { max_parallel_tools: 3 } }, 3],
    ] as const) {
      ;[begun, now, most, atOnce] = [0, 0, 0, limit]
      await using chatHost = await startChatHost({
        give: [item(Providers, 'a', scripted([calls(...wanted), says('so')])), item(Tools, 'slow', slow)],
        config,
      })
      const events = await chatHost.stream({ message: 'hi', provider: 'a' })
      const results = events.flatMap(event => (event.type === 'tool_result' ? [event.result] : []))
      expect(results).to.deep.equal(wanted.map((_, n) => String(n)))
      expect(most).to.equal(limit)
    }
  })
})

describe('a try of a model', () => {
  it('that said that it had finished, and failed, says nothing for the next', async () => {
    let tries = 0
    const twice = flowing(async function* () {
      tries++
      if (tries === 2) return yield text('half')
      yield FINISH
      throw failing({ kind: 'network', retryable: true })
    })
    const again = definePlugin({
      setup: scope => void scope.tap(ModelCalls.hooks.modelFailed, () => (tries < 2 ? { waitMs: 0 } : undefined)),
    })
    await using chatHost = await startChatHost({ give: [{ name: 'again', use: again }, item(Providers, 'twice', twice)] })
    const { message } = await codeThrown(chatHost.chat.reply({ message: 'hi', provider: 'twice' }, testContext()))
    expect(message).to.equal('provider "twice" ended its answer without a finish')
  })

  it('is reported with its turn, whatever id the client has given its requests', async () => {
    const { done, turns, plugin } = listening()
    const a = scripted([calls(['t']), says('one'), says('two')])
    await using chatHost = await startChatHost({ give: [plugin, item(Providers, 'a', a), item(Tools, 't', tool({}))] })
    const ctx = testContext({ requestId: 'always-the-same' })
    for (const message of ['one', 'two']) await chatHost.chat.reply({ message, provider: 'a' }, ctx)
    const [first, second] = turns.map(turn => turn.turn)
    expect(done.map(entry => entry.turn)).to.deep.equal([first, first, second])
    expect(first).to.not.equal(second)
  })
})
