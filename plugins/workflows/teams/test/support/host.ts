import { type ConfigTree, type PluginRef, type RunningHost, svcError } from '@svc/core'
import {
  type Json,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  Providers,
  type Run,
  type TeamDefinition,
  TeamDefinitions,
  type TeamMember,
  Teams,
  type Tool,
  Tools,
  Workflows,
} from '@svc/core/contracts'
import { type Fixture, item, testHost, testContext } from '@svc/testing'
import type { TeamResult } from '../../src/team-node.ts'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const plugin = (name: string): PluginRef => ({
  name: `@svc/plugin-${name}`,
  use: pluginFolder(name),
})

/** A prompt that a member receives in a test. */
export interface Asked {
  readonly member: string
  readonly prompt: string
  readonly system: string
  readonly isData: boolean
  readonly tools: readonly string[]
  /** Results of the tools in this turn. */
  readonly results: readonly string[]
  readonly signal: AbortSignal
}
/** The reply of the model: a text, data, a tool call, or an error to fail with. */
export type Script = (asked: Asked) => Word | Promise<Word>
type Word = Json | Error | ToolRequest
/** A tool call of a member. */
export class ToolRequest {
  readonly tool: string
  readonly args: { readonly [name: string]: Json }
  constructor(tool: string, args: { readonly [name: string]: Json } = {}) {
    this.tool = tool
    this.args = args
  }
}

export const ctx = testContext()

const textOf = ({ messages }: ModelRequest, role: string) =>
  messages
    .filter(message => message.role === role)
    .map(({ parts }) => parts.map(part => (part.type === 'text' ? part.text : '')).join(''))

function askedBy(request: ModelRequest, signal: AbortSignal): Asked {
  const system = textOf(request, 'system').join('\n')
  const [, member = ''] = /the member "(\w+)"/.exec(system) ?? []
  const prompt = textOf(request, 'user')[0] ?? ''
  const results = request.messages.flatMap(({ parts }) =>
    parts.flatMap(part => (part.type === 'tool_result' ? [JSON.stringify(part.content)] : []))
  )
  return {
    member,
    prompt,
    system,
    isData: request.responseSchema !== undefined,
    tools: (request.tools ?? []).map(({ name }) => name),
    results,
    signal,
  }
}

const [INPUT, OUTPUT] = [4, 6]
const FAILURE = { kind: 'bad_request', retryable: false, requestOnly: true }

/** A provider with a scripted model. Each reply costs ten tokens, or as many as the limit allows. */
const scripted = (script: Script): Provider => ({
  features: { tool_calling: true, streaming: true, vision: false },
  models: async () => ({ models: [{ id: 'actor' }], open: false }),
  countTokens: async () => INPUT,
  async *chat(request, { signal }) {
    const word = await script(askedBy(request, signal))
    if (word instanceof Error) throw svcError('MODEL_FAILED', word.message, { details: FAILURE })
    yield* spoken(word, request.maxTokens)
  },
  probe: async () => {},
})

function* spoken(word: Json | ToolRequest, maxTokens = OUTPUT): Generator<ModelEvent> {
  if (word instanceof ToolRequest) yield { type: 'tool_call', id: 'call', tool: word.tool, arguments: word.args }
  else yield { type: 'text', text: typeof word === 'string' ? word : JSON.stringify(word) }
  yield { type: 'usage', usage: { input: INPUT, output: Math.min(OUTPUT, maxTokens) } }
  yield { type: 'finish', reason: word instanceof ToolRequest ? 'tool_calls' : 'stop' }
}

export interface HostOptions {
  readonly script?: Script
  readonly teams?: Readonly<Record<string, TeamDefinition>>
  readonly give?: readonly Fixture[]
  readonly config?: ConfigTree
  /** Store plugin; default: in memory. */
  readonly store?: string
  readonly plugins?: readonly string[]
}

const PLUGINS = [
  'queue-store',
  'workflows',
  'workflow-nodes',
  'teams',
  'chat',
  'model-calls',
  'conversations',
  'selection',
  'modes',
]

export function openTeamHost({
  script = () => 'Done.',
  teams = {},
  give = [],
  config = {},
  store = 'store-memory',
  plugins = [],
}: HostOptions): Promise<RunningHost> {
  const gifts = Object.entries(teams).map(([name, team]) => item(TeamDefinitions, name, team))
  return testHost([store, ...PLUGINS, ...plugins].map(plugin), {
    give: [item(Providers, 'stage', scripted(script)), ...gifts, ...give],
    config,
  })
}

/** Members by name, with a role and a goal. */
export const members = (...names: readonly string[]): TeamDefinition['members'] =>
  Object.fromEntries(names.map(name => [name, { role: `the ${name}`, goal: `do what a ${name} does` } satisfies TeamMember]))

/** Runs a team on a task to its end. */
export async function ran(host: RunningHost, team: string, task: Json = 'Say what is best.'): Promise<Run> {
  const { id } = await host.service(Teams).start({ team, task }, ctx)
  return host.service(Workflows).settled(id, 15_000, ctx)
}

/** A tool for the members. */
const LOOK: Tool = {
  description: 'Looks at the boat',
  category: 'test',
  effects: ['read'],
  parameters: { type: 'object', properties: {} },
  call: async () => ({ content: [{ type: 'text', text: 'a boat' }] }),
}

/** Never replies; rejects when the signal aborts. */
export const sleeping = ({ signal }: Asked): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))

/** Starts a host with a team and runs a task. Returns the run, and the prompts of its members. */
export async function worked(team: TeamDefinition, script: Script, task?: Json) {
  const asked: Asked[] = []
  const noted: Script = entry => {
    asked.push(entry)
    return script(entry)
  }
  await using host = await openTeamHost({ script: noted, teams: { [team.name]: team }, give: [item(Tools, 'look', LOOK)] })
  const run = await ran(host, team.name, task)
  return { run, result: run.result as unknown as TeamResult, asked }
}
