import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigTree, RunningHost } from '@svc/core'
import {
  type Mode,
  Modes,
  Recommend,
  type RecommendRequest,
  type TeamDefinition,
  TeamDefinitions,
  Teams,
  type Tool,
  Tools,
  WorkflowDefinitions,
  type WorkflowInfo,
  Workflows,
} from '@svc/core/contracts'
import { item, service, testHost, testContext } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const PLUGINS = ['recommend', 'verticals'].map(pluginFolder)
const ctx = testContext()
const MANIFEST = {
  api: 1,
  kind: 'workflow',
  runtime: 'vertical',
  contributes: { verticals: ['*'], teams: ['*'], workflows: ['*'] },
}

/** Writes the package of a third-party vertical. */
async function packageOf(text: string, at: number): Promise<{ folder: string } & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-vertical-'))
  const manifest = { name: `vertical-${at}`, version: '1.0.0', main: 'vertical.yaml', svc: MANIFEST }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'vertical.yaml'), text)
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

const unused = () => Promise.reject(new Error('unused'))
const nothing = async function* () {}

/** Teams of the host in the form of the teams plugin. */
const teamsOf = (host: () => RunningHost, broken: readonly string[]): Teams => ({
  list: async () =>
    host()
      .slot(TeamDefinitions)
      .entries()
      .map(([name, { description, formation, members }]) => ({
        name,
        ...(description === undefined ? {} : { description }),
        formation,
        source: 'a-vertical',
        members: Object.keys(members),
        ...(broken.includes(name) ? { problems: [{ message: 'is broken', path: '' }] } : {}),
      })),
  show: async name => {
    const definition = host().slot(TeamDefinitions).get(name) as TeamDefinition
    const { formation, members } = definition
    return { info: { name, formation, source: 'a-vertical', members: Object.keys(members) }, definition }
  },
  body: unused,
  start: unused,
  runs: unused,
  run: unused,
})

/** Workflows of the host in the form of the engine. */
const workflowsOf = (host: () => RunningHost, broken: readonly string[]): Workflows => ({
  list: async () =>
    host()
      .slot(WorkflowDefinitions)
      .entries()
      .map(
        ([name, { description, nodes }]): WorkflowInfo => ({
          name,
          ...(description === undefined ? {} : { description }),
          source: 'a-vertical',
          nodes: Object.keys(nodes).length,
          ...(broken.includes(name) ? { problems: [{ message: 'is broken', path: '' }] } : {}),
        })
      ),
  show: unused,
  validate: unused,
  source: unused,
  save: unused,
  questions: unused,
  replay: unused,
  drop: unused,
  interface: unused,
  query: unused,
  versions: unused,
  pause: unused,
  resume: unused,
  pauseWorkflow: unused,
  resumeWorkflow: unused,
  bulk: unused,
  start: unused,
  settled: unused,
  get: unused,
  runs: unused,
  steps: unused,
  stepsAt: unused,
  definitionOf: unused,
  events: nothing,
  signal: unused,
  answer: unused,
  cancel: unused,
  retry: unused,
  work: unused,
})

const tool = (effects: Tool['effects']): Tool => ({
  description: 'A tool',
  category: 'text',
  effects,
  parameters: { type: 'object' },
  call: async () => ({ content: [] }),
})
const mode = (effects: Mode['effects']): Mode => ({ description: 'A mode', effects, prompt: '', toolBudget: 5 })

/** Options of a test host. */
export interface HostOptions {
  readonly config?: ConfigTree
  readonly broken?: readonly string[]
  /** Starts the host without teams and workflows. */
  readonly alone?: true
}

/** Starts a host with verticals of these texts. */
export async function openRecommendHost(texts: readonly string[], { config = {}, broken = [], alone }: HostOptions = {}) {
  await using stack = new AsyncDisposableStack()
  const folders: string[] = []
  for (const [at, text] of texts.entries()) folders.push(stack.use(await packageOf(text, at)).folder)
  const opened: { host?: RunningHost } = {}
  const teams = teamsOf(() => opened.host!, broken)
  const workflows = workflowsOf(() => opened.host!, broken)
  const give = [
    ...(alone ? [] : [service(Teams, teams), service(Workflows, workflows)]),
    item(Tools, 'read_it', tool(['read'])),
    item(Tools, 'write_it', tool(['write'])),
    item(Modes, 'build', mode(['read', 'write', 'execute', 'network'])),
    item(Modes, 'plan', mode(['read', 'network'])),
  ]
  const host = stack.use(await testHost([...PLUGINS, ...folders], { config, give }))
  opened.host = host
  const kept = stack.move()
  const recommend = (request: Partial<RecommendRequest>) =>
    host.service(Recommend).recommend({ taskType: 'code_review', complexity: 'high', ...request }, ctx)
  return { host, recommend, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
