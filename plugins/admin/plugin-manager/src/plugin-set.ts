import type { CallContext, Host, PluginReport } from '@svc/core'
import type { Job, PluginDetail, PluginSet, PluginSummary } from '@svc/core/contracts'
import { pluginUnknown } from './errors.ts'
import type { LockedPlugin } from './set/lock.ts'
import { isCurated, type PluginStates, type PluginTotals, worst } from './plugin-states.ts'
import type { PluginPlans } from './plugin-plans.ts'

interface PluginSetOptions {
  readonly host: Host
  readonly states: PluginStates
  /** The installed plugins. */
  readonly installed: () => Promise<readonly LockedPlugin[]>
  readonly plans: Pick<PluginPlans, 'plan' | 'apply'>
}

/** The service `PluginSet`. */
export function createPluginSet({ host, states, installed, plans }: PluginSetOptions): PluginSet {
  const details = async (ctx: CallContext): Promise<PluginDetail[]> => {
    const [{ plugins }, totals, locked] = await Promise.all([host.report(ctx), states.read(ctx), installed()])
    const loaded = Map.groupBy(plugins, ({ name }) => name)
    const running = [...loaded].map(([name, reports]) => loadedDetail(reports, totals.get(name), find(locked, name)))
    const others = locked.filter(({ name }) => !loaded.has(name)).map(restingDetail)
    return [...running, ...others].sort((a, b) => (a.name < b.name ? -1 : 1))
  }
  return {
    list: async ctx => (await details(ctx)).map(summaryOf),
    async get(name, ctx) {
      const found = (await details(ctx)).find(plugin => plugin.name === name)
      if (!found) throw pluginUnknown(name)
      return found
    },
    plan: (change, ctx) => plans.plan(change, ctx),
    apply: (hash, ctx): Promise<Job> => plans.apply(hash, ctx),
  }
}

const find = (locked: readonly LockedPlugin[], name: string) => locked.find(plugin => plugin.name === name)

const summaryOf = ({ name, version, kind, state, isolation, origin, optional, accounting, refusals, error }: PluginDetail) =>
  ({
    name,
    version,
    kind,
    state,
    isolation,
    origin,
    optional,
    accounting,
    refusals,
    ...(error ? { error } : {}),
  }) satisfies PluginSummary

/** A plugin of the host: one report, or one for each instance. */
function loadedDetail(reports: readonly PluginReport[], totals: PluginTotals | undefined, locked?: LockedPlugin): PluginDetail {
  const [first] = reports as readonly [PluginReport]
  const { name, version, kind, isolation, optional, permissions, requires } = first
  const stateOf = ({ instance = '', state }: PluginReport) => totals?.states[instance] ?? state
  const failed = reports.find(report => report.error !== undefined)?.error
  const { calls = 0, errors = 0, ms = 0, refusals = {} } = totals ?? {}
  return {
    name,
    version,
    kind,
    state: worst(reports.map(stateOf)),
    isolation,
    origin: originOf(name, locked),
    optional,
    accounting: { calls, errors, ms: Math.round(ms * 1000) / 1000 },
    refusals,
    ...(failed ? { error: { code: failed.code, message: failed.message } } : {}),
    instances: reports.flatMap(report =>
      report.instance === undefined ? [] : [{ name: report.instance, state: stateOf(report) }]
    ),
    added: joined(reports.map(report => report.added)),
    provides: [...new Set(reports.flatMap(report => [report.provides ?? [], report.alsoProvides ?? []].flat()))],
    requires,
    permissions,
    ...(isolation === 'process' && totals
      ? { process: { memory_bytes: totals.memory_bytes, cpu_ms: Math.round(totals.cpu_ms), restarts: totals.restarts } }
      : {}),
    ...(locked ? { installed: installedFacts(locked) } : {}),
  }
}

/** An installed plugin that the host has not loaded. */
const restingDetail = (locked: LockedPlugin): PluginDetail => ({
  name: locked.name,
  version: locked.version,
  kind: '',
  state: locked.enabled ? 'idle' : 'disabled',
  isolation: locked.isolation,
  origin: originOf(locked.name, locked),
  optional: true,
  accounting: { calls: 0, errors: 0, ms: 0 },
  refusals: {},
  instances: [],
  added: {},
  provides: [],
  requires: [],
  permissions: { ...locked.permissions },
  installed: installedFacts(locked),
})

const installedFacts = ({ integrity, enabled, trusted }: LockedPlugin) => ({ integrity, enabled, trusted })

/** Without the path of a folder. */
function originOf(name: string, locked: LockedPlugin | undefined): PluginSummary['origin'] {
  if (locked === undefined) return { kind: isCurated(name) ? 'svc' : 'configuration' }
  const { kind, spec } = locked.origin
  return kind === 'registry' ? { kind, spec } : { kind }
}

function joined(all: readonly PluginReport['added'][]): Record<string, string[]> {
  const names: Record<string, string[]> = {}
  for (const [slot, added] of all.flatMap(item => Object.entries(item)))
    names[slot] = [...new Set([...(names[slot] ?? []), ...added])]
  return names
}
