import { setImmediate } from 'node:timers/promises'
import { definePlugin, type PluginRef, type Scope, svcError } from '@svc/core'
import { Chat, type ContentPart, type ModelEvent, type Tool, Tools, Providers } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, says, scripted, tool } from './chat-host.ts'

const text = (words: string): ContentPart => ({ type: 'text', text: words })
const tapping = (setup: (scope: Scope) => void): PluginRef => ({
  name: 'tapping',
  use: definePlugin({ setup: scope => setup(scope as Scope) }),
})

/** What comes of one call of this tool, and what the model is told of it. */
async function callOf(entry: Partial<Tool>, args: object = {}, config: object = {}) {
  const a = scripted([calls(['t', args]), says('so')])
  await using chatHost = await startChatHost({
    give: [item(Providers, 'a', a), item(Tools, 't', tool(entry))],
    config: { chat: config as never },
    strict: false,
  })
  const events = await chatHost.stream({ message: 'hi', provider: 'a' })
  const result = events.find(event => event.type === 'tool_result')!
  const reported = a.requests[1]!.messages.at(-1)!.parts[0]!
  const end = events.at(-1)
  if (reported.type !== 'tool_result' || end?.type !== 'end') throw new Error('no result')
  return { result, told: reported, status: end.status, used: end.toolsUsed[0]! }
}
const answering = (answer: unknown): Partial<Tool> => ({ call: async () => answer as never })
const wordsOf = (content: readonly ContentPart[]) => content.map(part => (part.type === 'text' ? part.text : part.type)).join('|')

describe('a tool call', () => {
  it('is reported to the model when its arguments break the schema, which may try again', async () => {
    const parameters = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false }
    const a = scripted([calls(['t', { n: 'one' }]), calls(['t', { n: 1 }]), says('so')])
    const given: unknown[] = []
    const call: Tool['call'] = async args => (given.push(args), { content: [text('done')] })
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({ parameters, call }))] })
    const { toolsUsed } = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect(toolsUsed.map(entry => entry.error)).to.deep.equal([
      'The arguments are invalid: n must be integer, was text "one". Fix them and call again.',
      undefined,
    ])
    expect(given).to.deep.equal([{ n: 1 }])
  })

  it('returns an error to the model when its arguments are not JSON', async () => {
    const broken: ModelEvent = { type: 'tool_call', id: 'c1', tool: 't', arguments: {}, invalid: '{"n":' }
    const a = scripted([[broken, { type: 'finish', reason: 'tool_calls' }], says('so')])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({}))] })
    const { toolsUsed } = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect(toolsUsed[0]?.error).to.match(/not a JSON object.*\{"n":/)
  })

  it('with arguments of a megabyte is refused in words, and they are kept nowhere', async () => {
    const { told: reported, used, status } = await callOf({}, { body: 'x'.repeat(1_100_000) })
    expect(wordsOf(reported.content)).to.match(/more than 1000000 characters/)
    expect([JSON.stringify(used).length < 1_000, status]).to.deep.equal([true, 'completed'])
  })

  it('with a million faults in its arguments is refused in few words', async () => {
    const parameters = { type: 'object', properties: { list: { type: 'array', items: { type: 'integer' } } } }
    const { used } = await callOf({ parameters }, { list: Array.from({ length: 100_000 }, () => 'x') })
    expect(used.error).to.match(/must be integer/)
    expect(used.error!.length).to.be.below(1_000)
  })

  it('with arguments nested without end is refused in words', async () => {
    let deep: object = {}
    for (let i = 0; i < 100_000; i++) deep = { deep }
    const { used, status } = await callOf({ parameters: { type: 'object', properties: { a: { type: 'string' } } } }, deep)
    expect([used.success, status]).to.deep.equal([false, 'completed'])
  })

  it('of a tool with a broken schema returns an error to the model, and is logged once', async () => {
    const parameters = { type: 'object', properties: { n: { type: 'nonsense' } }, required: ['n'] }
    const lines: string[] = []
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    const a = scripted([calls(['t', { n: 1 }]), calls(['t', { n: 1 }]), says('so')])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({ parameters }))], log })
    const { status, toolsUsed } = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect([status, toolsUsed.length]).to.deep.equal(['completed', 2])
    for (const { error } of toolsUsed)
      expect(error).to.match(/^The tool "t" is broken and cannot be called: its parameters are not a valid JSON Schema/)
    const logged = lines.map(line => JSON.parse(line)).filter(line => line.level === 50)
    expect(logged.map(line => line.msg)).to.deep.equal([
      'the parameters of a tool are not a valid JSON Schema; the tool cannot be called',
    ])
  })

  it('is checked by patterns that take no longer than the text is long', async () => {
    const parameters = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
    const { used } = await callOf({ parameters }, { a: `${'a'.repeat(34)}b` })
    expect(used.error).to.match(/^The arguments are invalid: a must match \^\(a\+\)\+\$/)
    expect((await callOf({ parameters }, { a: 'aaa' })).used.success).to.equal(true)
  })

  it('is not checked by a pattern that could take for ever: what it means the tool itself must check', async () => {
    const parameters = { type: 'object', properties: { a: { type: 'string', pattern: '^(?!b)', maxLength: 3 } } }
    expect((await callOf({ parameters }, { a: 'b' })).used.success).to.equal(true)
    expect((await callOf({ parameters }, { a: 'long' })).used.error).to.match(/must have at most 3 characters/)
  })

  it('runs beside the others of its round, and the results are in the order of the calls', async () => {
    const first = Promise.withResolvers<void>()
    const slow = tool({ call: async () => (await first.promise, { content: [text('slow')] }) })
    const quick = tool({ call: async () => (first.resolve(), { content: [text('quick')] }) })
    const a = scripted([calls(['slow'], ['quick']), says('so')])
    await using chatHost = await startChatHost({
      give: [item(Providers, 'a', a), item(Tools, 'slow', slow), item(Tools, 'quick', quick)],
    })
    const events = await chatHost.stream({ message: 'hi', provider: 'a' })
    expect(events.flatMap(event => (event.type === 'tool_result' ? [event.result] : []))).to.deep.equal(['slow', 'quick'])
    expect(a.requests[1]?.messages.at(-1)?.parts.map(part => part.type === 'tool_result' && part.id)).to.deep.equal(['c1', 'c2'])
  })

  it('that has the id of another gets one of its own', async () => {
    const twice = calls(['t']).slice(0, 1)
    const a = scripted([[...twice, ...calls(['t'])], says('so')])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({}))] })
    const { toolsUsed } = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect(toolsUsed.map(entry => entry.callId)).to.deep.equal(['c1', 'c1_2'])
  })

  it('is denied where a tap fails that was to say whether it may run', async () => {
    const tap = tapping(scope => scope.tap(Chat.hooks.toolCall, () => Promise.reject(new Error('broken'))))
    await using chatHost = await startChatHost({ give: [tap] })
    const { status, toolsUsed } = await chatHost.chat.reply({ message: '/tool current_time {}' }, testContext())
    expect([status, toolsUsed[0]?.success]).to.deep.equal(['completed', false])
    expect(toolsUsed[0]?.error).to.match(/^Not allowed/)
  })

  it('in the last round comes too late: the turn ends with what was said', async () => {
    const a = scripted([calls(['t'])])
    await using chatHost = await startChatHost({
      give: [item(Providers, 'a', a), item(Tools, 't', tool({}))],
      config: { chat: { max_rounds: 3 } },
    })
    const reply = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect([reply.status, reply.toolsUsed.length, a.requests.length]).to.deep.equal(['completed', 2, 3])
  })

  it('beyond the budget of the mode is not run, and then the model has to answer without tools', async () => {
    const many = Array.from({ length: 30 }, (): [string] => ['t'])
    const a = scripted([calls(...many), says('enough')])
    const give = [item(Providers, 'a', a), item(Tools, 't', tool({}))]
    await using chatHost = await startChatHost({ give, profiles: 'default: p\nprofiles:\n  p: { mode: plan }\n' })
    const { toolsUsed, response } = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect(toolsUsed.filter(entry => entry.success)).to.have.length(25)
    expect(toolsUsed.at(-1)?.error).to.equal('This turn may make no more tool calls. Answer with what you have.')
    expect([response, a.requests[1]?.tools]).to.deep.equal(['enough', undefined])
  })
})

describe('what a tool answers', () => {
  const LIMIT = { tool_result_limit: 100 }

  it('is cut over all its texts, with notes', async () => {
    const { told: reported } = await callOf(
      answering({ content: [text('a'.repeat(60)), text('b'.repeat(60)), text('c')] }),
      {},
      LIMIT
    )
    expect(wordsOf(reported.content)).to.equal(
      `${'a'.repeat(60)}|${'b'.repeat(40)}\n[cut: 20 characters more]|\n[cut: 1 characters more]`
    )
  })

  it('is never cut within a character', async () => {
    const { told: reported } = await callOf(answering({ content: [text('😀'.repeat(60))] }), {}, { tool_result_limit: 99 })
    expect(wordsOf(reported.content)).to.equal(`${'😀'.repeat(49)}\n[cut: 21 characters more]`)
  })

  it('counts with its data: more than the limit is left out with a note', async () => {
    const big = { rows: Array.from({ length: 1_000 }, (_, at) => ({ at })) }
    const { result, told: reported } = await callOf(answering({ content: [text('rows')], structured: big }), {}, LIMIT)
    expect(wordsOf(reported.content)).to.equal('rows|[data left out: more than 100 characters]')
    expect(result).to.include({ result: 'rows\n[data left out: more than 100 characters]', success: true })
  })

  it('of fifty megabytes, in any form, neither takes long nor is kept', async () => {
    const big = 'x'.repeat(50_000_000)
    const many = Array.from({ length: 5_000_000 }, () => 1)
    for (const answer of [
      { content: [text(big)] },
      { content: [{ type: 'image', data: big, mimeType: 'image/png' }] },
      { content: [{ type: 'resource', resource: { text: big } }] },
      { content: [text('ok')], structured: { big } },
      { content: [text('ok')], structured: many },
      { content: [text('ok')], structured: new Uint8Array(50_000_000) },
      { content: Array.from({ length: 1_000_000 }, () => text('')) },
      { content: [text(big)], isError: true },
    ]) {
      const { result, told: reported, status } = await callOf(answering(answer))
      expect(JSON.stringify([result, reported]).length).to.be.below(450_000)
      expect(status).to.equal('completed')
      expect(wordsOf(reported.content)).to.match(/cut: \d+|left out/)
    }
  }).timeout(60_000)

  it('is a failure where it is no answer, or holds what is no JSON', async () => {
    const circle: Record<string, unknown> = {}
    circle.self = circle
    for (const answer of [null, 7, { content: [null] }, { content: [], structured: 1n }, { content: [], structured: () => 1 }]) {
      const { told: reported, status } = await callOf(answering(answer))
      expect([reported.isError, status]).to.deep.equal([true, 'completed'])
    }
    const { told: result } = await callOf(answering({ content: [text('round')], structured: circle }))
    expect(wordsOf(result.content)).to.match(/^round\|\[data left out/)
  })

  it('is sent as data where there is no text', async () => {
    const { told: reported } = await callOf(answering({ content: [], structured: { sum: 3 } }))
    expect(wordsOf(reported.content)).to.equal('{"sum":3}')
  })

  it('may be thrown in any form, even one that cannot be read', async () => {
    const unreadable = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no')
        },
      }
    )
    for (const [thrown, words] of [
      [new Error('no such file'), 'no such file'],
      [svcError('NO_FILE', 'no such file', { hint: 'one of: a, b' }), 'no such file; one of: a, b'],
      ['just text', 'just text'],
      [undefined, 'The tool failed without an error message.'],
      [Symbol('x'), 'The tool failed without an error message.'],
      [unreadable, 'The tool failed without an error message.'],
      [new Error(''), 'The tool failed without an error message.'],
    ] as const) {
      const { told: reported, status } = await callOf({ call: () => Promise.reject(thrown as Error) })
      expect([reported.isError, wordsOf(reported.content), status]).to.deep.equal([true, words, 'completed'])
    }
    const call = () => {
      throw new Error('at once')
    }
    const { told: answer } = await callOf({ call })
    expect(wordsOf(answer.content)).to.equal('at once')
  })

  it('comes too late after its time: the model gets an error, and later output is dropped', async () => {
    const never = tool({ call: () => new Promise(() => undefined) })
    const late = await callOf({ call: never.call, timeoutMs: 20 })
    expect([wordsOf(late.told.content), late.status]).to.deep.equal(['the work did not end within 20 ms', 'completed'])
    const { promise, reject } = Promise.withResolvers<never>()
    const deaf = await callOf({ timeoutMs: 5, call: () => promise })
    expect(wordsOf(deaf.told.content)).to.equal('the work did not end within 5 ms')
    reject(new Error('too late'))
    await setImmediate() // by now a rejection that nobody takes would have ended this run
  })
})
