import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CallContext, type ConfigTree, definePlugin, type Principal } from '@svc/core'
import {
  Chat,
  Conversations,
  type EvaluationCase,
  type EvaluationReport,
  type EvaluationRequest,
  type EvaluationResult,
  Evaluations,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  Providers,
  type Tool,
  Tools,
  type TurnReply,
} from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const BASE = [
  'store-memory',
  'conversations',
  'selection',
  'modes',
  'chat',
  'model-calls',
  'models',
  'provider-local',
  'evaluations',
].map(pluginFolder)

/** Two profiles that answer differently, and one whose provider says what a test wants. */
const PROFILES = `profiles:
  default: { provider: local, model: local-1 }
  short: { provider: local, model: local-1, max_tokens: 2 }
  scripted: { provider: scripted, model: m }
`

export const says = (text: string): ModelEvent[] => [
  { type: 'text', text },
  { type: 'usage', usage: { input: 3, output: 2 } },
  { type: 'finish', reason: 'stop' },
]

export interface EvaluationHost extends AsyncDisposable {
  readonly evaluations: Evaluations
  readonly conversations: Conversations
  /** The requests of the scripted provider. */
  readonly requests: readonly ModelRequest[]
  /** The arguments of the calls that have really run, by tool. */
  readonly ran: readonly string[]
  /** How often evaluations have looked at a tool call. */
  looks(): number
  say(message: string, ctx?: CallContext): Promise<TurnReply>
  run(request: EvaluationRequest, ctx?: CallContext): Promise<EvaluationReport>
  /** Runs one case and returns its result. */
  one(entry: Omit<EvaluationCase, 'name'>, more?: Partial<EvaluationRequest>): Promise<EvaluationResult>
}

export const as = (id: string, ...scopes: string[]) => testContext({ principal: { id, scopes } satisfies Principal })
export const ANN = as('ann', 'chat')

interface HostOptions {
  readonly config?: ConfigTree
  /** A plugin allows each tool call. */
  readonly allows?: boolean
  readonly answers?: (request: ModelRequest, signal: AbortSignal) => readonly ModelEvent[] | Promise<readonly ModelEvent[]>
}

/** A host with two tools: `weather`, and `send`, which needs an approval. */
export async function openHost({
  config = {},
  allows = false,
  answers = () => says('scripted'),
}: HostOptions = {}): Promise<EvaluationHost> {
  const home = await mkdtemp(join(tmpdir(), 'svc-eval-'))
  const profiles_file = join(home, 'profiles.yaml')
  await writeFile(profiles_file, PROFILES)
  const [requests, ran]: [ModelRequest[], string[]] = [[], []]
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: false, response_schema: true } as Provider['features'],
    models: async () => ({ models: [{ id: 'm' }], open: false }),
    countTokens: async ({ messages }) => JSON.stringify(messages).length,
    async *chat(request, { signal }) {
      requests.push(request)
      yield* await answers(request, signal)
    },
    probe: async () => undefined,
  }
  const tool = (name: string, more: Partial<Tool> = {}): Tool => ({
    description: 'for a test',
    category: 'text',
    effects: ['read'],
    parameters: { type: 'object' },
    async call(args) {
      ran.push(`${name} ${JSON.stringify(args)}`)
      return { content: [{ type: 'text', text: `real ${name}` }] }
    },
    ...more,
  })
  const given = definePlugin({
    setup(scope) {
      scope.add(Providers, 'scripted', provider)
      scope.add(Tools, 'weather', tool('weather'))
      if (allows) scope.tap(Chat.hooks.toolCall, async () => ({ verdict: 'allow' as const }), { stage: -1_000 })
      scope.add(Tools, 'send', tool('send', { asks: true }))
    },
  })
  const host = await testHost(BASE, {
    give: [{ name: 'test:given', use: given }],
    config: { providers: { local: {} }, selection: { profiles_file }, ...config },
  })
  const evaluations = host.service(Evaluations)
  async function run(request: EvaluationRequest, ctx = ANN): Promise<EvaluationReport> {
    for await (const event of evaluations.run(request, ctx)) if (event.type === 'end') return event.report
    throw new Error('the evaluation has no end')
  }
  return {
    evaluations,
    conversations: host.service(Conversations),
    requests,
    ran,
    looks: () =>
      host.report().hooks.find(({ plugin, hook }) => plugin.includes('evaluations') && hook === 'chat.toolCall')?.calls ?? 0,
    say: (message, ctx = ANN) => host.service(Chat).reply({ message }, ctx),
    run,
    one: async (entry, more = {}) => (await run({ cases: [{ name: 'one', ...entry }], ...more })).results[0]!,
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}
