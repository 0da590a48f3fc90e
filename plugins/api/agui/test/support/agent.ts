import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AGUIEvent, type BaseEvent, EventType, type RunAgentInput } from '@ag-ui/core'
import { EventSchema } from '@ag-ui/core/schemas'
import { HttpAgent, verifyEvents } from '@ag-ui/client'
import type { ConfigTree } from '@svc/core'
import { Http, type ModelEvent, type ModelRequest, type Provider, type Tool } from '@svc/core/contracts'
import { type Fixture, testContext, testHost } from '@svc/testing'
import { expect } from 'chai'
import { lastValueFrom, toArray } from 'rxjs'
import { CHAT_PLUGINS, pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const PLUGINS = [
  'http',
  'rest',
  'agui',
  ...CHAT_PLUGINS,
  'workflow-nodes',
  'queue-store',
  'workflows',
  'teams',
  'provider-local',
  'tools-time',
]

export interface AgentOptions {
  readonly give?: readonly Fixture[]
  readonly profiles?: object
  readonly config?: ConfigTree
}

/** A server with AG-UI and the local provider. */
export async function serveAgents({ give = [], profiles = {}, config = {} }: AgentOptions = {}) {
  const home = await mkdtemp(join(tmpdir(), 'svc-agui-'))
  const profiles_file = join(home, 'profiles.yaml')
  // JSON is YAML
  await writeFile(profiles_file, JSON.stringify({ profiles: { default: {}, ...profiles } }))
  const { providers, ...rest } = config as { providers?: object }
  const host = await testHost(PLUGINS.map(pluginFolder), {
    give,
    config: {
      ...rest,
      server: { port: 0 },
      providers: { local: {}, ...providers },
      selection: { profiles_file },
    },
  })
  const { url } = (await host.service(Http).address(testContext()))!
  const path = (profile: string) => `${url}/api/v1/agui/${profile}`
  return {
    url,
    agent: (profile = 'default', threadId = 't1') => new HttpAgent({ url: path(profile), threadId }),
    post: (body: unknown, profile = 'default', signal?: AbortSignal) =>
      fetch(path(profile), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal ? { signal } : {}),
      }),
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}

export const input = (more: Partial<RunAgentInput> | object): RunAgentInput => ({
  threadId: 't1',
  runId: 'r1',
  messages: [],
  tools: [],
  context: [],
  ...more,
})
export const user = (content: unknown, id = 'u1') => ({ id, role: 'user', content })

/** The events of a run by the client, each checked by the schema and by the order that the protocol asks for. */
export async function eventsOf(agent: HttpAgent, asked: RunAgentInput): Promise<AGUIEvent[]> {
  const events: readonly unknown[] = await lastValueFrom(agent.run(asked).pipe(verifyEvents(), toArray<BaseEvent>()))
  for (const event of events) {
    const { success, error } = EventSchema.safeParse(event)
    expect(success, `${JSON.stringify(event)} ${error?.message}`).to.equal(true)
  }
  return events as AGUIEvent[]
}

export const typesOf = (events: readonly AGUIEvent[]): string[] =>
  events.map(({ type }) => type).filter((type, at, all) => type !== EventType.TEXT_MESSAGE_CONTENT || all[at - 1] !== type)

export const textIn = (events: readonly AGUIEvent[]): string =>
  events.map(event => (event.type === EventType.TEXT_MESSAGE_CONTENT ? event.delta : '')).join('')

/** The event of a type, which must be there. */
export function one<T extends EventType>(events: readonly AGUIEvent[], type: T): Extract<AGUIEvent, { type: T }> {
  const found = events.find(event => event.type === type)
  expect(found, `${type} in ${typesOf(events).join(' ')}`).to.not.equal(undefined)
  return found as Extract<AGUIEvent, { type: T }>
}

/** A provider whose answers a test writes, the last for ever; it notes its requests. */
export function scripted(...answers: readonly (readonly ModelEvent[])[]): Provider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    features: { tool_calling: true, streaming: true, vision: true },
    requests,
    models: async () => ({ models: [{ id: 'm' }], open: false }),
    countTokens: async ({ messages }) => JSON.stringify(messages).length,
    async *chat(request) {
      requests.push(request)
      yield* answers[Math.min(requests.length, answers.length) - 1]!
    },
    probe: async () => undefined,
  }
}

/** A tool that asks a person first. */
export const asking: Tool = {
  description: 'for a test',
  category: 'text',
  effects: ['read'],
  parameters: { type: 'object' },
  asks: true,
  call: async () => ({ content: [{ type: 'text', text: 'done' }] }),
}
