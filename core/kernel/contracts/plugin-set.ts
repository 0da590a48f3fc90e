import { type CallContext, defineService } from '@svc/core'
import type { Job } from './jobs.ts'
import type { Json } from './store.ts'

// The plugins of a server, and changes of them. Records are in snake_case, because plans are hashed, stored and sent as they are.

/**
 * State of a plugin over all workers: the worst of theirs. `disabled`: installed and switched off. `idle`: installed, but the
 * configuration does not use it.
 */
export type PluginState = 'running' | 'restarting' | 'quarantined' | 'failed' | 'disabled' | 'idle'

/** Calls of the hook taps and slot items of a plugin, summed over all workers, those that have ended included. */
export interface PluginAccounting {
  readonly calls: number
  readonly errors: number
  /** Total time of these calls, without streams. Overlapping calls count each. */
  readonly ms: number
}

/** The processes of an isolated plugin, of all workers. */
export interface PluginProcesses {
  readonly memory_bytes: number
  readonly cpu_ms: number
  readonly restarts: number
}

/** A plugin of the server. */
export interface PluginSummary {
  readonly name: string
  readonly version: string
  readonly kind: string
  readonly state: PluginState
  /** Where its code runs: `in-process`, `process`, or the runtime of its manifest. */
  readonly isolation: string
  /** Where it comes from. `spec` is the word of the user, for a package of the registry. */
  readonly origin: { readonly kind: 'svc' | 'configuration' | 'registry' | 'folder' | 'tarball' | 'link'; readonly spec?: string }
  /** Whether the server also runs without it. */
  readonly optional: boolean
  readonly accounting: PluginAccounting
  /** The number of accesses that the isolated plugin was refused, by kind: `network`, `env`. */
  readonly refusals: { readonly [kind: string]: number }
  readonly process?: PluginProcesses
  /** Why it failed. */
  readonly error?: { readonly code: string; readonly message: string }
}

/** An instance of a plugin, by its name in the configuration. */
export interface PluginInstance extends Pick<PluginSummary, 'name' | 'state' | 'refusals' | 'process'> {}

/** A plugin with its contributions and permissions. */
export interface PluginDetail extends PluginSummary {
  /** The configuration entries of a plugin with instances. */
  readonly instances: readonly PluginInstance[]
  /** What it has added, by slot. */
  readonly added: { readonly [slot: string]: readonly string[] }
  readonly provides: readonly string[]
  readonly requires: readonly string[]
  /** Its permissions; for an installed plugin, those that a person has accepted. */
  readonly permissions: { readonly [kind: string]: readonly string[] }
  /** The entry of an installed plugin in the lock. */
  readonly installed?: {
    readonly integrity: string
    readonly enabled: boolean
    readonly trusted: boolean
    /** The version to which `rollback` goes back on this node; null without one. */
    readonly former_version: string | null
  }
}

/** `rollback`: back to the version that the installed one has replaced. */
export type PluginAction = 'install' | 'update' | 'rollback' | 'uninstall' | 'enable' | 'disable'

/** A requested change. */
export interface PluginChange {
  readonly action: PluginAction
  /** The name of a package in the registry. Paths, addresses and links are refused. With `archive`: its name, or empty. */
  readonly name: string
  /** For `install`: a version or range. Default: the newest. */
  readonly version?: string
  /** For `install`: a packed package (`npm pack`) in Base64, instead of one of the registry. */
  readonly archive?: string
}

/** A plugin after the change. */
export interface PlannedPlugin {
  readonly name: string
  readonly version: string
  readonly from_version: string | null
  readonly kind: string
  readonly description: string
  /** `sha512-…` of its tarball. */
  readonly integrity: string
  readonly isolation: string
  readonly contributes: { readonly [slot: string]: Json | undefined }
  readonly permissions: { readonly [kind: string]: readonly string[] }
  /** The difference to the accepted permissions; for a new plugin, all of them. */
  readonly permission_change: { readonly added: readonly string[]; readonly removed: readonly string[] }
  /** Values of settings to which permissions refer, and that are not accepted yet. */
  readonly new_permission_values: { readonly [kind: string]: readonly string[] | undefined }
  /**
   * What it can do, in sentences, wide ones first. `is_wide`: nearly everything of its kind. `is_new`: not accepted before.
   */
  readonly access: readonly { readonly text: string; readonly is_wide: boolean; readonly is_new: boolean }[]
  /** Its routes and formats of errors, in sentences: `GET /orders: needs the scope read`. Those without a credential first. */
  readonly routes: readonly string[]
  /** Its pages in the console, in sentences. */
  readonly pages: readonly string[]
  /** Credentials that it reads, in sentences. */
  readonly checks: readonly string[]
  /** Settings that it needs and the configuration does not have. */
  readonly missing_settings: readonly string[]
  /** Its install scripts, which do not run. */
  readonly install_scripts: readonly string[]
  /** Its dependencies, also indirect ones. */
  readonly packages: readonly { readonly name: string; readonly version: string; readonly integrity: string }[]
}

/** A plan: what exactly a change would do. No code of a plugin has run. */
export interface PluginPlan {
  /** The hash of everything below except the times, and of the installed plugins. */
  readonly hash: string
  readonly action: PluginAction
  readonly name: string
  /** The installed or updated plugin. */
  readonly plugins: readonly PlannedPlugin[]
  /** Plugins that are removed, enabled or disabled. */
  readonly changes: readonly {
    readonly name: string
    readonly version: string
    readonly to: 'removed' | 'enabled' | 'disabled'
  }[]
  /** Nothing would change. */
  readonly is_empty: boolean
  /** In ISO 8601, as `expires_at`. */
  readonly created_at: string
  readonly expires_at: string
}

/**
 * The plugins of this server. Changes are made in two steps: `plan` downloads and inspects, and `apply` does exactly what the plan
 * says, in a job. Both throw UNAVAILABLE where changes are not possible, and say why: without a supervisor, jobs or a store, or
 * for a server of a cluster.
 */
export interface PluginSet {
  /** The plugins by name, with the state and accounting of all workers. */
  list(ctx: CallContext): Promise<readonly PluginSummary[]>
  /** Throws INVALID_VALUE with the reason `not found`. */
  get(name: string, ctx: CallContext): Promise<PluginDetail>
  /** Throws INVALID_VALUE for a package that cannot be used, with the internal code in `details.code`. */
  plan(change: PluginChange, ctx: CallContext): Promise<PluginPlan>
  /**
   * Plans again, and adds the job that applies the plan. A second call returns the same job. Throws CONFLICT with `details.changed`
   * when the package or the installed plugins have changed, and INVALID_VALUE with the reason `not found` for an expired plan.
   */
  apply(hash: string, ctx: CallContext): Promise<Job>
}
export const PluginSet = defineService<PluginSet>('plugin_set', {
  api: 1,
  methods: { list: 'call', get: 'call', plan: 'call', apply: 'call' },
})
