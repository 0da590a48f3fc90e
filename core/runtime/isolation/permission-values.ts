import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { get, isTree, type Manifest } from '@svc/core'
import { parseHost } from './declared-hosts.ts'

type Permissions = NonNullable<Manifest['permissions']>
type ValueKind = 'network' | 'env' | 'read' | 'write'

/** The kinds of permissions that can refer to settings, such as `<tools.pgquery.server>`. */
export const VALUE_KINDS: readonly ValueKind[] = ['network', 'env', 'read', 'write']

/** Values of settings by the kind of permission that refers to them: `{ network: ['db.internal:5432'] }`. */
export type PermissionValues = { readonly [kind in ValueKind]?: readonly string[] }

/** Returns the value of a setting: of `tools.pgquery.server`, or the values of `providers[].api_key_env`. */
export type SettingLookup = (setting: string) => unknown

/** The setting to which an entry of a permission refers: `tools.pgquery.server` for `<tools.pgquery.server>`. */
export const settingIn = (entry: string): string | undefined => /^<(.+)>$/.exec(entry)?.[1]

/** The settings of one plugin: a path into another section has no value. */
export const ownSettings =
  (config: { readonly section: string; readonly value: unknown } | undefined): SettingLookup =>
  setting => {
    const [, , ofInstance] = splitInstances(setting)
    if (ofInstance !== undefined) return get(config?.value, ofInstance.split('.'))
    const prefix = `${config?.section}.`
    return setting.startsWith(prefix) ? get(config?.value, setting.slice(prefix.length).split('.')) : undefined
  }

/** All settings of a configuration. `type`: the type of the plugin's instances, which have their own entries. */
export const allSettings =
  (tree: unknown, type?: string): SettingLookup =>
  setting => {
    const [, section, ofInstance] = splitInstances(setting)
    if (section === undefined || ofInstance === undefined) return get(tree, setting.split('.'))
    const entries = get(tree, section.split('.'))
    return Object.entries(isTree(entries) ? entries : {}).flatMap(([name, entry]) =>
      isTree(entry) && entry.enabled !== false && (entry.type ?? name) === type ? [get(entry, ofInstance.split('.'))].flat() : []
    )
  }

/** `providers[].api_key_env` → `providers`, `api_key_env`. */
const splitInstances = (setting: string) => /^([^[\]]*)\[\]\.(.+)$/.exec(setting) ?? []

/** The entries of one kind of permission, with the values of settings in place of references to them. */
export const filledIn = (kind: ValueKind, entries: readonly string[], lookup: SettingLookup): string[] =>
  entries.flatMap(entry => {
    const setting = settingIn(entry)
    return setting === undefined ? READ_AS[kind](entry) : valuesOf(kind, lookup(setting))
  })

/** The values of all settings to which permissions refer. */
export const valuesIn = (permissions: Permissions, lookup: SettingLookup): PermissionValues =>
  perKind(kind =>
    filledIn(
      kind,
      (permissions[kind] ?? []).filter(entry => settingIn(entry) !== undefined),
      lookup
    )
  )

/** The values that are not among the accepted ones. */
export const valuesBeyond = (values: PermissionValues, accepted: PermissionValues): PermissionValues =>
  perKind(kind => (values[kind] ?? []).filter(value => !accepted[kind]?.includes(value)))

/** Both, each value once. */
export const joinedValues = (values: PermissionValues, others: PermissionValues): PermissionValues =>
  perKind(kind => [...(values[kind] ?? []), ...(others[kind] ?? [])])

const perKind = (listOf: (kind: ValueKind) => readonly string[]): PermissionValues =>
  Object.fromEntries(
    VALUE_KINDS.flatMap(kind => {
      const list = [...new Set(listOf(kind))].sort()
      return list.length === 0 ? [] : [[kind, list]]
    })
  )

/** The hosts that a text names. Text that is no host, such as a misplaced password, has none. */
export const hostsOf = (text: string): string[] => valuesOf('network', text)

const valuesOf = (kind: ValueKind, value: unknown): string[] =>
  [value].flat().flatMap(text => {
    if (typeof text !== 'string' || text === '') return []
    const values = READ_AS[kind](text)
    return kind === 'network' ? values.filter(host => isIP(host) > 0 || HOST.test(host)) : values
  })

/** How each kind reads its text. A relative path begins at the working directory of svc. */
const READ_AS: Readonly<Record<ValueKind, (text: string) => string[]>> = {
  network: text => hostsIn(text),
  env: text => [text],
  read: text => [resolve(text)],
  write: text => [resolve(text)],
}

/** Other text, such as a misplaced password, is no host: it is neither allowed nor shown. */
const HOST = /^(\*|(\*\.)?[\w-]+(\.[\w-]+)*\.?|\[[\da-f:.]+\])(:\d{1,5})?$/i

const URL_FORM = /^([a-z][a-z\d+.-]*(?::[a-z][a-z\d+.-]*)*):\/\/([^/?#\\]*)/i

/** The ports that client libraries use for an address without a port. */
const PORTS: Readonly<Record<string, number>> = {
  http: 80,
  https: 443,
  ws: 80,
  wss: 443,
  postgres: 5432,
  postgresql: 5432,
  mysql: 3306,
  mariadb: 3306,
  redis: 6379,
  rediss: 6379,
  valkey: 6379,
  mongodb: 27_017,
  amqp: 5672,
  amqps: 5671,
  mqtt: 1883,
  mqtts: 8883,
  nats: 4222,
  smtp: 587,
  smtps: 465,
  ldap: 389,
  ldaps: 636,
}

/**
 * The hosts of a URL, each with its port, without user and password: `db.internal:5432` for `postgres://me:secret@db.internal/shop`.
 * Other text stays as it is.
 */
function hostsIn(text: string): string[] {
  const [, scheme, authority] = URL_FORM.exec(text) ?? []
  if (scheme === undefined || authority === undefined) return [text]
  const usual = PORTS[scheme.split(':').at(-1)!.toLowerCase()]
  return authority
    .slice(authority.lastIndexOf('@') + 1)
    .split(',')
    .filter(host => host !== '')
    .map(host => (usual === undefined || /:\d+$/.test(host.replace(/^\[[^\]]*\]/, '')) ? host : `${hostWord(host)}:${usual}`))
}

const hostWord = (text: string) => {
  const { host } = parseHost(text)
  return host.includes(':') ? `[${host}]` : host
}
