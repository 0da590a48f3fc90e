import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PluginRef } from '@svc/core'
import {
  type ModelCallEvent,
  type ModelEvent,
  type ModelMessage,
  type ModelRequest,
  type NamedCall,
  NamedModels,
  type Provider,
  Providers,
  Store,
  type TeamDefinition,
  TeamDefinitions,
  type ToolSpec,
  type WorkflowDefinition,
  WorkflowDefinitions,
  Workflows,
} from '@svc/core/contracts'
import { item, testContext, testHost } from '@svc/testing'
import { expect } from 'chai'
import { CHAT_PLUGINS, pluginFolder } from '../../../../test/support/plugin-folder.ts'

const PLUGINS = [...CHAT_PLUGINS, 'provider-local', 'tools-time', 'workflow-nodes', 'queue-store', 'workflows', 'teams'].map(
  pluginFolder
)

const PROFILES = `profiles:
  default: {}
  coder: { description: writes code, provider: two, model: m2, system_prompt: Be brief., tools: [current_time] }
`

const ECHO: WorkflowDefinition = { name: 'echo', nodes: { a: { type: 'transform', value: 'done: ${{ input.task }}' } } }
const WRITER = { role: 'Writer', goal: 'Write', tools: [] }
const PAIR: TeamDefinition = {
  name: 'pair',
  formation: 'sequential',
  members: { a: WRITER, b: WRITER },
  budget: { rounds: 1 },
}

async function startNamed(give: PluginRef[] = []) {
  const home = await mkdtemp(join(tmpdir(), 'svc-named-'))
  const profiles_file = join(home, 'profiles.yaml')
  await writeFile(profiles_file, PROFILES)
  const host = await testHost(PLUGINS, {
    give,
    config: {
      providers: { local: {} },
      selection: { profiles_file },
      models: { aliases: { fast: { provider: 'local', model: 'local-small' } } },
    },
  })
  return {
    named: host.service(NamedModels),
    workflows: host.service(Workflows),
    store: host.service(Store),
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}

const says = (text: string): ModelEvent[] => [
  { type: 'text', text },
  { type: 'usage', usage: { input: 3, output: 2 } },
  { type: 'finish', reason: 'stop' },
]

function provider(ids: readonly string[], answers: readonly (readonly ModelEvent[])[]): Provider & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    features: { tool_calling: true, streaming: true, vision: false },
    models: async () => ({ models: ids.map(id => ({ id })), open: false }),
    countTokens: async () => 1,
    async *chat(request) {
      requests.push(request)
      yield* answers[Math.min(requests.length, answers.length) - 1]!
    },
    probe: async () => undefined,
  }
}

const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
const tool = (name: string): ToolSpec => ({ name, description: 'of the client', parameters: { type: 'object' } })
const call = (name: string, id: string): ModelEvent => ({ type: 'tool_call', id, tool: name, arguments: {} })

async function heard(named: NamedModels, asked: NamedCall, ctx = testContext()) {
  const events: ModelCallEvent[] = []
  for await (const event of named.stream(asked, ctx)) events.push(event)
  return events
}

const thrownBy = async (work: Promise<unknown>) =>
  work.then(
    () => ({ code: 'nothing', message: '' }),
    (error: { code: string; message: string }) => error
  )

describe('a name', () => {
  it('with the head of a provider, an alias, or an id that one provider has is a model', async () => {
    const one = provider(['m1', 'both', 'a/b:c'], [says('one')])
    const two = provider(['m2', 'both', 'profile:coder2'], [says('two')])
    await using host = await startNamed([item(Providers, 'one', one), item(Providers, 'two', two)])
    const found = async (name: string) => {
      const [start] = await heard(host.named, { name, request: { messages: [user('hi')] } })
      return start?.type === 'start' ? `${start.provider}/${start.model}` : 'nothing'
    }
    expect(await found('one/m1')).to.equal('one/m1')
    expect(await found('one/a/b:c')).to.equal('one/a/b:c')
    expect(await found('a/b:c')).to.equal('one/a/b:c')
    expect(await found('m2')).to.equal('two/m2')
    expect(await found('fast')).to.equal('local/local-small')
    expect(await found('two/both')).to.equal('two/both')
    expect(await found('profile:coder2')).to.equal('two/profile:coder2')
  })

  it('that is empty, ambiguous or unknown is refused', async () => {
    const one = provider(['both'], [says('one')])
    const two = provider(['both', 'm2'], [says('two')])
    await using host = await startNamed([item(Providers, 'one', one), item(Providers, 'two', two)])
    const refused = (name: string) => thrownBy(heard(host.named, { name, request: { messages: [user('hi')] } }))
    expect((await refused(' ')).code).to.equal('INVALID_VALUE')
    expect((await refused('both')).message).to.contain('one/both or two/both')
    for (const name of ['nope', 'one/nope', 'profile:nope', 'team:nope', 'workflow:nope', 'x'.repeat(5_000)])
      expect((await refused(name)).code, name.slice(0, 20)).to.equal('MODEL_NOT_FOUND')
  })

  it('is listed where its caller can use it', async () => {
    await using host = await startNamed([
      item(Providers, 'two', provider(['m2'], [says('x')])),
      item(WorkflowDefinitions, 'echo', ECHO),
      item(TeamDefinitions, 'pair', PAIR),
    ])
    const as = (scopes: string[]) => testContext({ principal: { id: 'anna', scopes } })
    const ids = async (scopes: string[]) => (await host.named.list(as(scopes))).map(({ id }) => id)
    const forChat = ['local/local-1', 'local/local-small', 'two/m2', 'fast', 'profile:default', 'profile:coder']
    expect(await ids(['chat'])).to.have.members(forChat)
    expect(await ids(['chat', 'workflows'])).to.have.members([...forChat, 'team:pair', 'workflow:echo'])
    for (const name of ['team:pair', 'workflow:echo']) {
      const call = { name, request: { messages: [user('hi')] } }
      for (const asked of [host.named.find(name, as(['chat'])), heard(host.named, call, as(['chat']))])
        expect((await thrownBy(asked)).code, name).to.equal('MODEL_NOT_FOUND')
      expect(await host.named.find(name, as(['chat', 'workflows']))).to.include({ id: name })
      expect((await heard(host.named, call, as(['chat', 'workflows']))).at(-1)).to.include({ status: 'completed' })
    }
    expect(await host.named.find('agent:coder', testContext())).to.include({ id: 'profile:coder', description: 'writes code' })
    expect(await host.named.find('fast', testContext())).to.include({ id: 'fast', kind: 'alias', owner: 'local' })
  })
})

describe('a profile called as a model', () => {
  it('runs the tools of svc inside, with its prompt, and stores nothing', async () => {
    const two = provider(['m2'], [[call('current_time', 'c1'), { type: 'finish', reason: 'tool_calls' }], says('noon')])
    await using host = await startNamed([item(Providers, 'two', two)])
    const events = await heard(host.named, { name: 'profile:coder', request: { messages: [user('when?')], stop: undefined } })
    expect(events.map(event => event.type)).to.deep.equal(['start', 'text', 'usage', 'finish', 'end'])
    expect(two.requests[0]!.messages[0]).to.deep.include({ role: 'system' })
    expect(JSON.stringify(two.requests[0]!.messages[0])).to.contain('Be brief.')
    expect(two.requests[1]!.messages.at(-1)).to.include({ role: 'tool' })
  })

  it('hands calls of client tools out, and goes on with the steps that the client has not seen', async () => {
    const both = [call('current_time', 'c1'), call('edit', 'c2'), { type: 'finish', reason: 'tool_calls' } as const]
    const two = provider(['m2'], [[call('current_time', 'c0'), { type: 'finish', reason: 'tool_calls' }], both, says('done')])
    await using host = await startNamed([item(Providers, 'two', two)])
    const request = { messages: [user('go')], tools: [tool('edit')] }
    const events = await heard(host.named, { name: 'profile:coder', request })
    const calls = events.filter(event => event.type === 'tool_call')
    expect(calls.map(item => item.tool)).to.deep.equal(['edit'])
    expect(events.find(event => event.type === 'finish')).to.include({ reason: 'tool_calls' })
    const id = calls[0]!.id
    expect(id).to.match(/^svc_[\da-f]{32}_0$/)

    const answered: ModelMessage[] = [
      user('go'),
      { role: 'assistant', parts: [calls[0]!] },
      {
        role: 'tool',
        parts: [{ type: 'tool_result', id, tool: 'edit', content: [{ type: 'text', text: 'ok' }], isError: false }],
      },
    ]
    const next = { name: 'profile:coder', request: { messages: answered, tools: [tool('edit')] } }
    const last = await heard(host.named, next)
    expect(last.find(event => event.type === 'text')).to.include({ text: 'done' })
    const seen = two.requests[2]!.messages.filter(({ role }) => role !== 'system')
    expect(seen.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool', 'assistant', 'tool'])
    expect(seen[4]!.parts.map(part => (part.type === 'tool_result' ? part.id : part.type))).to.deep.equal(['c1', 'c2'])

    // another principal gets no steps of this one
    const other = testContext({ principal: { id: 'eve', scopes: ['chat'] } })
    await heard(host.named, next, other)
    expect(two.requests[3]!.messages.filter(({ role }) => role !== 'system')).to.have.length(3)
  })

  it('keeps the steps for one hour, then goes on without them, and deletes them with the next ones', async () => {
    const asks: ModelEvent[] = [call('current_time', 'c1'), call('edit', 'c2'), { type: 'finish', reason: 'tool_calls' }]
    const two = provider(['m2'], [asks, says('done'), says('done'), asks])
    await using host = await startNamed([item(Providers, 'two', two)])
    const kept = async () => (await host.store.range('named_models_steps', { limit: 10 }, testContext())).records
    const begin = async () => {
      const request = { messages: [user('go')], tools: [tool('edit')] }
      return (await heard(host.named, { name: 'profile:coder', request })).find(event => event.type === 'tool_call')!
    }
    const made = await begin()
    const result: ModelMessage = {
      role: 'tool',
      parts: [{ type: 'tool_result', id: made.id, tool: 'edit', content: [{ type: 'text', text: 'ok' }], isError: false }],
    }
    const messages = [user('go'), { role: 'assistant', parts: [made] } as const, result]
    const rolesSeen = async () => {
      await heard(host.named, { name: 'profile:coder', request: { messages, tools: [tool('edit')] } })
      return two.requests
        .at(-1)!
        .messages.filter(({ role }) => role !== 'system')
        .map(({ parts }) => parts.length)
    }
    const [{ key, value }] = (await kept()) as unknown as [{ key: string; value: { until: number } }]
    expect((value.until - Date.now()) / 60_000).to.be.within(59, 60)
    // both calls of the step, and both results
    expect(await rolesSeen()).to.deep.equal([1, 2, 2])
    const expired = { ...value, until: Date.now() - 1 }
    await host.store.batch([{ op: 'put', collection: 'named_models_steps', key, value: expired }], {}, testContext())
    // the client's call and its result
    expect(await rolesSeen()).to.deep.equal([1, 1, 1])
    await begin()
    const left = await kept()
    expect(left).to.have.length(1)
    expect(left[0]!.key).to.not.equal(key)
  })

  it('uses the tool of the client where both have the name', async () => {
    const two = provider(['m2'], [[call('current_time', 'c1'), { type: 'finish', reason: 'tool_calls' }]])
    await using host = await startNamed([item(Providers, 'two', two)])
    const request = { messages: [user('when?')], tools: [tool('current_time')] }
    const events = await heard(host.named, { name: 'profile:coder', request })
    expect(events.filter(event => event.type === 'tool_call')).to.have.length(1)
    expect(two.requests[0]!.tools).to.deep.equal([tool('current_time')])
  })

  it('refuses fields that no agent can use', async () => {
    await using host = await startNamed()
    const refused = (more: object) =>
      thrownBy(heard(host.named, { name: 'profile:default', request: { messages: [user('x')], ...more } }))
    for (const more of [{ n: 2 }, { logprobs: 1 }, { toolChoice: 'required' }])
      expect((await refused(more)).code, JSON.stringify(more)).to.equal('INVALID_VALUE')
    expect(
      (await thrownBy(host.named.embed({ name: 'profile:default', request: { input: ['a'] } }, testContext()))).code
    ).to.equal('INVALID_VALUE')
  })

  it('calls no tool at all with toolChoice none, and caps an answer at the limit of its model', async () => {
    const two = provider(['m2'], [says('x')])
    await using host = await startNamed([item(Providers, 'two', two)])
    const request = { messages: [user('when?')], tools: [tool('edit')], toolChoice: 'none', maxTokens: 7 } as const
    await heard(host.named, { name: 'profile:coder', request })
    expect(two.requests[0]!.tools ?? []).to.deep.equal([])
    expect(two.requests[0]!.maxTokens).to.equal(7)
    const capped = { name: 'profile:default', request: { messages: [user('x')], maxTokens: 100_000 } }
    expect((await thrownBy(heard(host.named, capped))).code).to.equal('INVALID_VALUE')
    const events = await heard(host.named, { ...capped, defaults: ['maxTokens'] })
    expect(events.at(-1)).to.include({ type: 'end', status: 'completed' })
  })
})

describe('a workflow or team called as a model', () => {
  it('runs once for requests with the same key', async () => {
    await using host = await startNamed([item(WorkflowDefinitions, 'echo', ECHO)])
    const ask = async (idempotencyKey?: string) => {
      const call = { name: 'workflow:echo', request: { messages: [user('hi')] } }
      const events = await heard(host.named, idempotencyKey === undefined ? call : { ...call, idempotencyKey })
      expect(events.find(({ type }) => type === 'text')).to.deep.equal({ type: 'text', text: 'done: hi' })
      return (await host.workflows.runs({ limit: 100 }, testContext())).runs.length
    }
    expect([await ask('one'), await ask('one'), await ask('two'), await ask()]).to.deep.equal([1, 1, 2, 3])
  })

  it('answers for a team that its budget stopped with what its members said', async () => {
    await using host = await startNamed([item(TeamDefinitions, 'pair', PAIR)])
    const events = await heard(host.named, { name: 'team:pair', request: { messages: [user('hi')] } })
    const answer = events.find(({ type }) => type === 'text') as { text: string }
    expect(answer.text).to.match(/^The team stopped before its end: the team has no round left\n\n## a\n\n.*hi/s)
  })

  it('reports the fields that it drops, and refuses those without which its answer is another', async () => {
    await using host = await startNamed([item(WorkflowDefinitions, 'echo', ECHO)])
    const name = 'workflow:echo'
    const [start, text] = await heard(host.named, {
      name,
      request: { messages: [user('hi')], temperature: 1, maxTokens: 5, gathered: true },
    })
    expect(text).to.deep.equal({ type: 'text', text: 'done: hi' })
    expect(start).to.deep.include({ type: 'start', dropped: ['temperature', 'maxTokens'] })
    const checked = await host.named.check({ name, request: { messages: [], temperature: 1, maxTokens: 5 } }, testContext())
    expect(checked).to.deep.equal(start)
    for (const [key, code] of [
      ['a b', 'INVALID_VALUE'],
      ['', 'INVALID_VALUE'],
      ['k'.repeat(256), 'INVALID_VALUE'],
    ])
      expect(
        (await thrownBy(heard(host.named, { name, idempotencyKey: key!, request: { messages: [user('x')] } }))).code
      ).to.equal(code)
    for (const more of [{ stop: ['x'] }, { responseFormat: 'json' as const }, { tools: [tool('x')] }])
      expect((await thrownBy(heard(host.named, { name, request: { messages: [user('x')], ...more } }))).code).to.equal(
        'INVALID_VALUE'
      )
  })
})
