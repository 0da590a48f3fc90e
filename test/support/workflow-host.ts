import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { definePlugin, type PluginRef, type RunningHost, startHost, svcError, systemContext, type CallContext } from '@svc/core'
import {
  Peers,
  type RunStatus,
  Store,
  type WorkflowDefinition,
  WorkflowDefinitions,
  type WorkflowNode,
  WorkflowNodes,
} from '@svc/core/contracts'
import { createSqliteStore } from '../../plugins/storage/sqlite/src/store.ts'
import { pluginFolder } from './plugin-folder.ts'

const plugin = (name: string): PluginRef => ({
  name: `@svc/plugin-${name}`,
  use: pluginFolder(name),
})
const PLUGINS = ['modes', 'workflow-nodes', 'queue-store', 'workflows'].map(plugin)

export interface WorkflowHostOptions {
  /** The file of the store. */
  readonly db: string
  /** Each call and each effect of a node `effect` is a line in it. */
  readonly effects: string
  readonly serverId?: string
  /** The server that had this store before, and is dead. */
  readonly dead?: string
  readonly definitions?: readonly WorkflowDefinition[]
  readonly nodes?: Readonly<Record<string, WorkflowNode>>
  /** What comes between the plugins and the store. */
  readonly wrap?: (store: Store) => Store
  readonly config?: Readonly<Record<string, unknown>>
  /** Further plugins, such as jobs. */
  readonly more?: readonly string[]
}

/** A host with the engine, on a store in a file: what `svc serve` has of it, without a server. */
export async function openWorkflowHost(options: WorkflowHostOptions): Promise<RunningHost> {
  const {
    db,
    effects,
    serverId = 'server',
    dead,
    definitions = [],
    nodes = {},
    wrap = store => store,
    config = {},
    more = [],
  } = options
  const store = definePlugin({
    provides: Store,
    async setup(scope) {
      const made = scope.use(createSqliteStore({ path: db }))
      if (dead !== undefined) await made.releaseHolder(`${dead}.`, systemContext(scope.signal, 'test'))
      return wrap(made)
    },
  })
  const peers = definePlugin({
    provides: Peers,
    setup: scope => onlyWorker(message => scope.hooks.message(message, systemContext(scope.signal, 'test'))),
  })
  const parts = definePlugin({
    setup(scope) {
      for (const [name, node] of Object.entries({ effect: effectNode(effects), ...nodes })) scope.add(WorkflowNodes, name, node)
      for (const definition of definitions) scope.add(WorkflowDefinitions, definition.name, definition)
    },
  })
  return startHost({
    serverId,
    plugins: [
      { name: 'test:store', use: store },
      { name: 'test:peers', use: peers },
      ...more.map(plugin),
      ...PLUGINS,
      { name: 'test:parts', use: parts },
    ],
    config: { log: { level: 'silent' }, ...config } as never,
  })
}

/** A worker that is the only one of its server. */
const onlyWorker = (notify: (message: { topic: string; message: never }) => Promise<unknown>) => ({
  broadcast: async (topic: string, message: unknown) => void (await notify({ topic, message: message as never })),
  metrics: async () => [],
  acquire: async () => true,
  release: async () => {},
  self: async () => 'only',
  async *ask(): AsyncGenerator<never, void> {},
})

/**
 * A node that does something outside, once a key: it looks first whether it has done it. `fail_times`: its first tries fail. `key` and `value` are told in the
 * file.
 */
export function effectNode(file: string): WorkflowNode {
  return {
    description: 'Does something outside.',
    settings: {
      type: 'object',
      properties: { value: {}, fail_times: { type: 'integer' }, fails: { type: 'boolean' } },
      additionalProperties: false,
    },
    repeatable: true,
    async *run({ run, step, attempt, settings, idempotencyKey }) {
      appendFileSync(file, `call ${run.id} ${step}\n`)
      await new Promise(resolve => setImmediate(resolve))
      if (settings.fails === true || attempt <= ((settings.fail_times as number | undefined) ?? 0))
        throw svcError('EFFECT_FAILED', 'it failed, as configured')
      if (!effectsIn(file).some(({ key }) => key === idempotencyKey))
        appendFileSync(file, `effect ${run.id} ${step} ${idempotencyKey}\n`)
      yield { type: 'output', output: settings.value ?? null }
    },
  }
}

const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [])

/** What was done, in order. */
export const effectsIn = (file: string) =>
  linesOf(file).flatMap(line => {
    const [what, run, step, key] = line.split(' ')
    return what === 'effect' ? [{ run: run!, step: step!, key: key! }] : []
  })

/** Calls of nodes, in order. */
export const callsIn = (file: string) =>
  linesOf(file).flatMap(line => {
    const [what, run, step] = line.split(' ')
    return what === 'call' ? [{ run: run!, step: step! }] : []
  })

export const workflowContext = (id = 'tester', signal: AbortSignal = new AbortController().signal): CallContext => ({
  signal,
  principal: { id, scopes: ['workflows'] },
  requestId: 'test',
})

/** How a run has ended, as a child process tells it. */
export interface EndedRun {
  readonly id: string
  readonly workflow: string
  readonly status: RunStatus
  readonly result?: unknown
  readonly error?: { readonly code: string; readonly message: string }
}
