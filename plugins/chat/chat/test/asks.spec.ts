import { mock } from 'node:test'
import { definePlugin, type PluginRef, type Scope, type CallContext } from '@svc/core'
import { Chat, type TurnEvent, Tools, Providers } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, type ChatHost, codeThrown, says, scripted, tool } from './chat-host.ts'

const tapping = (setup: (scope: Scope) => void): PluginRef => ({
  name: 'tapping',
  use: definePlugin({ setup: scope => setup(scope as Scope) }),
})

const asking = (more: object = {}) => [
  item(Providers, 'a', scripted([request => (request.messages.at(-1)?.role === 'tool' ? says('so') : calls(['t', { n: 1 }]))])),
  item(Tools, 't', tool({ asks: true, ...more })),
]

/** Streams an interactive turn; `heard` is told each question. */
async function converse(chatHost: ChatHost, heard: (ask: Extract<TurnEvent, { type: 'ask' }>) => unknown, ctx = testContext()) {
  const events: TurnEvent[] = []
  for await (const event of chatHost.chat.stream({ message: 'hi', provider: 'a', interactive: true }, ctx)) {
    events.push(event)
    if (event.type === 'ask') await heard(event)
  }
  return events
}
const resultIn = (events: TurnEvent[]) => events.find(event => event.type === 'tool_result')

describe('a tool that asks', () => {
  it('runs once the person who reads along allows it', async () => {
    await using chatHost = await startChatHost({ give: asking() })
    const events = await converse(chatHost, ({ callId }) =>
      chatHost.chat.answer({ requestId: 'test', callId, allow: true }, testContext())
    )
    expect(events.map(event => event.type)).to.deep.equal(['start', 'tool_call', 'ask', 'tool_result', 'token', 'end'])
    const { until, ...asked } = events[2] as Extract<TurnEvent, { type: 'ask' }>
    expect(asked).to.deep.equal({
      type: 'ask',
      tool: 't',
      callId: 'c1',
      arguments: { n: 1 },
      question: 'May the tool "t" run?',
    })
    expect(until).to.be.within(Date.now() + 30_000, Date.now() + 60_000)
    expect(resultIn(events)).to.include({ success: true })
  })

  it('does not when that person says no: the model gets the reason', async () => {
    await using chatHost = await startChatHost({ give: asking() })
    const said = async (reason?: string) =>
      resultIn(
        await converse(chatHost, ({ callId }) =>
          chatHost.chat.answer({ requestId: 'test', callId, allow: false, ...(reason ? { reason } : {}) }, testContext())
        )
      )
    expect(await said('too risky')).to.include({ success: false, error: 'Not allowed: too risky' })
    expect(await said()).to.include({ success: false, error: 'Not allowed: the user denied the call.' })
  })

  it('is denied after chat.ask_timeout_ms, and the wait is no part of its own time', async () => {
    await using chatHost = await startChatHost({ give: asking(), config: { chat: { ask_timeout_ms: 20 } } })
    expect(resultIn(await converse(chatHost, () => undefined))).to.include({
      success: false,
      error: 'Not allowed: the user did not answer in time.',
    })
    const patient = asking({ timeoutMs: 40 })
    await using other = await startChatHost({ give: patient })
    const answer = (callId: string) => other.chat.answer({ requestId: 'test', callId, allow: true }, testContext())
    mock.timers.enable({ apis: ['setTimeout'] })
    const events = await converse(other, ({ callId }) => {
      mock.timers.tick(60)
      return answer(callId)
    }).finally(() => mock.timers.reset())
    expect(resultIn(events)).to.include({ success: true })
  })

  it('is denied in words where no person can be asked, and does not wait', async () => {
    await using chatHost = await startChatHost({ give: asking() })
    const turn = { message: 'hi', provider: 'a' }
    const [plain] = (await chatHost.chat.reply({ ...turn, interactive: true }, testContext())).toolsUsed
    expect(plain?.error).to.match(
      /^Not allowed: the call needs the approval of a person .* this turn has no interactive reader\.$/
    )
    expect(resultIn(await chatHost.stream(turn))).to.include({ success: false })
  })

  it('is free when the caller leaves, and the question is gone', async () => {
    await using chatHost = await startChatHost({ give: asking() })
    const ending = new AbortController()
    const events = await converse(chatHost, () => ending.abort(), testContext({ signal: ending.signal }))
    expect(events.at(-1)).to.include({ type: 'end', status: 'cancelled' })
    const { code } = await codeThrown(chatHost.chat.answer({ requestId: 'test', callId: 'c1', allow: true }, testContext()))
    expect(code).to.equal('QUESTION_UNKNOWN')
  })

  it('is free when the reader just stops reading, and so are the others of its round', async () => {
    const stopped = Promise.withResolvers<void>()
    const waits = tool({
      call: (_args, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => (stopped.resolve(), reject(new Error('stopped'))))
        }),
    })
    const a = scripted([calls(['t'], ['waits'])])
    const give = [item(Providers, 'a', a), item(Tools, 't', tool({ asks: true })), item(Tools, 'waits', waits)]
    await using chatHost = await startChatHost({ give })
    for await (const event of chatHost.chat.stream({ message: 'hi', provider: 'a', interactive: true }, testContext()))
      if (event.type === 'ask') break
    await stopped.promise
    const { code } = await codeThrown(chatHost.chat.answer({ requestId: 'test', callId: 'c1', allow: true }, testContext()))
    expect(code).to.equal('QUESTION_UNKNOWN')
  })

  it('is answered by the principal of the turn alone: another one gets the error of an unknown question', async () => {
    await using chatHost = await startChatHost({ give: asking() })
    const stranger: CallContext = { ...testContext(), principal: { id: 'stranger', scopes: ['*'] } }
    const reported: unknown[] = []
    const events = await converse(chatHost, async ({ callId }) => {
      for (const [id, ctx] of [
        [callId, stranger],
        ['nothing', testContext()],
      ] as const) {
        const { code, message, details } = await codeThrown(
          chatHost.chat.answer({ requestId: 'test', callId: id, allow: true }, ctx)
        )
        reported.push([code, message, Object.keys(details)])
      }
      await chatHost.chat.answer({ requestId: 'test', callId, allow: true }, testContext())
      reported.push((await codeThrown(chatHost.chat.answer({ requestId: 'test', callId, allow: true }, testContext()))).code)
    })
    expect(resultIn(events)).to.include({ success: true })
    expect(reported[0]).to.deep.equal(reported[1])
    expect(reported[2]).to.equal('QUESTION_UNKNOWN')
  })

  it('does not bother anybody with arguments that break the schema', async () => {
    await using chatHost = await startChatHost({ give: asking({ parameters: { type: 'object', required: ['path'] } }) })
    const events = await converse(chatHost, () => expect.fail('asked'))
    expect(resultIn(events)).to.include({ success: false })
  })

  it('is not asked about where a plugin allows the call, and one that does not ask is where a plugin wants it', async () => {
    const allow = tapping(scope => scope.tap(Chat.hooks.toolCall, () => ({ verdict: 'allow' as const })))
    await using chatHost = await startChatHost({ give: [allow, ...asking()] })
    expect(resultIn(await converse(chatHost, () => expect.fail('asked')))).to.include({ success: true })
    const ask = tapping(scope => scope.tap(Chat.hooks.toolCall, () => ({ verdict: 'ask' as const, question: 'Really?' })))
    await using other = await startChatHost({ give: [ask, ...asking({ asks: false })] })
    const events = await converse(other, ({ callId }) =>
      other.chat.answer({ requestId: 'test', callId, allow: true }, testContext())
    )
    expect(events.find(event => event.type === 'ask')).to.include({ question: 'Really?' })
  })

  it('asks beside another of its round', async () => {
    const a = scripted([calls(['t'], ['t'], ['t']), says('so')])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({ asks: true }))] })
    const seen: string[] = []
    const events = await converse(chatHost, async ({ callId }) => {
      if (seen.push(callId) < 3) return
      for (const id of seen.toReversed())
        await chatHost.chat.answer({ requestId: 'test', callId: id, allow: id !== 'c2' }, testContext())
    })
    expect(events.flatMap(event => (event.type === 'tool_result' ? [[event.callId, event.success]] : []))).to.deep.equal([
      ['c1', true],
      ['c2', false],
      ['c3', true],
    ])
  })
})
