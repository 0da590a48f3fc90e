import { definePlugin, type PluginRef, type Scope, svcError } from '@svc/core'
import { ModelCalls, type ContentPart, Conversations, type ModelMessage, Providers, Tools } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, codeThrown, says, scripted, tool } from './chat-host.ts'

const tapping = (setup: (scope: Scope) => void): PluginRef => ({
  name: 'tapping',
  use: definePlugin({ setup: scope => setup(scope as Scope) }),
})
const textOf = (content: readonly ContentPart[]) => content.map(part => (part.type === 'text' ? part.text : '')).join('')
/** A message in a word: `user:hi`, `assistant:call t`, `tool:done`. */
const brief = ({ role, parts }: ModelMessage) =>
  `${role}:${parts
    .map(part =>
      part.type === 'text'
        ? part.text
        : part.type === 'tool_call'
          ? `call ${part.id}`
          : part.type === 'tool_result'
            ? textOf(part.content)
            : part.type
    )
    .join('+')}`
/** Calls without a result, results without a call, and messages without parts: what no model may see. */
const faultsIn = (messages: readonly ModelMessage[]) =>
  messages.flatMap((message, at) => {
    const ids = (type: 'tool_call' | 'tool_result', entry: ModelMessage | undefined) =>
      entry?.parts.flatMap(part => (part.type === type ? [part.id] : [])).join() ?? ''
    return message.parts.length > 0 &&
      ids('tool_call', message) === ids('tool_result', message.role === 'assistant' ? messages[at + 1] : undefined)
      ? []
      : message.role === 'tool' && ids('tool_result', message) === ids('tool_call', messages[at - 1])
        ? []
        : [brief(message)]
  })
const resultIn = (messages: readonly ModelMessage[]) => {
  const part = messages.at(-1)?.parts[0]
  if (part?.type !== 'tool_result') throw new Error('no result')
  return part
}
const long = (length: number) => tool({ call: async () => ({ content: [{ type: 'text', text: 'x'.repeat(length) }] }) })

describe('the history of a conversation', () => {
  it('holds whole turns for the model, calls and results too, and user and assistant for callers', async () => {
    const a = scripted([calls(['t'], ['t']), says('first'), says('second')])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({}))] })
    const { conversationId } = await chatHost.chat.reply({ message: 'one', provider: 'a' }, testContext())
    await chatHost.chat.reply({ message: 'two', provider: 'a', conversationId }, testContext())
    expect(a.requests[2]?.messages.map(brief)).to.deep.equal([
      'user:one',
      'assistant:call c1+call c2',
      'tool:done+done',
      'assistant:first',
      'user:two',
    ])
    const { messages } = await chatHost.host.service(Conversations).get(conversationId, testContext())
    expect(messages.map(message => `${message.role}:${message.content}`)).to.deep.equal([
      'user:one',
      'assistant:first',
      'user:two',
      'assistant:second',
    ])
  })

  it('has no call without its result after a turn that failed or was left while tools ran', async () => {
    const ending = new AbortController()
    const waits = tool({ call: () => new Promise(() => ending.abort()) })
    const fail = () => {
      throw svcError('MODEL_FAILED', 'gone', { details: { kind: 'network', retryable: true } })
    }
    const a = scripted([says('begin'), calls(['waits'], ['t']), calls(['t']), fail, calls(['t']).slice(0, 1), says('end')])
    const give = [item(Providers, 'a', a), item(Tools, 't', tool({})), item(Tools, 'waits', waits)]
    await using chatHost = await startChatHost({ give })
    const { conversationId } = await chatHost.chat.reply({ message: 'begin', provider: 'a' }, testContext())
    const turn = (message: string) => ({ message, provider: 'a', conversationId })
    for await (const event of chatHost.chat.stream(turn('left'), testContext({ signal: ending.signal })))
      if (event.type === 'end') expect(event.status).to.equal('cancelled')
    const failed = await chatHost.stream(turn('failed'))
    expect(failed.at(-1)).to.include({ status: 'failed' })
    // one that ends its answer after a call, without a finish
    expect((await chatHost.stream(turn('cut'))).at(-1)).to.include({ status: 'failed' })
    await chatHost.chat.reply(turn('end'), testContext())
    const seen = a.requests.at(-1)!.messages
    expect(faultsIn(seen)).to.deep.equal([])
    expect(seen.map(brief)).to.deep.equal([
      'user:begin',
      'assistant:begin',
      'user:left',
      'user:failed',
      'assistant:call c1',
      'tool:done',
      'user:cut',
      'user:end',
    ])
    const { messages } = await chatHost.host.service(Conversations).get(conversationId, testContext())
    expect(messages.every(message => message.role === 'user' || message.role === 'assistant')).to.equal(true)
    expect(messages.filter(message => message.status).map(message => message.status)).to.deep.equal([
      'cancelled',
      'failed',
      'failed',
    ])
  })

  it('gives opaque data back to its own provider alone, within a turn too', async () => {
    const a = scripted([
      [
        { type: 'reasoning', text: 'hm', providerData: 'sealed' },
        ...calls(['t']).slice(0, 1),
        { type: 'finish', reason: 'tool_calls', providerData: 'mine' },
      ],
      () => {
        throw svcError('MODEL_FAILED', 'gone', { details: { kind: 'network', retryable: true } })
      },
    ])
    const b = scripted([says('b')])
    const tap = tapping(scope => scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'b', model: 'm' })))
    await using chatHost = await startChatHost({
      give: [tap, item(Providers, 'a', a), item(Providers, 'b', b), item(Tools, 't', tool({}))],
    })
    await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect(JSON.stringify(a.requests[1]?.messages)).to.include('sealed').and.include('mine')
    expect(JSON.stringify(b.requests[0]?.messages)).to.not.match(/sealed|mine/)
    expect(b.requests[0]?.messages.map(brief)).to.deep.equal(['user:hi', 'assistant:call c1', 'tool:done'])
  })
})

describe('a context that is too small', () => {
  const models = [{ id: 'm', context: 3_000, output: 200 }]

  it('loses first what tools of the past answered at length, then whole turns, oldest first', async () => {
    const a = scripted([request => (request.messages.at(-1)?.parts[0]?.type === 'text' ? calls(['t']) : says('so'))], models)
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', long(2_200))] })
    let conversationId: string | undefined
    for (const message of ['one', 'two', 'three'])
      conversationId = (
        await chatHost.chat.reply({ message, provider: 'a', ...(conversationId ? { conversationId } : {}) }, testContext())
      ).conversationId
    for (const { messages } of a.requests) {
      expect(faultsIn(messages)).to.deep.equal([])
      expect(JSON.stringify(messages).length).to.be.at.most(2_800)
    }
    const last = a.requests.at(-1)!.messages
    expect(last.find(message => message.role === 'user')?.parts).to.deep.equal([{ type: 'text', text: 'three' }])
    expect(textOf(resultIn(last).content)).to.have.length(2_200)
  })

  it('cuts the results of the running turn, oldest first, when its tools outgrow it', async () => {
    let round = 0
    const a = scripted([() => (++round > 5 ? says('so') : calls(['t']))], [{ id: 'm', context: 4_000, output: 200 }])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', long(1_500))] })
    const reply = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect([reply.response, reply.toolsUsed.length]).to.deep.equal(['so', 5])
    for (const { messages } of a.requests) {
      expect(faultsIn(messages)).to.deep.equal([])
      expect(JSON.stringify(messages).length).to.be.at.most(3_800)
    }
    const results = a.requests
      .at(-1)!
      .messages.filter(message => message.role === 'tool')
      .map(brief)
    expect(results).to.have.length(5)
    expect(results[0]).to.match(/^tool:x{200}\n\[cut: 1300 characters more\]$/)
    expect(results[4]).to.match(/^tool:x{1500}$/)
  })

  it('cuts even the last result, where that alone is too long', async () => {
    const a = scripted([calls(['t'], ['t']), says('so')], models)
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', long(50_000))] })
    expect((await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())).response).to.equal('so')
    expect(brief(a.requests[1]!.messages.at(-1)!)).to.match(/^tool:x{1000}\n\[cut: 49000 characters more\]\+x{1000}\n\[cut/)
  })

  it('refuses a message that does not fit at all, with limit and count, before anybody is asked', async () => {
    const a = scripted([says('so')], models)
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a)] })
    const { code, details } = await codeThrown(chatHost.chat.reply({ message: 'x'.repeat(5_000), provider: 'a' }, testContext()))
    expect(code).to.equal('MODEL_FAILED')
    expect(details).to.include({ kind: 'context_too_long', limit: 3_000, provider: 'a' })
    expect(details.count).to.be.above(5_000)
    expect(a.requests).to.deep.equal([])
  })

  it('lets another model take what does not fit', async () => {
    const [a, b] = [scripted([says('a')], models), scripted([says('b')])]
    const tap = tapping(scope => scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'b', model: 'm' })))
    await using chatHost = await startChatHost({ give: [tap, item(Providers, 'a', a), item(Providers, 'b', b)] })
    expect(await chatHost.chat.reply({ message: 'x'.repeat(5_000), provider: 'a' }, testContext())).to.include({ response: 'b' })
  })

  it('is counted where an upstream does not say how long it was', async () => {
    const refuses = () => {
      throw svcError('MODEL_FAILED', 'too long', { details: { kind: 'context_too_long', retryable: false } })
    }
    await using chatHost = await startChatHost({
      give: [item(Providers, 'a', scripted([refuses], [{ id: 'm', context: 100_000 }]))],
    })
    const { details } = await codeThrown(chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext()))
    expect(details).to.include({ kind: 'context_too_long', limit: 100_000 })
    expect(details.count).to.be.a('number')
  })

  it('is estimated where a provider cannot count', async () => {
    const never = { countTokens: () => Promise.reject(new Error('cannot')) }
    const a = scripted([says('so')], models, never)
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a)] })
    expect((await chatHost.chat.reply({ message: 'x'.repeat(2_000), provider: 'a' }, testContext())).response).to.equal('so')
    const { details } = await codeThrown(chatHost.chat.reply({ message: 'x'.repeat(50_000), provider: 'a' }, testContext()))
    expect(details).to.include({ kind: 'context_too_long', limit: 3_000 })
  })
})
