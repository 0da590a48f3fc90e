import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigTree, LogOptions, PluginRef, RunningHost } from '@svc/core'
import {
  Chat,
  type ModelEvent,
  type ModelInfo,
  type ModelRequest,
  type Provider,
  type Tool,
  type TurnEvent,
  type TurnRequest,
} from '@svc/core/contracts'
import { gather, testHost, testContext } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const BASE = ['store-memory', 'conversations', 'selection', 'modes', 'chat', 'model-calls', 'provider-local', 'tools-time'].map(
  pluginFolder
)

export interface ChatHost extends AsyncDisposable {
  readonly host: RunningHost
  readonly chat: Chat
  stream(request: TurnRequest | string): Promise<TurnEvent[]>
}

/** A host with chat, the local provider and a home of its own. */
export async function startChatHost({
  give = [],
  config = {},
  profiles = 'profiles: { default: {} }\n',
  strict = true,
  log,
}: {
  give?: PluginRef[]
  config?: ConfigTree
  profiles?: string
  /** False where a test gives what could not even cross a process. */
  strict?: boolean
  log?: LogOptions
} = {}): Promise<ChatHost> {
  const home = await mkdtemp(join(tmpdir(), 'svc-chat-'))
  const profiles_file = join(home, 'profiles.yaml')
  await writeFile(profiles_file, profiles)
  const host = await testHost(BASE, {
    strict,
    ...(log ? { log } : {}),
    give,
    config: { providers: { local: {} }, selection: { profiles_file }, ...config },
  })
  const chat = host.service(Chat)
  return {
    host,
    chat,
    stream: request => gather(chat.stream(typeof request === 'string' ? { message: request } : request, testContext())),
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}

/** The tokens of a stream, joined. */
export const textOf = (events: readonly TurnEvent[]) =>
  events.map(event => (event.type === 'token' ? event.content : '')).join('')

/** The code of what a promise throws. */
export async function codeThrown(
  work: Promise<unknown>
): Promise<{ code: string; details: Record<string, unknown>; message: string }> {
  try {
    await work
  } catch (error) {
    return error as { code: string; details: Record<string, unknown>; message: string }
  }
  throw new Error('nothing was thrown')
}

/** One answer of a provider: its events, or what it does with the request. */
type Said = readonly ModelEvent[] | ((request: ModelRequest) => readonly ModelEvent[])

export interface Scripted extends Provider {
  /** What it was asked, in order. */
  readonly requests: ModelRequest[]
  /** How often it was asked for its models. */
  listed: number
}

/** A provider that says what the test wants, the last for ever. A token of it is a character. */
export function scripted(
  answers: readonly Said[],
  models: readonly ModelInfo[] = [{ id: 'm' }],
  more: Partial<Provider> = {}
): Scripted {
  const requests: ModelRequest[] = []
  const found: Scripted = {
    features: { tool_calling: true, streaming: true, vision: false },
    requests,
    listed: 0,
    async models() {
      found.listed++
      return { models, open: false }
    },
    countTokens: async ({ messages }) => JSON.stringify(messages).length,
    async *chat(request) {
      requests.push(request)
      const said = answers[Math.min(requests.length, answers.length) - 1]!
      yield* typeof said === 'function' ? said(request) : said
    },
    probe: async () => undefined,
    ...more,
  }
  return found
}

export const says = (text: string): ModelEvent[] => [
  { type: 'text', text },
  { type: 'usage', usage: { input: 3, output: 2 } },
  { type: 'finish', reason: 'stop' },
]

/** Calls of tools by name, with ids c1, c2, … */
export const calls = (...wanted: [tool: string, args?: object][]): ModelEvent[] => [
  ...wanted.map(([tool, args = {}], at) => ({ type: 'tool_call' as const, id: `c${at + 1}`, tool, arguments: args as never })),
  { type: 'finish', reason: 'tool_calls' },
]

/** A tool that answers `done` unless told otherwise. */
export const tool = (parts: Partial<Tool>): Tool => ({
  description: 'for a test',
  category: 'text',
  effects: ['read'],
  parameters: { type: 'object' },
  call: async () => ({ content: [{ type: 'text', text: 'done' }] }),
  ...parts,
})
