import { definePlugin, type PluginRef, type Scope } from '@svc/core'
import {
  Chat,
  ModelCalls,
  Conversations,
  type MessagePart,
  type ModelEvent,
  type ModelMessage,
  type Provider,
  Providers,
  Tools,
} from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { startChatHost, codeThrown, says, scripted, textOf, tool } from './chat-host.ts'

const tapping = (setup: (scope: Scope) => void): PluginRef => ({
  name: 'tapping',
  use: definePlugin({ setup: scope => setup(scope as Scope) }),
})

const strange = (chat: () => AsyncIterable<ModelEvent>): Provider => ({
  features: { tool_calling: true, streaming: true, vision: false },
  models: async () => ({ models: [{ id: 'm' }], open: false }),
  countTokens: async () => 1,
  chat,
  probe: async () => undefined,
})

const idOf = (part: MessagePart) => ('id' in part ? part.id : part.type === 'text' ? part.text : '')

describe('the hooks of chat', () => {
  it('lets a tap of turn change what was asked', async () => {
    await using chatHost = await startChatHost({
      give: [tapping(scope => scope.tap(Chat.hooks.turn, turn => ({ ...turn, message: 'changed' })))],
    })
    expect(textOf(await chatHost.stream('original'))).to.contain('changed')
  })

  it('lets a tap of modelCall answer instead of the model', async () => {
    const events: ModelEvent[] = [
      { type: 'text', text: 'ready' },
      { type: 'finish', reason: 'stop' },
    ]
    await using chatHost = await startChatHost({
      give: [tapping(scope => scope.tap(ModelCalls.hooks.modelCall, () => ({ events })))],
    })
    expect(textOf(await chatHost.stream('hi'))).to.equal('ready')
  })

  it('asks another provider when a tap of modelFailed says so, and says who answered', async () => {
    const give = [tapping(scope => scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'other', model: 'm' })))]
    const other = strange(async function* () {
      yield { type: 'text', text: 'from the other' }
      yield { type: 'finish', reason: 'stop' }
    })
    await using chatHost = await startChatHost({ give: [...give, item(Providers, 'other', other)] })
    const reply = await chatHost.chat.reply({ message: '/fail overloaded', provider: 'local' }, testContext())
    expect(reply).to.include({ response: 'from the other', provider: 'other', model: 'm' })
  })

  it('tells every model call in modelDone, the failed ones with why', async () => {
    const seen: (string | undefined)[] = []
    await using chatHost = await startChatHost({
      give: [tapping(scope => scope.tap(ModelCalls.hooks.modelDone, done => void seen.push(done.failure?.kind)))],
    })
    await chatHost.stream('hi')
    await codeThrown(chatHost.stream('/fail rate_limited'))
    expect(seen).to.deep.equal([undefined, 'rate_limited'])
  })

  it('lets a tap of toolCall deny with a reason, change the arguments, and answer', async () => {
    const verdicts = {
      UTC: { verdict: 'deny', reason: 'not today' },
      'Asia/Tokyo': { verdict: 'change', arguments: { time_zone: 'Europe/Paris' } },
      'Europe/Rome': { verdict: 'answer', result: { content: [{ type: 'text', text: 'noon' }] } },
    } as const
    const tap = tapping(scope =>
      scope.tap(Chat.hooks.toolCall, call => verdicts[call.arguments.time_zone as keyof typeof verdicts])
    )
    await using chatHost = await startChatHost({ give: [tap] })
    const lines = Object.keys(verdicts).map(zone => `/tool current_time {"time_zone":"${zone}"}`)
    const { toolsUsed } = await chatHost.chat.reply({ message: lines.join('\n') }, testContext())
    expect(toolsUsed[0]).to.include({ success: false, error: 'Not allowed: not today' })
    expect(toolsUsed[1]).to.deep.include({ success: true, arguments: { time_zone: 'Europe/Paris' } })
    expect(toolsUsed[2]).to.include({ success: true })
  })
})

describe('chat with bad plugins', () => {
  it('takes a provider that throws something of its own as a failed one, and tells no stack', async () => {
    const bad = strange(() => {
      throw new Error('secret inside')
    })
    await using chatHost = await startChatHost({ give: [item(Providers, 'bad', bad)] })
    const { code, message } = await codeThrown(chatHost.chat.reply({ message: 'hi', provider: 'bad' }, testContext()))
    expect(code).to.equal('MODEL_FAILED')
    expect(message).to.not.contain('secret')
  })

  it('does not wait for a provider that heeds no abort', async () => {
    const never = () => new Promise<never>(() => undefined)
    const deaf = strange(() => ({ [Symbol.asyncIterator]: () => ({ next: never, return: never }) }))
    await using chatHost = await startChatHost({ give: [item(Providers, 'deaf', deaf)], config: { chat: { timeout_ms: 20 } } })
    const { details } = await codeThrown(chatHost.chat.reply({ message: 'hi', provider: 'deaf' }, testContext()))
    expect(details).to.include({ kind: 'timeout' })
  })

  it('does not wait for a provider that tells its models to the selection and never again', async () => {
    const deaf = strange(() => {
      throw new Error('not asked')
    })
    let asked = 0
    const models = () => (asked++ === 0 ? Promise.resolve({ models: [], open: true }) : new Promise<never>(() => undefined))
    const give = [item(Providers, 'deaf', { ...deaf, models })]
    await using chatHost = await startChatHost({ give, config: { chat: { first_token_timeout_ms: 20 } } })
    const { code, details } = await codeThrown(
      chatHost.chat.reply({ message: 'hi', provider: 'deaf', model: 'm' }, testContext())
    )
    expect(code).to.equal('MODEL_FAILED')
    expect(details).to.include({ kind: 'timeout', retryable: true, provider: 'deaf' })
  })

  it('refuses an answer without a finish', async () => {
    const cut = strange(async function* () {
      yield { type: 'text', text: 'half' }
    })
    await using chatHost = await startChatHost({ give: [item(Providers, 'cut', cut)] })
    const events = await chatHost.stream({ message: 'hi', provider: 'cut' })
    expect(events.map(event => event.type)).to.deep.equal(['start', 'token', 'error', 'end'])
  })

  it('estimates the tokens of an answer that broke off where the provider can no longer count, and uses its counts where it reported any', async () => {
    const gone: Provider = {
      ...strange(async function* () {
        yield { type: 'text', text: 'eight by' }
      }),
      countTokens: () => Promise.reject(new Error('out of reach')),
    }
    const reported = strange(async function* () {
      yield { type: 'text', text: 'half' }
      yield { type: 'usage', usage: { input: 7, output: 5 } }
    })
    await using chatHost = await startChatHost({ give: [item(Providers, 'gone', gone), item(Providers, 'told', reported)] })
    const usageOf = async (provider: string) => {
      const end = (await chatHost.stream({ message: 'hi', provider })).at(-1)
      return end?.type === 'end' ? end.usage : undefined
    }
    expect(await usageOf('gone')).to.include({ output: 2 })
    expect((await usageOf('gone'))?.input).to.be.greaterThan(0)
    expect(await usageOf('told')).to.deep.equal({ input: 7, output: 5, total: 12 })
  })

  it('ends a tool at its limit and tells the model', async () => {
    const slow = tool({ call: () => new Promise(() => undefined), timeoutMs: 20 })
    await using chatHost = await startChatHost({ give: [item(Tools, 'slow', slow)] })
    const { toolsUsed } = await chatHost.chat.reply({ message: '/tool slow {}' }, testContext())
    expect(toolsUsed[0]?.error).to.match(/did not end within 20 ms/)
  })

  it('aborts a running tool when the caller leaves, and keeps no call without its result', async () => {
    const ending = new AbortController()
    const aborted = Promise.withResolvers<boolean>()
    const waits = tool({
      call: (_args, ctx) =>
        new Promise((_, reject) => {
          ctx.signal.addEventListener('abort', () => reject(new Error('left')))
          ctx.signal.addEventListener('abort', () => aborted.resolve(true))
          ending.abort()
        }),
    })
    const call = (id: string, name: string): ModelEvent => ({ type: 'tool_call', id, tool: name, arguments: {} })
    const asks = (...events: ModelEvent[]): ModelEvent[] => [...events, { type: 'finish', reason: 'tool_calls' }]
    const a = scripted([asks(call('first', 'quick')), asks({ type: 'text', text: 'Wait.' }, call('second', 'waits')), says('so')])
    const give = [item(Providers, 'a', a), item(Tools, 'quick', tool({})), item(Tools, 'waits', waits)]
    await using chatHost = await startChatHost({ give })
    let conversationId = ''
    for await (const event of chatHost.chat.stream({ message: 'hi', provider: 'a' }, testContext({ signal: ending.signal }))) {
      if (event.type === 'start') conversationId = event.conversationId
      if (event.type === 'end') expect(event.status).to.equal('cancelled')
    }
    expect(await aborted.promise).to.equal(true)
    const conversations = chatHost.host.service(Conversations)
    const { turns, ticket } = await conversations.begin({ conversationId, waitMs: 5000, history: 1 }, testContext())
    await conversations.end(ticket, testContext())
    const partsOf = (messages: readonly ModelMessage[]) =>
      messages.flatMap(({ role, parts }) => parts.map(part => `${role} ${part.type} ${idOf(part)}`))
    const kept = ['user text hi', 'assistant tool_call first', 'tool tool_result first', 'assistant text Wait.']
    expect(partsOf(turns.flat())).to.deep.equal(kept)
    await chatHost.chat.reply({ message: 'and now?', provider: 'a', conversationId }, testContext())
    expect(partsOf(a.requests.at(-1)!.messages)).to.deep.equal([...kept, 'user text and now?'])
  })

  it('takes an answer of no known shape as a failed call, and the turn goes on', async () => {
    for (const answer of [undefined, 'text', { content: 'text' }, { content: [{ type: 'text' }] }]) {
      const odd = tool({ call: async () => answer as never })
      await using chatHost = await startChatHost({ give: [item(Tools, 'odd', odd)] })
      const { status, toolsUsed } = await chatHost.chat.reply({ message: '/tool odd {}' }, testContext())
      expect([status, toolsUsed[0]?.success], JSON.stringify(answer)).to.deep.equal(['completed', false])
      expect(toolsUsed[0]?.error).to.contain('did not return { content')
    }
  })

  it('cuts a tool result that is too long, with a note', async () => {
    const long = tool({ call: async () => ({ content: [{ type: 'text', text: 'x'.repeat(5000) }] }) })
    await using chatHost = await startChatHost({
      give: [item(Tools, 'long', long)],
      config: { chat: { tool_result_limit: 100 } },
    })
    const result = (await chatHost.stream('/tool long {}')).find(event => event.type === 'tool_result')
    expect(result?.result).to.match(/^x{100}\n\[cut: 4900 characters more\]$/)
  })

  it('stops a model that calls tools for ever, with a last answer', async () => {
    let round = 0
    const greedy: Provider = {
      ...strange(() => EMPTY),
      async *chat(request) {
        if (request.tools) yield { type: 'tool_call', id: `c${++round}`, tool: 'again', arguments: {} }
        else yield { type: 'text', text: 'enough' }
        yield { type: 'finish', reason: request.tools ? 'tool_calls' : 'stop' }
      },
    }
    await using chatHost = await startChatHost({
      give: [item(Providers, 'greedy', greedy), item(Tools, 'again', tool({}))],
      config: { chat: { max_rounds: 4 } },
    })
    const reply = await chatHost.chat.reply({ message: 'go', provider: 'greedy' }, testContext())
    expect(reply.response).to.equal('enough')
    expect(reply.toolsUsed).to.have.length(3)
  })
})

const EMPTY: AsyncIterable<ModelEvent> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true as const, value: undefined }) }),
}

describe('modes', () => {
  it('forbid tools by their effects', async () => {
    const writes = tool({ effects: ['write'] })
    await using chatHost = await startChatHost({
      give: [item(Tools, 'writes', writes)],
      profiles: 'default: p\nprofiles:\n  p: { mode: review }\n',
    })
    const { code, details } = await codeThrown(chatHost.chat.reply({ message: 'hi', tools: ['writes'] }, testContext()))
    expect([code, details.reason]).to.deep.equal(['INVALID_VALUE', 'not allowed in mode review'])
    expect((await chatHost.chat.reply({ message: '/tool writes {}' }, testContext())).toolsUsed).to.deep.equal([])
  })
})
