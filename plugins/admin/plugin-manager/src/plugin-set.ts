import { type CallContext, type Host, type PluginReport, SYSTEM } from '@svc/core'
import type { Job, Json, PeerAnswer, PluginDetail, PluginInstance, PluginSet, PluginSummary } from '@svc/core/contracts'
import { pluginUnknown, settingsPrivate } from './errors.ts'
import type { LockedPlugin } from './set/lock.ts'
import {
  type InstanceTotals,
  isCurated,
  type PluginStates,
  type PluginTotals,
  processesOf,
  refusalsOf,
  restartsOf,
  worst,
} from './plugin-states.ts'
import type { PluginPlans } from './plugin-plans.ts'

interface PluginSetOptions {
  readonly host: Host
  readonly states: PluginStates
  /** The installed plugins. */
  readonly installed: () => Promise<readonly LockedPlugin[]>
  /** The folder of their lock. */
  readonly home: string
  readonly plans: Pick<PluginPlans, 'plan' | 'apply'>
}

/** The topic under which commands of this machine ask a server for its plugins. */
export const TOPIC = 'plugins'

/** The topic under which they ask with which settings and variables it would load plugins. */
export const SETTINGS_TOPIC = 'plugins.settings'

/** The service `PluginSet`, and the answers to commands by topic. */
export function createPluginSet({ host, states, installed, home, plans }: PluginSetOptions): {
  readonly pluginSet: PluginSet
  readonly answers: ReadonlyMap<string, PeerAnswer>
} {
  const details = async (ctx: CallContext): Promise<PluginDetail[]> => {
    const [{ plugins }, totals, locked] = await Promise.all([host.report(ctx), states.read(ctx), installed()])
    const loaded = Map.groupBy(plugins, ({ name }) => name)
    const former = await formerVersions(home, locked)
    const running = [...loaded].map(([name, reports]) => loadedDetail(reports, totals.get(name), find(locked, name)))
    const others = locked.filter(({ name }) => !loaded.has(name)).map(restingDetail)
    return [...running, ...others]
      .map(detail => withInstalled(detail, find(locked, detail.name), former))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }
  const pluginSet: PluginSet = {
    list: async ctx => (await details(ctx)).map(summaryOf),
    async get(name, ctx) {
      const found = (await details(ctx)).find(plugin => plugin.name === name)
      if (!found) throw pluginUnknown(name)
      return found
    },
    plan: (change, ctx) => plans.plan(change, ctx),
    apply: (hash, ctx): Promise<Job> => plans.apply(hash, ctx),
  }
  async function* answer(_message: Json, ctx: CallContext): AsyncGenerator<Json> {
    yield (await details(ctx)) as unknown as Json
  }
  return {
    pluginSet,
    answers: new Map([
      [TOPIC, { answer }],
      [SETTINGS_TOPIC, settingsAnswer],
    ]),
  }
}

/**
 * Answers commands of this machine with settings that the next reload would find. Plugins in processes of their own, which may
 * have the service `peers`, never have the principal of svc.
 */
export const settingsAnswer: PeerAnswer = {
  async *answer(message, ctx) {
    if (ctx.principal.id !== SYSTEM.id) throw settingsPrivate()
    const { answerSettings } = await import('./commands/change/server-settings.ts')
    yield (await answerSettings(message)) as unknown as Json
  },
}

/** The versions to which installed plugins can go back, by name. Most homes have no plugins, and do not load the module. */
async function formerVersions(home: string, plugins: readonly LockedPlugin[]): Promise<ReadonlyMap<string, string>> {
  if (plugins.length === 0) return new Map()
  const { formerVersionOf } = await import('./set/former.ts')
  return new Map(plugins.flatMap(plugin => formerVersionOf(home, plugin) ?? []).map(({ name, version }) => [name, version]))
}

const find = (locked: readonly LockedPlugin[], name: string) => locked.find(plugin => plugin.name === name)

/** Without the members that only the detail has. */
const summaryOf = ({
  instances: _instances,
  added: _added,
  provides: _provides,
  requires: _requires,
  permissions: _permissions,
  installed: _installed,
  ...summary
}: PluginDetail): PluginSummary => summary

/** A plugin of the host: one report, or one for each instance. */
function loadedDetail(reports: readonly PluginReport[], totals: PluginTotals | undefined, locked?: LockedPlugin): PluginDetail {
  const [first] = reports as readonly [PluginReport]
  const { name, version, kind, isolation, optional, permissions, requires } = first
  const failed = reports.find(report => report.error !== undefined)?.error
  const { calls = 0, errors = 0, ms = 0, instances = {} } = totals ?? {}
  const isIsolated = isolation === 'process'
  const all = Object.values(instances)
  const restarts = totals ? restartsOf(totals) : {}
  const restartsOfAll = Object.values(restarts).reduce((sum, count) => sum + count, 0)
  return {
    name,
    version,
    kind,
    state: worst(reports.map(report => instances[report.instance ?? '']?.state ?? report.state)),
    isolation,
    origin: originOf(name, locked),
    optional,
    accounting: { calls, errors, ms: Math.round(ms * 1000) / 1000 },
    refusals: totals ? refusalsOf(totals) : {},
    ...(isIsolated ? { process: shownProcess({ ...processesOf(all), restarts: restartsOfAll }) } : {}),
    ...(failed ? { error: { code: failed.code, message: failed.message } } : {}),
    instances: Object.entries(instances).flatMap(([own, instance]) =>
      own === '' ? [] : [instanceOf(own, { ...instance, restarts: restarts[own] ?? 0 }, isIsolated)]
    ),
    added: joined(reports.map(report => report.added)),
    provides: [...new Set(reports.flatMap(report => [report.provides ?? [], report.alsoProvides ?? []].flat()))],
    requires,
    permissions,
  }
}

const instanceOf = (name: string, totals: InstanceTotals, isIsolated: boolean): PluginInstance => ({
  name,
  state: totals.state,
  refusals: totals.refusals,
  ...(isIsolated ? { process: shownProcess(totals) } : {}),
})

const shownProcess = ({ memory_bytes, cpu_ms, restarts }: InstanceTotals | ReturnType<typeof processesOf>) => ({
  memory_bytes,
  cpu_ms: Math.round(cpu_ms),
  restarts,
})

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
})

function withInstalled(
  detail: PluginDetail,
  locked: LockedPlugin | undefined,
  former: ReadonlyMap<string, string>
): PluginDetail {
  if (locked === undefined) return detail
  const { name, integrity, enabled, trusted } = locked
  return { ...detail, installed: { integrity, enabled, trusted, former_version: former.get(name) ?? null } }
}

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
