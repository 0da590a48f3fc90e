import { type ConfigTree, type LogOptions, systemContext } from '@svc/core'
import {
  Chat,
  type Check,
  Checks,
  Conversations,
  type Effective,
  Http,
  type Json,
  type Mode,
  Modes,
  type Provider,
  Providers,
  Selection,
  type Tool,
  Tools,
  TurnStreams,
  type TurnEnd,
  type TurnReply,
} from '@svc/core/contracts'
import { type Fixture, item, service, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

export const ctx = systemContext(new AbortController().signal)

const unused = () => Promise.reject(new Error('unused'))

export const end: TurnEnd = {
  type: 'end',
  requestId: 'r-1',
  timestamp: '2026-01-01T00:00:00.000Z',
  conversationId: 'c1',
  status: 'completed',
  provider: 'p',
  model: 'm',
  usage: { input: 2, output: 3, total: 5 },
  durationMs: 12.4,
  toolsUsed: [
    { tool: 'add', callId: 't1', arguments: { a: 1 }, success: true, durationMs: 1.6 },
    { tool: 'fail', callId: 't2', arguments: {}, success: false, durationMs: 0.2, error: 'it broke' },
  ],
}
const { type: _type, ...ended } = end
export const reply: TurnReply = { ...ended, response: 'hello' }

export const effective: Effective = {
  profile: 'default',
  provider: 'p',
  model: 'm',
  mode: 'build',
  override: null,
  profiles: ['default', 'fast'],
  modes: ['build', 'plan'],
  source: { provider: 'default', model: 'profile' },
}

const chat: Chat = { reply: async () => reply, async *stream() {}, answer: unused, questions: unused, async *callTool() {} }
const conversations: Conversations = {
  begin: unused,
  append: unused,
  end: unused,
  get: unused,
  turns: unused,
  list: unused,
  search: unused,
  update: unused,
  fork: unused,
  async *export() {},
  import: unused,
  delete: unused,
  deleteMany: unused,
  handOver: unused,
}
const selection: Selection = {
  mode: async () => effective.mode,
  effective: async () => effective,
  profiles: async () => ({ profiles: [], active: 'default', default: 'default' }),
  select: unused,
  switchProfile: unused,
  switchModel: unused,
  switchMode: unused,
}

/** What a test puts in place of the others. */
export interface Fakes {
  chat?: Partial<Chat>
  conversations?: Partial<Conversations>
  selection?: Partial<Selection>
  checks?: Record<string, Check>
  providers?: Record<string, Provider>
  tools?: Record<string, Tool>
  modes?: Record<string, Mode>
  more?: readonly Fixture[]
  config?: ConfigTree
  log?: LogOptions
  /** The place of the host in its cluster. */
  place?: { readonly worker?: string; readonly clusterId?: string }
  /** Names of plugins besides. */
  plugins?: readonly string[]
}

/** The REST API before services of the test's own. */
export async function serveRest(fakes: Fakes = {}) {
  const host = await testHost(['http', 'rest', ...(fakes.plugins ?? [])].map(pluginFolder), {
    config: { server: { port: 0 }, ...fakes.config },
    version: '1.2.3',
    ...fakes.place,
    ...(fakes.log ? { log: fakes.log } : {}),
    give: [
      service(Chat, { ...chat, ...fakes.chat }),
      service(TurnStreams, {
        async *begin(turn, _options, callContext) {
          for await (const event of (fakes.chat?.stream ?? chat.stream)(turn, callContext))
            yield event.type === 'start' ? { ...event, turnId: 'turn_1' } : event
        },
        resume: () => unused() as never,
        cancel: unused,
      }),
      service(Conversations, { ...conversations, ...fakes.conversations }),
      service(Selection, { ...selection, ...fakes.selection }),
      ...Object.entries(fakes.checks ?? {}).map(([name, check]) => item(Checks, name, check)),
      ...Object.entries(fakes.providers ?? {}).map(([name, provider]) => item(Providers, name, provider)),
      ...Object.entries(fakes.tools ?? {}).map(([name, tool]) => item(Tools, name, tool)),
      ...Object.entries(fakes.modes ?? {}).map(([name, mode]) => item(Modes, name, mode)),
      ...(fakes.more ?? []),
    ],
  })
  const { url } = (await host.service(Http).address(ctx))!
  return { host, url, call: callerOf(url), [Symbol.asyncDispose]: () => host.close() }
}

const callerOf =
  (url: string) =>
  async (method: string, path: string, body?: Json, headers: Record<string, string> = {}) => {
    const sent =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }
    const response = await fetch(url + path, { method, headers, ...sent })
    const text = await response.text()
    const json = text.startsWith('{') ? JSON.parse(text) : undefined
    return { status: response.status, headers: response.headers, text, body: json as { [key: string]: Json } }
  }
