import type { CallContext, Host, HostReport, PluginReport } from '@svc/core'
import type { Json, Peers, PluginAccounting, PluginProcesses, PluginState, WorkerMetrics } from '@svc/core/contracts'

/** The name of the part in the metrics of a worker. */
const NAME = 'plugin_states'

/** Plugins of the command line. */
const OWN: ReadonlySet<string> = new Set(['workers', 'protected-paths', 'server-control'])

/** Whether a plugin comes with svc, or belongs to the command line. */
export const isCurated = (name: string): boolean => name.startsWith('@svc/plugin-') || OWN.has(name)

/** The state of an instance, as numbers that can be summed over workers. */
export interface InstanceTotals extends PluginProcesses {
  readonly state: PluginReport['state']
  readonly refusals: { readonly [kind: string]: number }
}

/** A plugin of one worker, or of all. The name of the only instance of a plugin without instances is ''. */
export interface PluginTotals extends PluginAccounting {
  readonly instances: { readonly [name: string]: InstanceTotals }
  /** Of instances that have ended. */
  readonly refusals: { readonly [kind: string]: number }
  /** Restarts of the processes of instances that have ended, by instance. */
  readonly restarts: { readonly [instance: string]: number }
}
type WorkerParts = Readonly<Record<string, PluginTotals>>

export interface PluginStates {
  /** The plugins of all workers by name. */
  read(ctx: CallContext): Promise<ReadonlyMap<string, PluginTotals>>
  /** For taps of `Peers.hooks`. */
  readonly own: (metrics: WorkerMetrics, ctx: CallContext) => Promise<WorkerMetrics>
  readonly inherit: (metrics: WorkerMetrics) => void
}

const NOTHING: PluginTotals = { calls: 0, errors: 0, ms: 0, instances: {}, refusals: {}, restarts: {} }

/** Collects the plugins of this worker and sums those of all. */
export function createPluginStates(host: Host, peers: Peers | undefined): PluginStates {
  const ended = new Map<string, PluginTotals>()
  const ownParts = async (ctx: CallContext) => summed([partsOf(await host.report(ctx)), Object.fromEntries(ended)])
  return {
    read: async ctx => totalsOf(peers ? (await peers.metrics(ctx)).map(partIn) : [await ownParts(ctx)]),
    own: async (metrics, ctx) => ({ ...metrics, [NAME]: (await ownParts(ctx)) as unknown as Json }),
    inherit(metrics) {
      for (const [name, part] of Object.entries(countersOf(partIn(metrics)))) ended.set(name, plus(ended.get(name), part))
    },
  }
}

// the cast is safe: only `own`, in this process or another worker, writes the value under this name
const partIn = (metrics: WorkerMetrics): WorkerParts | undefined => {
  const parts = metrics[NAME] as unknown as WorkerParts | undefined
  return metrics.ended === true ? countersOf(parts) : parts
}

/** Of a worker that has ended only what it has counted. */
const countersOf = (parts: WorkerParts = {}): WorkerParts =>
  Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [
      name,
      { ...part, instances: {}, refusals: refusalsOf(part), restarts: restartsOf(part) },
    ])
  )

/** All refusals of a plugin, by kind. */
export const refusalsOf = ({ refusals, instances }: PluginTotals): Record<string, number> =>
  Object.values(instances).reduce((sum, instance) => counts(sum, instance.refusals), counts(refusals, {}))

/** All restarts of the processes of a plugin, by instance. */
export const restartsOf = ({ restarts, instances }: PluginTotals): Record<string, number> =>
  counts(restarts, Object.fromEntries(Object.entries(instances).map(([name, instance]) => [name, instance.restarts])))

function partsOf({ plugins, hooks, calls }: HostReport): WorkerParts {
  const parts = new Map<string, PluginTotals>()
  const add = (name: string, part: Partial<PluginTotals>) => parts.set(name, plus(parts.get(name), { ...NOTHING, ...part }))
  for (const { name, instance = '', state, refusals = {}, restarts = 0, memoryBytes = 0, cpuMs = 0 } of plugins)
    add(name, { instances: { [instance]: { state, refusals, restarts, memory_bytes: memoryBytes, cpu_ms: cpuMs } } })
  for (const { plugin, calls: count, errors, ms } of [...hooks, ...calls]) add(plugin, { calls: count, errors, ms })
  return Object.fromEntries(parts)
}

const summed = (all: readonly (WorkerParts | undefined)[]): WorkerParts => Object.fromEntries(totalsOf(all))

function totalsOf(all: readonly (WorkerParts | undefined)[]): Map<string, PluginTotals> {
  const totals = new Map<string, PluginTotals>()
  for (const parts of all) for (const [name, part] of Object.entries(parts ?? {})) totals.set(name, plus(totals.get(name), part))
  return totals
}

function plus(a: PluginTotals = NOTHING, b: PluginTotals): PluginTotals {
  const instances = { ...a.instances }
  for (const [name, instance] of Object.entries(b.instances)) instances[name] = joined(instances[name], instance)
  return {
    calls: a.calls + b.calls,
    errors: a.errors + b.errors,
    ms: a.ms + b.ms,
    instances,
    refusals: counts(a.refusals, b.refusals),
    restarts: counts(a.restarts, b.restarts),
  }
}

const joined = (a: InstanceTotals | undefined, b: InstanceTotals): InstanceTotals =>
  a === undefined ? b : { ...processesOf([a, b]), state: worst([a.state, b.state]), refusals: counts(a.refusals, b.refusals) }

/** The processes of several instances or workers together. */
export const processesOf = (all: readonly PluginProcesses[]): PluginProcesses => ({
  memory_bytes: sum(all, item => item.memory_bytes),
  cpu_ms: sum(all, item => item.cpu_ms),
  restarts: sum(all, item => item.restarts),
})

const sum = <T>(items: readonly T[], value: (item: T) => number) => items.reduce((total, item) => total + value(item), 0)

function counts(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): Record<string, number> {
  const both = { ...a }
  for (const [kind, count] of Object.entries(b)) both[kind] = (both[kind] ?? 0) + count
  return both
}

const WORST_FIRST = ['failed', 'quarantined', 'restarting', 'running', 'idle', 'disabled'] as const satisfies PluginState[]

/** The worst of these states. */
export const worst = <S extends PluginState>(states: readonly S[]): S =>
  states.reduce((a, b) => (WORST_FIRST.indexOf(b) < WORST_FIRST.indexOf(a) ? b : a))
