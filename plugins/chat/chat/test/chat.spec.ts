import { Conversations } from '@svc/core/contracts'
import { openUpstream, testContext } from '@svc/testing'
import { expect } from 'chai'
import { startChatHost, codeThrown, textOf } from './chat-host.ts'

describe('a turn', () => {
  it('streams start, tokens with rising index, and end with the usage', async () => {
    await using chatHost = await startChatHost()
    const events = await chatHost.stream('Good morning')
    expect(events[0]).to.include({ type: 'start', provider: 'local', model: 'local-1', requestId: 'test' })
    const tokens = events.filter(event => event.type === 'token')
    expect(tokens.map(event => event.index)).to.deep.equal(tokens.map((_, at) => at))
    expect(textOf(events)).to.contain('Good morning')
    const end = events.at(-1)
    expect(end).to.include({ type: 'end', status: 'completed' })
    if (end?.type === 'end') expect(end.usage.total).to.equal(end.usage.input + end.usage.output)
  })

  it('is the same gathered as streamed', async () => {
    await using chatHost = await startChatHost()
    const message = 'What time is it?\n/tool current_time {"time_zone":"UTC"}'
    const events = await chatHost.stream(message)
    const reply = await chatHost.chat.reply({ message }, testContext())
    const end = events.at(-1)
    if (end?.type !== 'end') throw new Error('no end')
    expect(reply.response.replace(/\d/g, '0')).to.equal(textOf(events).replace(/\d/g, '0'))
    expect(reply.toolsUsed.map(item => [item.tool, item.success])).to.deep.equal(
      end.toolsUsed.map(item => [item.tool, item.success])
    )
    expect(Object.keys(reply).sort()).to.deep.equal([...Object.keys(end).filter(key => key !== 'type'), 'response'].sort())
  })

  it('runs the tools of one round and tells their results in the order of the calls', async () => {
    await using chatHost = await startChatHost()
    const events = await chatHost.stream('/tool current_time {"time_zone":"UTC"}\n/tool current_time {"time_zone":"Asia/Tokyo"}')
    const kinds = events.map(event => event.type).filter(type => type.startsWith('tool'))
    expect(kinds).to.deep.equal(['tool_call', 'tool_call', 'tool_result', 'tool_result'])
    const [first, second] = events.filter(event => event.type === 'tool_call')
    expect(events.filter(event => event.type === 'tool_result').map(event => event.callId)).to.deep.equal([
      first?.callId,
      second?.callId,
    ])
  })

  it('tells the model when a tool fails, and goes on', async () => {
    await using chatHost = await startChatHost()
    const reply = await chatHost.chat.reply({ message: '/tool current_time {"time_zone":"Nowhere/Land"}' }, testContext())
    expect(reply.status).to.equal('completed')
    expect(reply.toolsUsed[0]).to.include({ tool: 'current_time', success: false })
    expect(reply.toolsUsed[0]?.error).to.be.a('string').that.is.not.empty
  })

  it('tells the model when arguments break the schema', async () => {
    await using chatHost = await startChatHost()
    const reply = await chatHost.chat.reply({ message: '/tool current_time {"time_zone":7}' }, testContext())
    expect(reply.toolsUsed[0]?.error).to.match(/time_zone must be string/)
  })

  it('remembers the turns before', async () => {
    await using chatHost = await startChatHost()
    const first = await chatHost.chat.reply({ message: 'one' }, testContext())
    const second = await chatHost.chat.reply({ message: 'two', conversationId: first.conversationId }, testContext())
    expect(second.usage.input).to.be.greaterThan(first.usage.input)
    const kept = await chatHost.host.service(Conversations).get(first.conversationId, testContext())
    expect(kept.messages.map(message => message.role)).to.deep.equal(['user', 'assistant', 'user', 'assistant'])
    expect(kept.messageCount).to.equal(4)
  })

  it('honours max_tokens', async () => {
    await using chatHost = await startChatHost()
    const reply = await chatHost.chat.reply(
      { message: 'one two three four five six seven eight nine ten', maxTokens: 3 },
      testContext()
    )
    expect(reply.usage.output).to.equal(3)
  })

  it('refuses what cannot be: blank message, temperature, max_tokens over the model, unknown tool', async () => {
    await using chatHost = await startChatHost({ config: { chat: { message_limit: 10 } } })
    const reply = (request: object) => codeThrown(chatHost.chat.reply({ message: 'hi', ...request }, testContext()))
    for (const [request, field] of [
      [{ message: ' \n ' }, 'message'],
      [{ message: 'x'.repeat(11) }, 'message'],
      [{ temperature: 1.5 }, 'temperature'],
      [{ maxTokens: 0 }, 'max_tokens'],
      [{ maxTokens: 5000 }, 'max_tokens'],
      [{ tools: ['nope'] }, 'tools'],
    ] as const) {
      const { code, details } = await reply(request)
      expect([code, details.field], JSON.stringify(request)).to.deep.equal(['INVALID_VALUE', field])
    }
  })

  it('gives no tools when the list is empty', async () => {
    await using chatHost = await startChatHost()
    const reply = await chatHost.chat.reply({ message: '/tool current_time {}', tools: [] }, testContext())
    expect(reply.toolsUsed).to.deep.equal([])
  })
})

describe('a turn that fails', () => {
  it('throws before the start and keeps nothing', async () => {
    await using chatHost = await startChatHost()
    const { code, details } = await codeThrown(chatHost.stream('/fail overloaded'))
    expect(code).to.equal('MODEL_FAILED')
    expect(details).to.include({ kind: 'overloaded', provider: 'local', retryable: true })
    const { conversations } = await chatHost.host.service(Conversations).list({ limit: 10 }, testContext())
    expect(conversations).to.deep.equal([])
  })

  it('says error and then end inside a stream, and keeps what there was with its status', async () => {
    await using chatHost = await startChatHost()
    const events = await chatHost.stream('one two three\n/fail network after 2')
    expect(events.slice(-2).map(event => event.type)).to.deep.equal(['error', 'end'])
    const end = events.at(-1)
    if (end?.type !== 'end') throw new Error('no end')
    expect(end.status).to.equal('failed')
    expect(textOf(events)).to.equal('You said')
    const whole = await chatHost.chat.reply({ message: 'one two three' }, testContext())
    expect(end.usage).to.deep.include({ output: 2, total: end.usage.input + 2 })
    expect(end.usage.input).to.be.greaterThan(whole.usage.input)
    const kept = await chatHost.host.service(Conversations).get(end.conversationId, testContext())
    expect(kept.messages.at(-1)).to.include({ role: 'assistant', status: 'failed' })
  })

  it('throws from a gathered reply, after output too', async () => {
    await using chatHost = await startChatHost()
    const { code } = await codeThrown(chatHost.chat.reply({ message: 'one two\n/fail network after 2' }, testContext()))
    expect(code).to.equal('MODEL_FAILED')
  })

  it('keeps the partial reply as cancelled when the caller leaves', async () => {
    await using chatHost = await startChatHost()
    const ending = new AbortController()
    let conversationId = ''
    for await (const event of chatHost.chat.stream(
      { message: 'one two three four five\n/pace 5' },
      testContext({ signal: ending.signal })
    )) {
      if (event.type === 'start') conversationId = event.conversationId
      if (event.type === 'token' && event.index === 2) ending.abort()
      if (event.type === 'end') {
        expect(event.status).to.equal('cancelled')
        expect(event.usage.output).to.equal(3)
        expect(event.usage.input).to.be.greaterThan(10)
      }
    }
    const kept = await chatHost.host.service(Conversations).get(conversationId, testContext())
    expect(kept.messages.at(-1)).to.include({ role: 'assistant', status: 'cancelled' })
  })

  it('writes no line of a warning or worse when the caller leaves, as clients do', async () => {
    const lines: string[] = []
    await using chatHost = await startChatHost({ log: { level: 'debug', destination: { write: line => void lines.push(line) } } })
    for (const leave of ['abort', 'break'] as const) {
      const ending = new AbortController()
      const ctx = testContext({ signal: ending.signal })
      for await (const event of chatHost.chat.stream({ message: 'one two three four five\n/pace 5' }, ctx)) {
        if (event.type !== 'token' || event.index !== 2) continue
        if (leave === 'break') break
        ending.abort()
      }
    }
    chatHost.host.log.warn({}, 'the log is heard')
    await chatHost.host.close()
    const said = lines.map(line => JSON.parse(line) as { level: number; msg: string })
    expect(said.filter(({ level }) => level >= 40).map(({ msg }) => msg)).to.deep.equal(['the log is heard'])
  })

  it('keeps it as well when the consumer just stops reading', async () => {
    await using chatHost = await startChatHost()
    let conversationId = ''
    for await (const event of chatHost.chat.stream({ message: 'one two three four five\n/pace 5' }, testContext())) {
      if (event.type === 'start') conversationId = event.conversationId
      if (event.type === 'token' && event.index === 2) break
    }
    const kept = await chatHost.host.service(Conversations).get(conversationId, testContext())
    expect(kept.messages.at(-1)).to.include({ role: 'assistant', status: 'cancelled' })
  })

  it('says start although the model has not begun, when it is late', async () => {
    await using chatHost = await startChatHost({ config: { chat: { start_after_ms: 1 } } })
    const events = await chatHost.stream('late\n/delay 60\n/fail overloaded')
    expect(events.map(event => event.type)).to.deep.equal(['start', 'error', 'end'])
  })

  it('gives up a model that is silent, and a turn that takes too long', async () => {
    await using chatHost = await startChatHost({ config: { chat: { first_token_timeout_ms: 30 } } })
    const first = await codeThrown(chatHost.stream('hi\n/delay 5000'))
    expect(first.details).to.include({ kind: 'timeout', retryable: true })
    const gathered = await codeThrown(chatHost.chat.reply({ message: 'hi\n/delay 5000' }, testContext()))
    expect(gathered.details).to.include({ kind: 'timeout', retryable: true })
    await using other = await startChatHost({ config: { chat: { timeout_ms: 30 } } })
    const second = await codeThrown(other.chat.reply({ message: 'hi\n/delay 5000' }, testContext()))
    expect(second.details).to.include({ kind: 'timeout' })
  })

  it('gives an answer without a stream the time of chat.whole_timeout_ms, if it is set', async () => {
    const limits = { first_token_timeout_ms: 30, whole_timeout_ms: 30_000 }
    await using patient = await startChatHost({ config: { chat: limits } })
    const { response } = await patient.chat.reply({ message: 'hi\n/delay 200' }, testContext())
    expect(response).to.include('hi')
    await codeThrown(patient.stream('hi\n/delay 5000'))
    await using hasty = await startChatHost({ config: { chat: { whole_timeout_ms: 30 } } })
    const { details } = await codeThrown(hasty.chat.reply({ message: 'hi\n/delay 5000' }, testContext()))
    expect(details).to.include({ kind: 'timeout' })
  })

  it('ends a stream that falls silent between tokens, and lets go of its upstream', async () => {
    const left = Promise.withResolvers<void>()
    await using upstream = await openUpstream(async (_, reply) => {
      reply.gone.addEventListener('abort', () => left.resolve())
      await reply.write('data: {"choices":[{"delta":{"content":"Well"}}]}\n\n')
      await reply.silence()
    })
    const fake = { type: 'openai', base_url: `${upstream.url}/v1`, models: ['m'] }
    const config = { chat: { token_timeout_ms: 30 }, providers: { fake } }
    await using chatHost = await startChatHost({ give: [new URL('../../../providers/openai/', import.meta.url)], config })
    const events = await chatHost.stream({ message: 'hi', provider: 'fake' })
    expect(events.map(event => event.type)).to.deep.equal(['start', 'token', 'error', 'end'])
    expect(events.at(-2)).to.deep.nested.include({ 'error.details.kind': 'timeout' })
    expect(events.at(-1)).to.include({ status: 'failed' })
    await left.promise
  })
})
