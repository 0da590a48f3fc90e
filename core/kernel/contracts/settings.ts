import { type CallContext, defineService, defineSlot, type JsonSchema } from '@svc/core'
import type { Json } from './store.ts'

/** Values by key. */
export type SettingValues = { readonly [key: string]: Json | undefined }

/**
 * The settings that a plugin offers to principals and teams. All members are data. Names are `[a-z][a-z0-9_-]*`, at most 64
 * characters; choose the name of your plugin.
 */
export interface SettingDefinition {
  readonly description: string
  /**
   * A JSON Schema of the type `object` with all keys in `properties`. Other keys are rejected. `default` of a property is its
   * value without a setting. `required` is ignored, because every principal starts without values.
   */
  readonly schema: JsonSchema
}

/** Settings by name. A plugin reads and changes only those that it has added itself. */
export const SettingDefinitions = defineSlot<SettingDefinition>('setting_definitions', { api: 1, methods: {} })

/** Whose values: of one principal, or of a team. */
export type SettingOwner = { readonly principal: string } | { readonly team: string }

/** The values of one owner, without defaults. */
export interface StoredSettings {
  readonly values: SettingValues
  /** 0 without stored values; increases with each change. */
  readonly version: number
  /** Unix milliseconds. */
  readonly changedAt?: number
}

/** The values that apply. */
export interface EffectiveSettings {
  readonly values: SettingValues
  /** Where each value comes from: `default`, `principal`, or `team:<name>`. */
  readonly sources: { readonly [key: string]: string }
  /** Stored keys that the schema no longer accepts. They do not apply. */
  readonly ignored: readonly string[]
}

/**
 * Values of plugins per principal and team. The first argument is the name in the slot `SettingDefinitions`. A plugin uses its own
 * settings; with the permission for the service `settings`, all. Errors: SETTINGS_UNKNOWN (the name), SETTINGS_INVALID
 * (`details.problems` lists path and message), SETTINGS_TOO_LARGE, SETTINGS_CONFLICT (another version), FORBIDDEN (values of
 * others need the scope `admin`), NOT_PERMITTED.
 */
export interface Settings {
  /**
   * The values for the principal of `ctx`: defaults, then the teams in this order, then the principal. A later value replaces the
   * whole value of a key. The caller is responsible that the principal belongs to the teams.
   */
  effective(name: string, teams: readonly string[], ctx: CallContext): Promise<EffectiveSettings>
  /** The values of an owner. A principal reads its own and those of teams. */
  read(name: string, owner: SettingOwner, ctx: CallContext): Promise<StoredSettings>
  /**
   * Changes some keys: a value replaces, null removes. All changed keys are validated, and all or none are stored. `ifVersion`:
   * the expected version. A principal changes its own values.
   */
  change(
    name: string,
    owner: SettingOwner,
    values: SettingValues,
    ifVersion: number | undefined,
    ctx: CallContext
  ): Promise<StoredSettings>
  /** Yields the owner after each change, by all processes, from now on, until the signal aborts. */
  changes(name: string, ctx: CallContext): AsyncIterable<SettingOwner>
}

export const Settings = defineService<Settings>('settings', {
  api: 1,
  methods: { effective: 'call', read: 'call', change: 'call', changes: 'stream' },
  items: { slot: 'setting_definitions', methods: ['effective', 'read', 'change', 'changes'] },
})
