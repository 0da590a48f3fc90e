import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ModelRequest, ToolCallPart } from '@svc/core/contracts'
import { expect } from 'chai'
import { ask, endOf, endlessContext, failureOf, offered, openLocal, says, textOf, usageOf, user } from './support/local.ts'

describe('provider-local', () => {
  it('restates the message, and tells the turn from the second one on', async () => {
    await using local = await openLocal()
    expect(textOf(await ask(local.provider, says('Hello there')))).to.equal('You said: Hello there')
    const later: ModelRequest = {
      model: 'local-1',
      messages: [user('one'), { role: 'assistant', parts: [{ type: 'text', text: 'You said: one' }] }, user('two')],
    }
    expect(textOf(await ask(local.provider, later))).to.equal('You said: two (turn 2)')
  })

  it('answers the same request the same way', async () => {
    await using local = await openLocal()
    for (const temperature of [0, 0.3, 1]) {
      const request = says('the same message', { temperature })
      expect(await ask(local.provider, request)).to.deep.equal(await ask(local.provider, request))
    }
  })

  it('phrases it otherwise when the temperature is above 0', async () => {
    await using local = await openLocal()
    const texts = await Promise.all(
      [0.1, 0.4, 0.7, 1].map(async temperature => textOf(await ask(local.provider, says('warm words', { temperature }))))
    )
    for (const text of texts)
      expect(text)
        .to.match(/: warm words$/)
        .and.not.match(/^You said/)
    expect(new Set(texts).size).to.be.above(1)
  })

  it('says exactly as many tokens as max_tokens allows', async () => {
    await using local = await openLocal()
    const whole = await ask(local.provider, says('one two three four five six'))
    const events = await ask(local.provider, says('one two three four five six', { maxTokens: 6 }))
    expect([endOf(whole), endOf(events)]).to.deep.equal(['stop', 'length'])
    expect(usageOf(events).output).to.equal(6)
    expect(textOf(whole).startsWith(textOf(events))).to.equal(true)
  })

  it('is cut by the limit of the model where the caller sets none', async () => {
    await using local = await openLocal()
    const events = await ask(local.provider, says('word '.repeat(3000), { model: 'local-small' }))
    expect([endOf(events), usageOf(events).output]).to.deep.equal(['length', 1024])
  })

  it('joins its pieces to the whole text, odd halves of characters too', async () => {
    await using local = await openLocal()
    const text = `a lone \ud83d half, \udc69 another, and ${'x👩‍👩‍👧e\u0301'.repeat(200)} end`
    expect(textOf(await ask(local.provider, says(text)))).to.equal(`You said: ${text}`)
  })

  it('takes what looks like a token of the protocol as text', async () => {
    await using local = await openLocal()
    expect(textOf(await ask(local.provider, says('<|endoftext|> and <|im_start|>')))).to.equal(
      'You said: <|endoftext|> and <|im_start|>'
    )
  })

  it('refuses a context that is too long with the limit and the count', async () => {
    await using local = await openLocal()
    const request = says('word '.repeat(9000), { model: 'local-small' })
    const count = await local.provider.countTokens(request, endlessContext())
    const error = await failureOf(ask(local.provider, request))
    expect(error).to.include({ code: 'MODEL_FAILED' })
    expect(error.details).to.include({ kind: 'context_too_long', limit: 8192, count })
    expect(count).to.be.above(8192)
  })

  it('refuses a model it does not have', async () => {
    await using local = await openLocal()
    const error = await failureOf(ask(local.provider, says('hello', { model: 'local-2' })))
    expect(error.details).to.include({ kind: 'bad_request', retryable: false })
    expect(error.message).to.include('local-2')
  })

  it('has the models that its entry of the configuration names', async () => {
    await using local = await openLocal({ models: [{ id: 'tiny', context: 30, output: 3 }] })
    expect(await local.provider.models(endlessContext())).to.deep.equal({
      models: [{ id: 'tiny', context: 30, output: 3 }],
      open: false,
    })
    expect(usageOf(await ask(local.provider, says('some words', { model: 'tiny' }))).output).to.equal(3)
  })

  it('counts history, tools and the schema of the reply as input', async () => {
    await using local = await openLocal()
    const count = (request: ModelRequest) => local.provider.countTokens(request, endlessContext())
    const bare = await count(says('hello'))
    expect(await count(says('hello', { tools: offered('weather') }))).to.be.above(bare)
    expect(await count(says('hello', { responseSchema: { type: 'object' } }))).to.be.above(bare)
    expect(await count({ model: 'local-1', messages: [user('hello'), user('hello')] })).to.equal(2 * bare)
  })

  for (const [what, text] of [
    ['equal', 'a'.repeat(200_000)],
    [
      'random',
      Array.from({ length: 200_000 }, (_, at) => String.fromCharCode(97 + ((Math.imul(at, 2654435761) >>> 8) % 26))).join(''),
    ],
  ] as const) {
    it(`counts 200,000 ${what} letters while another request is answered`, async () => {
      await using local = await openLocal()
      await local.provider.countTokens(says('warm'), endlessContext())
      const server = createServer((_, response) => response.end('alive')).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const order: string[] = []
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      await fetch(url)
      const counting = local.provider
        .countTokens(says(`${text}!`), endlessContext())
        .then(count => (order.push('counted'), count))
      const answer = fetch(url)
        .then(response => response.text())
        .then(body => (order.push(body), body))
      const [count] = await Promise.all([counting, answer])
      server.close()
      server.closeAllConnections()
      expect(count).to.be.above(20_000)
      expect(order).to.deep.equal(['alive', 'counted'])
    })
  }
})

describe('provider-local, by its directives', () => {
  const calls = (events: readonly { type: string }[]) =>
    events.filter((event): event is ToolCallPart => event.type === 'tool_call')
  const answered = (request: ModelRequest, made: ToolCallPart[], text: string, isError = false): ModelRequest => ({
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', parts: made },
      {
        role: 'tool',
        parts: made.map(({ id, tool }) => ({ type: 'tool_result', id, tool, content: [{ type: 'text', text }], isError })),
      },
    ],
  })

  it('calls the tools that /tool names in one round, and tells what they answered', async () => {
    await using local = await openLocal()
    const request = says('What is it?\n/tool weather {"city": "Ulm"}\n/tool news', { tools: offered('weather', 'news') })
    const made = calls(await ask(local.provider, request))
    expect(made.map(call => [call.tool, call.arguments])).to.deep.equal([
      ['weather', { city: 'Ulm' }],
      ['news', {}],
    ])
    const text = textOf(await ask(local.provider, answered(request, made, 'sunny')))
    expect(text).to.equal('weather answered: sunny\nnews answered: sunny\nYou said: What is it?')
  })

  it('tells a tool that failed, and one that it was not offered', async () => {
    await using local = await openLocal()
    const request = says('/tool weather {}\n/tool secret {}', { tools: offered('weather') })
    const made = calls(await ask(local.provider, request))
    expect(made.map(call => call.tool)).to.deep.equal(['weather'])
    const text = textOf(await ask(local.provider, answered(request, made, 'no wind', true)))
    expect(text).to.equal('weather failed: no wind\nI was not offered the tool secret.\nDone.')
  })

  it('calls no tool where the choice is none, and the wanted one where there must be a call', async () => {
    await using local = await openLocal()
    const tools = offered('weather', 'news')
    expect(calls(await ask(local.provider, says('/tool news {}', { tools, toolChoice: 'none' })))).to.have.lengthOf(0)
    expect(
      calls(await ask(local.provider, says('hello', { tools, toolChoice: 'required' }))).map(call => call.tool)
    ).to.deep.equal(['weather'])
    expect(
      calls(await ask(local.provider, says('hello', { tools, toolChoice: { tool: 'news' } }))).map(call => call.tool)
    ).to.deep.equal(['news'])
  })

  it('fails after so many pieces', async () => {
    await using local = await openLocal()
    const events: string[] = []
    const error = await failureOf(
      (async () => {
        for await (const event of local.provider.chat(says('some more words\n/fail overloaded after 3'), endlessContext()))
          events.push(event.type)
      })()
    )
    expect(events).to.deep.equal(['text', 'text', 'text'])
    expect(error.details).to.deep.equal({
      kind: 'overloaded',
      retryable: true,
      retryAfterMs: 50,
      upstreamStatus: 503,
      requestOnly: true,
    })
  })

  it('fails in the round after the tools where the message asks for both', async () => {
    await using local = await openLocal()
    const request = says('/tool weather {}\n/fail network', { tools: offered('weather') })
    const made = calls(await ask(local.provider, request))
    expect((await failureOf(ask(local.provider, answered(request, made, 'sunny')))).details).to.include({ kind: 'network' })
  })

  it('takes directives from the last message only', async () => {
    await using local = await openLocal()
    const messages = [user('/fail network'), user('and now?')]
    expect(textOf(await ask(local.provider, { model: 'local-1', messages }))).to.equal('You said: and now? (turn 2)')
  })

  for (const line of [
    '/tool',
    '/tool x {bad',
    '/tool x [1]',
    '/fail',
    '/fail nonsense',
    '/fail network after soon',
    '/delay -1',
    '/pace fast',
    '/constructor x',
    '/unknown 1',
    'x /fail network',
  ])
    it(`takes "${line}" as text`, async () => {
      await using local = await openLocal()
      expect(textOf(await ask(local.provider, says(line, { tools: offered('x') })))).to.equal(`You said: ${line}`)
    })

  it('takes directives between lines of text out of it', async () => {
    await using local = await openLocal()
    const events = await ask(local.provider, says('first\n  /delay 1  \r\n/pace 1\nlast'))
    expect(textOf(events)).to.equal('You said: first\nlast')
    expect(endOf(events)).to.equal('stop')
  })
})
