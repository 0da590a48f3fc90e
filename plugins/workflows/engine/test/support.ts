import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunningHost } from '@svc/core'
import {
  Checks,
  Peers,
  type RunRequest,
  type WorkflowDefinition,
  type WorkflowNode,
  WorkflowNodes,
  Workflows,
} from '@svc/core/contracts'
import { type Fixture, item, service, testHost, testContext } from '@svc/testing'
import { setTimeout as wait } from 'node:timers/promises'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

export const plugin = (name: string) => ({ name: `@svc/plugin-${name}`, use: pluginFolder(name) })

/** A worker that is the only one: with it the engine takes runs from its queue. */
export const ALONE: Peers = {
  broadcast: async () => {},
  metrics: async () => [],
  acquire: async () => true,
  release: async () => {},
  self: async () => 'only',
  async *ask() {},
}

export interface Opened {
  readonly nodes?: Readonly<Record<string, WorkflowNode>>
  readonly give?: readonly Fixture[]
  /** The file of a store that lasts; without it the store is in memory. */
  readonly db?: string
  readonly config?: Readonly<Record<string, unknown>>
  readonly strict?: boolean
  /** Further plugins, such as jobs. */
  readonly more?: readonly string[]
}

export function openEngine({
  nodes = {},
  give = [],
  db,
  config = {},
  strict = true,
  more = [],
}: Opened = {}): Promise<RunningHost> {
  const store = db === undefined ? 'store-memory' : 'store-sqlite'
  const plugins = [store, 'modes', 'queue-store', 'workflow-nodes', ...more, 'workflows'].map(plugin)
  const given = Object.entries(nodes).map(([name, node]) => item(WorkflowNodes, name, node))
  const stored = db === undefined ? {} : { store: { path: db } }
  return testHost(plugins, {
    give: [service(Peers, ALONE), ...given, ...give],
    config: { ...stored, ...config } as never,
    strict,
  })
}

export const ctx = testContext()

/** A run, up to its end. */
export async function ran(host: RunningHost, workflow: WorkflowDefinition, more: Omit<RunRequest, 'workflow'> = {}) {
  const service_ = host.service(Workflows)
  const { id } = await service_.start({ workflow, ...more }, ctx)
  return service_.settled(id, 10_000, ctx)
}

/** A run, up to where it waits. */
export async function waitingRun(host: RunningHost, workflow: WorkflowDefinition) {
  const service_ = host.service(Workflows)
  const { id } = await service_.start({ workflow }, ctx)
  for await (const { type } of service_.events(id, 0, ctx)) if (type === 'node_waiting') break
  return id
}

/** What a test does inside a node: its promise is the node's work. */
export const node = (run: WorkflowNode['run'], more: Partial<WorkflowNode> = {}): WorkflowNode => ({
  description: 'A node of a test.',
  settings: { type: 'object' },
  repeatable: false,
  run,
  ...more,
})

/** Runs a test with a folder of its own, gone with it. */
export async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-workflows-'))
  try {
    await test(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Answers once something holds; all else has its turn between two looks. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await wait(5)
}

/** Answers once this host works on no run any more. */
export const quiet = (host: RunningHost) =>
  until(async () => (await host.slot(Checks).get('workflows')!.status!(ctx)).detail!.runs_here === 0)
