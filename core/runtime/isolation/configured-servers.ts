import { isTree } from '@svc/core'
import { hostsOf } from './permission-values.ts'

/** A server in the configuration of a plugin. */
export interface ConfiguredServer {
  /** `db.internal:5432` */
  readonly host: string
  /** The setting with this value, as a permission refers to it: `tools.pgquery.server`, `providers[].base_url`. */
  readonly setting: string
}

/** The configuration of a plugin: its whole section, or that of one instance. */
export interface OwnConfig {
  readonly section?: string | undefined
  readonly instances?: string | undefined
  readonly value: unknown
}

const SERVER = /^(\[[\da-f:.]+\]|[\w-]+(\.[\w-]+)*\.?):\d{1,5}$/i

/** The URLs and the texts of the form `host:port` in a configuration. */
export const configuredServers = (config: OwnConfig): ConfiguredServer[] =>
  textsIn(config).flatMap(({ setting, text }) =>
    SERVER.test(text) || text.includes('://') ? hostsOf(text).map(host => ({ host, setting })) : []
  )

/** The setting whose value is this host, with or without its port. */
export const settingOf = (host: string, config: OwnConfig): string | undefined =>
  settingWhere(config, value => value === host) ?? settingWhere(config, value => withoutPort(value) === withoutPort(host))

const settingWhere = (config: OwnConfig, isMeant: (host: string) => boolean) =>
  textsIn(config).find(({ text }) => hostsOf(text).some(isMeant))?.setting

/** The setting that names the host of an address, but with another port. */
export function otherPortOf(place: string, config: OwnConfig): ConfiguredServer | undefined {
  const servers = configuredServers(config)
  if (servers.some(({ host }) => host === place)) return undefined
  return servers.find(
    ({ host }) => host !== withoutPort(host) && place !== withoutPort(place) && withoutPort(host) === withoutPort(place)
  )
}

const withoutPort = (host: string) => host.replace(/(?<=^\[[^\]]*\]|^[^:]*):\d+$/, '')

interface Setting {
  readonly setting: string
  readonly text: string
}

function textsIn({ section, instances, value }: OwnConfig): Setting[] {
  const prefix = instances === undefined ? section : `${instances}[]`
  return prefix === undefined ? [] : textsBelow(prefix, value)
}

function textsBelow(setting: string, value: unknown): Setting[] {
  if (typeof value === 'string') return value === '' ? [] : [{ setting, text: value }]
  if (Array.isArray(value)) return value.flatMap(item => (typeof item === 'string' ? textsBelow(setting, item) : []))
  if (!isTree(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => textsBelow(`${setting}.${key}`, inner))
}
