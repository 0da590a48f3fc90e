import type { CallStats } from './call-stats.ts'
import type { SvcError } from './errors.ts'
import type { HookStats } from './hooks.ts'
import type { Found } from '../loading/load.ts'
import { slotsOf } from '../loading/manifest.ts'
import type { PluginProcessStatus } from './plugin.ts'
import type { OwnedScope } from './scope.ts'
import type { PlannedPlugin } from '../config/sections.ts'
import { type Bail, defineService, type Series, type CallContext } from './token.ts'

/** One plugin of a host, as it stands; how its own process stands, where it has one, is some seconds old. */
export interface PluginReport extends Partial<Omit<PluginProcessStatus, 'state'>> {
  readonly name: string
  readonly instance?: string
  readonly version: string
  readonly kind: string
  readonly state: 'running' | 'restarting' | 'quarantined' | 'failed'
  /** Where its code runs: `in-process`, `process`, or the runtime of its manifest. */
  readonly isolation: string
  readonly optional: boolean
  /** Milliseconds of its setup. */
  readonly setupMs: number
  readonly provides?: string
  readonly requires: readonly string[]
  readonly added: Readonly<Record<string, readonly string[]>>
  /** What its manifest declares by name, by slot, and what is not there. */
  readonly absent?: Readonly<Record<string, readonly string[]>>
  readonly permissions: Readonly<Record<string, readonly string[]>>
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string }
}

function absentOf({ found, instance }: PlannedPlugin & { readonly found: Found }, added: OwnedScope['added']) {
  // each entry of a section adds a part of what is declared
  if (!found.declared || instance !== undefined) return {}
  const missing = slotsOf(found.manifest).map(([slot, names]): [string, string[]] => [
    slot,
    names.filter(name => !name.includes('*') && !added.get(slot)?.has(name)),
  ])
  const absent = missing.filter(([, names]) => names.length > 0)
  return absent.length === 0 ? {} : { absent: Object.fromEntries(absent) }
}

export type HostState = 'starting' | 'running' | 'closing' | 'closed'

/** A host as it stands. */
export interface HostReport {
  /** What this server is called among those that share a store. */
  readonly serverId: string
  readonly version: string
  readonly state: HostState
  /** It closes, and another process takes the new work: the server as a whole serves on. */
  readonly successor: boolean
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly plugins: readonly PluginReport[]
  readonly hooks: readonly HookStats[]
  /** What plugins do in slots. */
  readonly calls: readonly CallStats[]
}

export interface HostHooks {
  /** Everything is set up: now serve. A tap that throws fails the start. */
  ready: Bail<object, never>
  /**
   * The host is about to close: stop taking work and let what runs end, within `limitMs` where it is told. `successor`: another process takes the new work
   * meanwhile, so whoever holds streams without an end closes them with a hint to come back. Told a second time where no successor takes over after all.
   */
  closing: Series<{ readonly successor: boolean; readonly limitMs?: number }>
}

/** The host itself, as plugins see it. */
export interface Host {
  report(ctx: CallContext): Promise<HostReport>
}
export const Host = defineService<Host, HostHooks>('host', {
  api: 1,
  methods: { report: 'call' },
  hooks: { ready: 'bail', closing: 'series' },
})

const described = (found: Pick<Found, 'name' | 'version'> & Partial<Found>) => ({
  name: found.name,
  version: found.version,
  kind: found.manifest?.kind ?? '',
  optional: found.optional ?? true,
  isolation: found.isolation ?? found.manifest?.runtime ?? 'in-process',
  permissions: found.permissions ?? {},
})

export const failedReport = (found: Parameters<typeof described>[0], error: SvcError, setupMs = 0): PluginReport => ({
  ...described(found),
  state: 'failed',
  setupMs,
  requires: [],
  added: {},
  error: { code: error.code, message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) },
})

function standingOf({ plugin, instance }: PlannedPlugin): Partial<PluginReport> {
  const standing = plugin.processStatus?.(instance)
  return standing ? { isolation: 'process', ...standing } : {}
}

export function runningReport(
  plannedPlugin: PlannedPlugin & { readonly found: Found },
  owned: OwnedScope,
  setupMs: number
): PluginReport {
  const { plugin, instance } = plannedPlugin
  return {
    ...described(plannedPlugin.found),
    ...(instance === undefined ? {} : { instance }),
    state: 'running',
    setupMs,
    ...standingOf(plannedPlugin),
    ...(plugin.provides ? { provides: plugin.provides.name } : {}),
    requires: [...Object.values(plugin.requires), ...Object.values(plugin.optional)].map(token => token.name),
    added: Object.fromEntries([...owned.added].map(([slot, names]) => [slot, [...names]])),
    ...absentOf(plannedPlugin, owned.added),
  }
}
