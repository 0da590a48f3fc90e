import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigTree, PluginRef, RunningHost } from '@svc/core'
import { Chat, type TurnEvent, type TurnRequest } from '@svc/core/contracts'
import { gather, testHost, testUse } from '@svc/core/testing'

const packageOf = (name: string) => new URL(`../../${name}/`, import.meta.url)
const BASE = ['store-memory', 'conversations', 'selection', 'modes', 'chat', 'provider-local', 'tools-time'].map(packageOf)

export interface ChatHouse extends AsyncDisposable {
  readonly host: RunningHost
  readonly chat: Chat
  stream(request: TurnRequest | string): Promise<TurnEvent[]>
}

/** A host with chat, the local provider and a home of its own. */
export async function chatHouse({
  give = [],
  config = {},
  profiles,
}: {
  give?: PluginRef[]
  config?: ConfigTree
  profiles?: string
} = {}): Promise<ChatHouse> {
  const home = await mkdtemp(join(tmpdir(), 'svc-chat-'))
  const profilesFile = join(home, 'profiles.yaml')
  if (profiles) await (await import('node:fs/promises')).writeFile(profilesFile, profiles)
  const host = await testHost(BASE, {
    give,
    config: { providers: { local: {} }, selection: { profiles_file: profilesFile }, ...config },
  })
  const chat = host.service(Chat)
  return {
    host,
    chat,
    stream: request => gather(chat.stream(typeof request === 'string' ? { message: request } : request, testUse())),
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
