import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigTree, PluginRef, RunningHost } from '@svc/core'
import { ModelCalls, type ModelCallEvent, type ModelEvent, type ModelRequest, type Provider } from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const BASE = ['store-memory', 'selection', 'modes', 'model-calls', 'provider-local'].map(pluginFolder)

export interface CallsHost extends AsyncDisposable {
  readonly host: RunningHost
  readonly calls: ModelCalls
  /** Calls the default model with one message of the user. */
  say(text: string): Promise<unknown>
}

/** A host with the service `ModelCalls`, the local provider and a home of its own. */
export async function startCallsHost({
  give = [],
  config = {},
  more = [],
}: {
  give?: PluginRef[]
  config?: ConfigTree
  /** Folders of further plugins. */
  more?: readonly string[]
} = {}): Promise<CallsHost> {
  const home = await mkdtemp(join(tmpdir(), 'svc-calls-'))
  const profiles_file = join(home, 'profiles.yaml')
  await writeFile(profiles_file, 'profiles: { default: {} }\n')
  const host = await testHost([...BASE, ...more.map(pluginFolder)], {
    give,
    config: { providers: { local: {} }, selection: { profiles_file }, ...config },
  })
  const calls = host.service(ModelCalls)
  return {
    host,
    calls,
    say: text => calls.reply({ request: { messages: [userSays(text)] } }, testContext()),
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}

export const userSays = (text: string) => ({ role: 'user', parts: [{ type: 'text', text }] }) as const

/** The events of a stream, and what it throws after them. */
export async function heard(stream: AsyncIterable<ModelCallEvent>): Promise<{ events: ModelCallEvent[]; error?: unknown }> {
  const events: ModelCallEvent[] = []
  try {
    for await (const event of stream) events.push(event)
    return { events }
  } catch (error) {
    return { events, error }
  }
}

/** A provider that answers with these events, and notes the requests. */
export function answering(
  answer: (request: ModelRequest, attempt: number, signal: AbortSignal) => AsyncIterable<ModelEvent>,
  more: Partial<Provider> = {}
): Provider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    features: { tool_calling: true, streaming: true, vision: false },
    models: async () => ({ models: [{ id: 'm', output: 100 }], open: false }),
    countTokens: async ({ messages }) => JSON.stringify(messages).length,
    async *chat(request, { signal }) {
      requests.push(request)
      yield* answer(request, requests.length, signal)
    },
    probe: async () => undefined,
    ...more,
  }
}
