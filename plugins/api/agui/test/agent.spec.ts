import { EventType, type Message, type Tool } from '@ag-ui/core'
import { type ModelEvent, Providers, Tools, type WorkflowDefinition, WorkflowDefinitions } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { asking, eventsOf, input, one, scripted, serveAgents, textIn, typesOf, user } from './support/agent.ts'

const WEATHER: Tool = {
  name: 'get_weather',
  description: 'the weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}
const CALL = '/tool get_weather {"city":"Ulm"}'
const USED: ModelEvent = { type: 'usage', usage: { input: 3, output: 2 } }
const ECHO: WorkflowDefinition = { name: 'echo', nodes: { a: { type: 'transform', value: 'done: ${{ input.task }}' } } }
const BROKEN: WorkflowDefinition = { name: 'broken', nodes: { a: { type: 'agent', prompt: '/fail bad_request' } } }
const STOP: ModelEvent = { type: 'finish', reason: 'stop' }

describe('the client of AG-UI', () => {
  it('gets the text of a run, in the order of the protocol', async () => {
    await using server = await serveAgents()
    const events = await eventsOf(server.agent(), input({ messages: [user('hello')] }))
    expect(typesOf(events)).to.deep.equal([
      'RUN_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED',
    ])
    expect(one(events, EventType.RUN_STARTED)).to.include({ threadId: 't1', runId: 'r1', protocolVersion: '1.0' })
    expect(textIn(events)).to.equal('You said: hello')
    const { outcome, usage } = one(events, EventType.RUN_FINISHED)
    expect(outcome).to.deep.equal({ type: 'success' })
    expect(usage![0]).to.include({ provider: 'local' })
    expect(usage![0]!.totalTokens).to.equal(usage![0]!.inputTokens! + usage![0]!.outputTokens!)
  })

  it('keeps the conversation and sends it back, with tools of svc that ran inside of a run', async () => {
    await using server = await serveAgents()
    const agent = server.agent()
    agent.setMessages([{ id: 'u1', role: 'user', content: '/tool current_time {}\nthanks' }])
    const { newMessages } = await agent.runAgent()
    expect(newMessages.map(({ role }) => role)).to.deep.equal(['assistant', 'tool', 'assistant'])
    const [call, result] = newMessages as [Extract<Message, { role: 'assistant' }>, Extract<Message, { role: 'tool' }>]
    expect(call.toolCalls).to.have.length(1)
    expect(call.toolCalls![0]!.function).to.deep.equal({ name: 'current_time', arguments: '{}' })
    expect(result.toolCallId).to.equal(call.toolCalls![0]!.id)
    expect(JSON.stringify(result.content)).to.match(/20\d\d/)
    agent.addMessage({ id: 'u2', role: 'user', content: 'and now?' })
    const next = await agent.runAgent()
    expect(next.newMessages.map(({ content }) => content)).to.deep.equal(['You said: and now? (turn 2)'])
  })

  it('runs its own tools: their calls end the run, and their results come with the next', async () => {
    await using server = await serveAgents()
    const agent = server.agent()
    agent.setMessages([{ id: 'u1', role: 'user', content: CALL }])
    const events = await eventsOf(agent, input({ messages: [user(CALL)], tools: [WEATHER] }))
    expect(typesOf(events)).to.deep.equal(['RUN_STARTED', 'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'RUN_FINISHED'])
    const { toolCallId, toolCallName } = one(events, EventType.TOOL_CALL_START)
    expect(toolCallName).to.equal('get_weather')
    expect(JSON.parse(one(events, EventType.TOOL_CALL_ARGS).delta)).to.deep.equal({ city: 'Ulm' })
    expect(one(events, EventType.RUN_FINISHED).outcome).to.deep.equal({ type: 'success', pendingToolCallIds: [toolCallId] })
    const { newMessages } = await agent.runAgent({ tools: [WEATHER] })
    const [{ toolCalls = [] }] = newMessages as [Extract<Message, { role: 'assistant' }>]
    agent.addMessage({ id: 'x1', role: 'tool', toolCallId: toolCalls[0]!.id, content: 'sunny, 21 °C' })
    const answer = await agent.runAgent({ tools: [WEATHER] })
    expect(JSON.stringify(answer.newMessages.at(-1)!.content)).to.contain('sunny, 21 °C')
  })

  it('sees text, calls and results of several steps as one message for each step', async () => {
    const provider = scripted(
      [
        { type: 'text', text: 'let me see' },
        { type: 'tool_call', id: 'c1', tool: 'current_time', arguments: {} },
        { type: 'tool_call', id: 'c2', tool: 'current_time', arguments: {} },
        USED,
        { type: 'finish', reason: 'tool_calls' },
      ],
      [
        { type: 'tool_call', id: 'c3', tool: 'current_time', arguments: {} },
        { type: 'finish', reason: 'tool_calls' },
      ],
      [{ type: 'text', text: 'it is late' }, USED, STOP]
    )
    await using server = await serveAgents({ give: [item(Providers, 'a', provider)], profiles: { late: { provider: 'a' } } })
    const agent = server.agent('late')
    agent.setMessages([{ id: 'u1', role: 'user', content: 'hi' }])
    const { newMessages } = await agent.runAgent()
    const shown = newMessages.map(message => {
      const { toolCalls = [] } = message as Extract<Message, { role: 'assistant' }>
      return [
        message.role,
        message.role === 'tool' ? message.toolCallId : (message.content ?? ''),
        ...toolCalls.map(({ id }) => id),
      ]
    })
    expect(shown).to.deep.equal([
      ['assistant', 'let me see', 'c1', 'c2'],
      ['tool', 'c1'],
      ['tool', 'c2'],
      ['assistant', '', 'c3'],
      ['tool', 'c3'],
      ['assistant', 'it is late'],
    ])
    agent.addMessage({ id: 'u2', role: 'user', content: 'again' })
    await agent.runAgent()
    const said = provider.requests.at(-1)!.messages.map(({ role, parts }) => [role, ...parts.map(({ type }) => type)])
    expect(said.filter(([role]) => role !== 'system')).to.deep.equal([
      ['user', 'text'],
      ['assistant', 'text', 'tool_call', 'tool_call'],
      ['tool', 'tool_result', 'tool_result'],
      ['assistant', 'tool_call'],
      ['tool', 'tool_result'],
      ['assistant', 'text'],
      ['user', 'text'],
    ])
  })

  it('sees the reasoning that a model shows', async () => {
    const thinking: ModelEvent[] = [
      { type: 'reasoning', text: 'hm, ' },
      { type: 'reasoning', text: 'well' },
      { type: 'text', text: 'yes' },
      USED,
      STOP,
    ]
    const give = [item(Providers, 'a', scripted(thinking))]
    await using server = await serveAgents({ give, profiles: { thinker: { provider: 'a' } } })
    const events = await eventsOf(server.agent('thinker'), input({ messages: [user('hi')] }))
    expect(typesOf(events)).to.deep.equal([
      'RUN_STARTED',
      'REASONING_START',
      'REASONING_MESSAGE_START',
      'REASONING_MESSAGE_CONTENT',
      'REASONING_MESSAGE_CONTENT',
      'REASONING_MESSAGE_END',
      'REASONING_END',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED',
    ])
    const agent = server.agent('thinker')
    agent.setMessages([{ id: 'u1', role: 'user', content: 'hi' }])
    await agent.runAgent()
    agent.addMessage({ id: 'u2', role: 'user', content: 'and?' })
    expect((await agent.runAgent()).newMessages.at(-1)!.content).to.equal('yes')
  })

  it('tells the agent its context and state, and sends images', async () => {
    const provider = scripted([{ type: 'text', text: 'ok' }, USED, STOP])
    await using server = await serveAgents({ give: [item(Providers, 'a', provider)], profiles: { seer: { provider: 'a' } } })
    const png = Buffer.from('89504e470d0a1a0a', 'hex').toString('base64')
    const content = [
      { type: 'text', text: 'what is this?' },
      { type: 'image', source: { type: 'data', value: png, mimeType: 'image/png' } },
    ]
    const context = [{ description: 'The page', value: 'checkout' }]
    const asked = input({ messages: [user(content)], context, state: { cart: 2 } })
    expect(textIn(await eventsOf(server.agent('seer'), asked))).to.equal('ok')
    const { messages } = provider.requests[0]!
    expect(JSON.stringify(messages)).to.contain('The page: checkout').and.contain('{\\"cart\\":2}')
    expect(messages.at(-1)!.parts.map(({ type }) => type)).to.deep.equal(['text', 'image'])
  })

  it('gets an error in the form of AG-UI after the start, and an error record before', async () => {
    await using server = await serveAgents()
    const events = await eventsOf(
      server.agent(),
      input({ messages: [user('/fail overloaded after 2\none two three four five')] })
    )
    expect(typesOf(events)).to.deep.equal([
      'RUN_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_ERROR',
    ])
    expect(one(events, EventType.RUN_ERROR).code).to.equal('PROVIDER_ERROR')
    const early = await server.post(input({ messages: [user('/fail overloaded\nhi')] }))
    expect([early.status, ((await early.json()) as { error_code: string }).error_code]).to.deep.equal([503, 'PROVIDER_ERROR'])
    const unknown = await server.post(input({ messages: [user('hi')] }), 'nobody')
    expect([unknown.status, ((await unknown.json()) as { error_code: string }).error_code]).to.deep.equal([404, 'INVALID_VALUE'])
  })

  it('runs a workflow, whose result is the text', async () => {
    const give = [item(WorkflowDefinitions, 'echo', ECHO), item(WorkflowDefinitions, 'broken', BROKEN)]
    await using server = await serveAgents({ give })
    const events = await eventsOf(server.agent('workflow:echo'), input({ messages: [user('hi')] }))
    expect(typesOf(events)).to.deep.equal([
      'RUN_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED',
    ])
    expect(textIn(events)).to.equal('done: hi')
    const failed = await eventsOf(server.agent('workflow:broken'), input({ messages: [user('hi')] }))
    expect(typesOf(failed)).to.deep.equal(['RUN_STARTED', 'RUN_ERROR'])
    const statusOf = async (agent: string, more: object = {}) =>
      (await server.post(input({ messages: [user('hi')], ...more }), agent)).status
    expect(await statusOf('workflow:echo', { tools: [WEATHER] })).to.equal(400)
    expect(await statusOf('workflow:none')).to.equal(404)
    expect(await statusOf('team:none')).to.equal(404)
  })

  it('ends the turn when it aborts', async () => {
    let hasEnded = false
    const slow = scripted([])
    const provider = {
      ...slow,
      async *chat(_request: unknown, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelEvent> {
        yield { type: 'text', text: 'begun' }
        try {
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
        } finally {
          hasEnded = true
        }
      },
    }
    await using server = await serveAgents({ give: [item(Providers, 'a', provider)], profiles: { slow: { provider: 'a' } } })
    const agent = server.agent('slow')
    agent.setMessages([{ id: 'u1', role: 'user', content: 'hi' }])
    await agent.runAgent({}, { onTextMessageContentEvent: () => agent.abortRun() }).catch(() => {})
    for (const end = Date.now() + 10_000; !hasEnded && Date.now() < end; ) await new Promise(resolve => setTimeout(resolve, 10))
    expect(hasEnded).to.equal(true)
  })

  it('answers a tool that asks, if it says that it can; otherwise the call is denied', async () => {
    const calls: ModelEvent[] = [
      { type: 'tool_call', id: 'c1', tool: 't', arguments: {} },
      { type: 'finish', reason: 'tool_calls' },
    ]
    const provider = () => scripted(calls, [{ type: 'text', text: 'so' }, USED, STOP])
    const serve = () =>
      serveAgents({ give: [item(Providers, 'a', provider()), item(Tools, 't', asking)], profiles: { asks: { provider: 'a' } } })
    await using server = await serve()
    const denied = await eventsOf(server.agent('asks'), input({ messages: [user('hi')] }))
    expect(JSON.stringify(one(denied, EventType.TOOL_CALL_RESULT).content)).to.match(/^"Not allowed/)
    await using other = await serve()
    const agent = other.agent('asks')
    agent.setMessages([{ id: 'u1', role: 'user', content: 'hi' }])
    const { newMessages } = await agent.runAgent(
      { forwardedProps: { interactive: true } },
      {
        async onCustomEvent({ event: { name, value } }) {
          expect(name).to.equal('svc.ask')
          const { request_id, call_id } = value as { request_id: string; call_id: string }
          const answer = await fetch(`${other.url}/api/v1/chat/answer`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ request_id, call_id, allow: true }),
          })
          expect(answer.status).to.equal(200)
        },
      }
    )
    expect(newMessages.find(({ role }) => role === 'tool')!.content).to.equal('done')
  })
})
