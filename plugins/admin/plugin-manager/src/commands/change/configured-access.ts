import { unsetIn } from '@svc/cli/command'
import type { ConfigTree, Manifest } from '@svc/core'
import {
  allSettings,
  joinedValues,
  type PermissionValues,
  type SettingLookup,
  settingIn,
  VALUE_KINDS,
  valuesBeyond,
  valuesIn,
} from '@svc/runtime/isolation'
import type { LockedPlugin, Permissions } from '../../set.ts'

/** The part of a plugin that refers to settings and variables. */
export interface SettingsRequest {
  readonly permissions: Permissions
  readonly manifest: Manifest
}

/** What one configuration and its environment have for a plugin. It is plain data: a server answers with it. */
export interface FoundSettings {
  /** Values by kind and setting: `{ 'network tools.pgquery.server': ['db.internal:5432'] }`. */
  readonly values: Readonly<Record<string, readonly string[]>>
  /** Settings that have a value of any form. */
  readonly set: readonly string[]
  /** Settings that the plugin needs and the configuration does not have. */
  readonly missing: readonly string[]
  /** Declared variables that are not set. */
  readonly unset: readonly string[]
}

/** Looks up in a configuration what a plugin refers to. */
export function findSettingsOf({ permissions, manifest }: SettingsRequest, config: ConfigTree): FoundSettings {
  const lookup = allSettings(config, manifest.instances?.type)
  const entries = VALUE_KINDS.flatMap(kind =>
    referencesIn(permissions, kind).map(({ entry, setting }) => ({
      setting,
      key: keyOf(kind, setting),
      values: valuesIn({ [kind]: [entry] }, lookup)[kind] ?? [],
    }))
  )
  return {
    values: Object.fromEntries(entries.map(({ key, values }) => [key, values])),
    set: [...new Set(entries.map(({ setting }) => setting))].filter(setting => hasValue(lookup, setting)),
    missing: (manifest.settings ?? []).filter(setting => lookup(setting) === undefined),
    unset: unsetIn(permissions),
  }
}

type ValueKind = keyof PermissionValues

const keyOf = (kind: ValueKind, setting: string) => `${kind} ${setting}`

const referencesIn = (permissions: Permissions, kind: ValueKind) =>
  (permissions[kind] ?? []).flatMap(entry => {
    const setting = settingIn(entry)
    return setting === undefined ? [] : [{ entry, setting }]
  })

const hasValue = (lookup: SettingLookup, setting: string) =>
  [lookup(setting)].flat().some(value => value !== undefined && value !== '')

/** The values that the configuration in force gives to the permissions of a plugin. */
export interface ConfiguredAccess {
  readonly values: PermissionValues
  /** Values that were accepted before. */
  readonly accepted: PermissionValues
  /** Settings that the plugin needs and the configuration does not have. */
  readonly missing: readonly string[]
  /** Declared variables that are not set where the plugin will run. */
  readonly unset: readonly string[]
  /** The values of one setting for one kind of permission. */
  valuesOf(kind: ValueKind, setting: string): readonly string[]
  /** Whether a setting has a value, readable for svc or not. */
  isSet(setting: string): boolean
}

/** Joins what several configurations have: a person accepts the values of all of them. */
export function joinedAccess(found: readonly FoundSettings[], former?: LockedPlugin): ConfiguredAccess {
  const unique = (listOf: (one: FoundSettings) => readonly string[]) => [...new Set(found.flatMap(listOf))]
  const all = found.flatMap(({ values }) => Object.entries(values))
  return {
    values: all.map(([key, values]) => ({ [key.slice(0, key.indexOf(' '))]: values })).reduce(joinedValues, {}),
    accepted: former?.values ?? {},
    missing: unique(one => one.missing),
    unset: unique(one => one.unset),
    valuesOf: (kind, setting) => unique(({ values }) => values[keyOf(kind, setting)] ?? []),
    isSet: setting => found.some(({ set }) => set.includes(setting)),
  }
}

/** Reads the values for a plugin from a configuration. `former`: its entry in the lock. */
export const accessOf = (request: SettingsRequest, config: ConfigTree, former?: LockedPlugin): ConfiguredAccess =>
  joinedAccess([findSettingsOf(request, config)], former)

/** The values that were not accepted before. */
export const newValues = ({ values, accepted }: ConfiguredAccess): PermissionValues => valuesBeyond(values, accepted)
