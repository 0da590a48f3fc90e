import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Principal, type RunningHost, SYSTEM } from '@svc/core'
import { Chat, type ModelEvent, type Provider, Providers, type TurnEvent, type TurnRequest } from '@svc/core/contracts'
import { gather, item, testHost, testContext } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const PLUGINS = [
  'store-memory',
  'conversations',
  'selection',
  'modes',
  'chat',
  'model-calls',
  'cache',
  'chat-cache',
  'tools-time',
].map(pluginFolder)

export interface CacheHost extends AsyncDisposable {
  readonly host: RunningHost
  /** How often the model was asked. */
  asked(): number
  reply(turn: Partial<TurnRequest>, principal?: Principal): Promise<string>
  stream(turn: Partial<TurnRequest>): Promise<TurnEvent[]>
}

type Answers = (call: number) => AsyncIterable<ModelEvent>

/** The text of each answer says which call it was. */
const counting: Answers = async function* (call) {
  yield { type: 'text', text: 'call ' }
  yield { type: 'text', text: String(call) }
  yield { type: 'usage', usage: { input: 3, output: 2 } }
  yield { type: 'finish', reason: 'stop' }
}

/** A host with chat, the cache and a provider `p` that answers as the test says. */
export async function startCacheHost(config: object, answers: Answers = counting, cache: object = {}): Promise<CacheHost> {
  const home = await mkdtemp(join(tmpdir(), 'svc-cache-'))
  const profiles_file = join(home, 'profiles.yaml')
  await writeFile(profiles_file, 'profiles: { default: {} }\n')
  let asked = 0
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: false },
    models: async () => ({ models: [{ id: 'm' }, { id: 'other' }], open: false }),
    countTokens: async () => 1,
    chat: () => answers(++asked),
    probe: async () => undefined,
  }
  const host = await testHost(PLUGINS, {
    give: [item(Providers, 'p', provider)],
    config: { selection: { profiles_file }, chat: { cache: config }, cache },
  })
  const chat = host.service(Chat)
  const turnOf = (turn: Partial<TurnRequest>): TurnRequest => ({ message: 'hi', ...turn })
  return {
    host,
    asked: () => asked,
    reply: async (turn, principal = SYSTEM) => (await chat.reply(turnOf(turn), testContext({ principal }))).response,
    stream: turn => gather(chat.stream(turnOf(turn), testContext())),
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}
