import type { SvcError } from './errors.ts'
import type { HookFigures } from './hooks.ts'
import type { Found } from './load.ts'
import type { OwnedScope } from './scope.ts'
import type { Seat } from '../config/sections.ts'
import { type Bail, defineService, type Series, type Use } from './token.ts'

/** One plugin of a host, as it stands. */
export interface PluginReport {
  readonly name: string
  readonly instance?: string
  readonly version: string
  readonly kind: string
  readonly state: 'running' | 'failed'
  readonly optional: boolean
  /** Milliseconds of its setup. */
  readonly setupMs: number
  readonly provides?: string
  readonly requires: readonly string[]
  readonly added: Readonly<Record<string, readonly string[]>>
  readonly permissions: Readonly<Record<string, readonly string[]>>
  readonly error?: { readonly code: string; readonly message: string; readonly mend?: string }
}

export type HostState = 'starting' | 'running' | 'closing' | 'closed'

/** A host as it stands. */
export interface HostReport {
  /** What this server is called among those that share a store. */
  readonly serverId: string
  readonly version: string
  readonly state: HostState
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly plugins: readonly PluginReport[]
  readonly hooks: readonly HookFigures[]
}

export interface HostHooks {
  /** Everything is set up: now serve. A tap that throws fails the start. */
  ready: Bail<object, never>
  /** The host is about to close: stop taking work and let what runs end. `successor`: another process takes the new work meanwhile. */
  closing: Series<{ readonly successor: boolean }>
}

/** The host itself, as plugins see it. */
export interface Host {
  report(use: Use): Promise<HostReport>
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
  permissions: found.manifest?.permissions ?? {},
})

export const failedReport = (found: Parameters<typeof described>[0], error: SvcError, setupMs = 0): PluginReport => ({
  ...described(found),
  state: 'failed',
  setupMs,
  requires: [],
  added: {},
  error: { code: error.code, message: error.message, ...(error.mend === undefined ? {} : { mend: error.mend }) },
})

export function runningReport(seat: Seat & { readonly found: Found }, owned: OwnedScope, setupMs: number): PluginReport {
  const { plugin, instance } = seat
  return {
    ...described(seat.found),
    ...(instance === undefined ? {} : { instance }),
    state: 'running',
    setupMs,
    ...(plugin.provides ? { provides: plugin.provides.name } : {}),
    requires: [...Object.values(plugin.requires), ...Object.values(plugin.optional)].map(token => token.name),
    added: Object.fromEntries([...owned.added].map(([slot, names]) => [slot, [...names]])),
  }
}
