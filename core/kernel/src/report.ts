import type { CallStats } from './slot.ts'
import type { SvcError } from './errors.ts'
import type { HookStats } from './hooks.ts'
import type { LocatedPlugin } from '../loading/load.ts'
import { slotsOf } from '../loading/manifest.ts'
import type { PluginProcessStatus } from './plugin.ts'
import type { OwnedScope } from './scope.ts'
import type { PlannedPlugin } from '../config/sections.ts'
import type { Span, SpanContent } from './spans.ts'
import { type Bail, defineService, type Series, type CallContext } from './token.ts'

/** Status of one plugin of a host. The process fields of an isolated plugin are some seconds old. */
export interface PluginReport extends Partial<Omit<PluginProcessStatus, 'state'>> {
  readonly name: string
  readonly instance?: string
  readonly version: string
  readonly kind: string
  readonly state: 'running' | 'restarting' | 'quarantined' | 'failed'
  /** Where its code runs: `in-process`, `process`, or the runtime of its manifest. */
  readonly isolation: string
  readonly optional: boolean
  /** Duration of its setup in milliseconds. */
  readonly setupMs: number
  readonly provides?: string
  /** Further services that it implements. */
  readonly alsoProvides?: readonly string[]
  readonly requires: readonly string[]
  readonly added: Readonly<Record<string, readonly string[]>>
  /** Names that its manifest declares, by slot, and that the plugin has not added. */
  readonly absent?: Readonly<Record<string, readonly string[]>>
  readonly permissions: Readonly<Record<string, readonly string[]>>
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string }
}

function absentOf({ found, instance }: PlannedPlugin & { readonly found: LocatedPlugin }, added: OwnedScope['added']) {
  // Each instance adds a part of the declared names.
  if (!found.declared || instance !== undefined) return {}
  const missing = slotsOf(found.manifest).map(([slot, names]): [string, string[]] => [
    slot,
    names.filter(name => !name.includes('*') && !added.get(slot)?.has(name)),
  ])
  const absent = missing.filter(([, names]) => names.length > 0)
  return absent.length === 0 ? {} : { absent: Object.fromEntries(absent) }
}

/** `leaving`: it works as before, but will close soon, so that no new work should be sent to it. */
export type HostState = 'starting' | 'running' | 'leaving' | 'closing' | 'closed'

/** Status of a host. */
export interface HostReport {
  /** The name of this server among those that share a store. A start never uses it again. */
  readonly serverId: string
  /** The name of the home from which this server runs. It stays the same over restarts. */
  readonly nodeId: string
  /** The name of the servers that act as one: `cluster.name`, or without it that of this server alone. */
  readonly clusterId: string
  /**
   * The name of this process: unique among all processes that ever used the store, and the beginning of its lease holders
   * (`<worker>/…`). It begins with the name of its server and a dot.
   */
  readonly worker: string
  /** What this server does, of `cluster.roles`. Absent: everything. */
  readonly roles?: readonly string[]
  readonly version: string
  readonly state: HostState
  /** The host is closing and another process takes the new work, so the server as a whole stays available. */
  readonly successor: boolean
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly plugins: readonly PluginReport[]
  readonly hooks: readonly HookStats[]
  /** Statistics of calls to slot items. */
  readonly calls: readonly CallStats[]
}

/** Whether a server has a role, such as `runs`. */
export const hasRole = ({ roles }: Pick<HostReport, 'roles'>, role: string): boolean => roles?.includes(role) ?? true

export interface HostHooks {
  /** All plugins are set up: start serving. A tap that throws fails the start. */
  ready: Bail<object, never>
  /**
   * The host is about to close: stop taking work, and let running work end within `limitMs` where it is set. `successor`:
   * another process takes the new work, so a tap that holds endless streams closes them and asks clients to reconnect. Called a
   * second time when no successor takes over after all. At stage 0 the HTTP server waits for its requests, so end streams at a
   * negative stage.
   */
  closing: Series<{ readonly successor: boolean; readonly limitMs?: number }>
  /**
   * Spans that have ended, and roots that have started, every 20 ms. Without a tap, svc makes no spans. Isolated
   * plugins need the permission `host.spans`.
   */
  spans: Series<readonly Span[]>
  /** The content of spans, before the spans themselves. Without a tap, svc gathers no content. */
  spanContents: Series<readonly SpanContent[]>
}

/** The host itself, for plugins. */
export interface Host {
  report(ctx: CallContext): Promise<HostReport>
}
export const Host = defineService<Host, HostHooks>('host', {
  api: 1,
  methods: { report: 'call' },
  hooks: { ready: 'bail', closing: 'series', spans: 'series', spanContents: 'series' },
})

const described = (found: Pick<LocatedPlugin, 'name' | 'version'> & Partial<LocatedPlugin>) => ({
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
  const status = plugin.processStatus?.(instance)
  return status ? { isolation: 'process', ...status } : {}
}

export function runningReport(
  plannedPlugin: PlannedPlugin & { readonly found: LocatedPlugin },
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
    ...(plugin.alsoProvides ? { alsoProvides: plugin.alsoProvides.map(token => token.name) } : {}),
    requires: [...Object.values(plugin.requires), ...Object.values(plugin.optional)].map(token => token.name),
    added: Object.fromEntries([...owned.added].map(([slot, names]) => [slot, [...names]])),
    ...absentOf(plannedPlugin, owned.added),
  }
}
