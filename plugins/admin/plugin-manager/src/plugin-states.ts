import type { CallContext, Host, HostReport, PluginReport } from '@svc/core'
import type { Json, Peers, PluginAccounting, PluginState, WorkerMetrics } from '@svc/core/contracts'

/** The name of the part in the metrics of a worker. */
const NAME = 'plugin_states'

/** Plugins of the command line. */
const OWN: ReadonlySet<string> = new Set(['workers', 'protected-paths'])

/** Whether a plugin comes with svc, or belongs to the command line. */
export const isCurated = (name: string): boolean => name.startsWith('@svc/plugin-') || OWN.has(name)

/** What one worker adds to a plugin. Plain numbers, so that workers can be summed. */
interface WorkerPart extends PluginAccounting {
  readonly refusals: { readonly [kind: string]: number }
  readonly restarts: number
  readonly memory_bytes: number
  readonly cpu_ms: number
  /** The state of each instance; the name of a plugin without instances is ''. */
  readonly states: { readonly [instance: string]: PluginReport['state'] }
}
type WorkerParts = Readonly<Record<string, WorkerPart>>

/** A plugin over all workers. */
export interface PluginTotals extends Omit<WorkerPart, 'states'> {
  readonly states: { readonly [instance: string]: PluginState }
}

export interface PluginStates {
  /** The plugins of all workers by name. */
  read(ctx: CallContext): Promise<ReadonlyMap<string, PluginTotals>>
  /** For taps of `Peers.hooks`. */
  readonly own: (metrics: WorkerMetrics, ctx: CallContext) => Promise<WorkerMetrics>
  readonly inherit: (metrics: WorkerMetrics) => void
}

const NOTHING: WorkerPart = { calls: 0, errors: 0, ms: 0, refusals: {}, restarts: 0, memory_bytes: 0, cpu_ms: 0, states: {} }

/** Collects the plugins of this worker and sums those of all. */
export function createPluginStates(host: Host, peers: Peers | undefined): PluginStates {
  const ended = new Map<string, WorkerPart>()
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
    Object.entries(parts).map(([name, { calls, errors, ms, refusals }]) => [name, { ...NOTHING, calls, errors, ms, refusals }])
  )

function partsOf({ plugins, hooks, calls }: HostReport): WorkerParts {
  const parts = new Map<string, WorkerPart>()
  const add = (name: string, part: Partial<WorkerPart>) => parts.set(name, plus(parts.get(name), { ...NOTHING, ...part }))
  for (const { name, instance = '', state, refusals = {}, restarts = 0, memoryBytes = 0, cpuMs = 0 } of plugins)
    add(name, { states: { [instance]: state }, refusals, restarts, memory_bytes: memoryBytes, cpu_ms: cpuMs })
  for (const { plugin, calls: count, errors, ms } of [...hooks, ...calls]) add(plugin, { calls: count, errors, ms })
  return Object.fromEntries(parts)
}

const summed = (all: readonly (WorkerParts | undefined)[]): WorkerParts => Object.fromEntries(totalsOf(all))

function totalsOf(all: readonly (WorkerParts | undefined)[]): Map<string, WorkerPart> {
  const totals = new Map<string, WorkerPart>()
  for (const parts of all) for (const [name, part] of Object.entries(parts ?? {})) totals.set(name, plus(totals.get(name), part))
  return totals
}

const SUMMED = ['calls', 'errors', 'ms', 'restarts', 'memory_bytes', 'cpu_ms'] as const

function plus(a: WorkerPart = NOTHING, b: WorkerPart): WorkerPart {
  const numbers = Object.fromEntries(SUMMED.map(key => [key, a[key] + b[key]])) as Record<(typeof SUMMED)[number], number>
  const refusals: Record<string, number> = { ...a.refusals }
  for (const [kind, count] of Object.entries(b.refusals)) refusals[kind] = (refusals[kind] ?? 0) + count
  const states: Record<string, PluginReport['state']> = { ...a.states }
  for (const [instance, state] of Object.entries(b.states)) states[instance] = worst([states[instance] ?? state, state])
  return { ...numbers, refusals, states }
}

const WORST_FIRST = ['failed', 'quarantined', 'restarting', 'running', 'idle', 'disabled'] as const satisfies PluginState[]

/** The worst of these states. */
export const worst = <S extends PluginState>(states: readonly S[]): S =>
  states.reduce((a, b) => (WORST_FIRST.indexOf(b) < WORST_FIRST.indexOf(a) ? b : a))
