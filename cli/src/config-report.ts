import { type Config, get, isTree, maskArguments, type Plan, SECRET } from '@svc/core'
import { SERVED } from './reserved.ts'

/** One value of the configuration in force. */
export interface ConfigRow {
  /** With dots: `server.port`. */
  readonly key: string
  /** Absent where a documented key is not set. */
  readonly value?: unknown
  /** `default`, `svc.config.yaml:4`, `environment SVC_SERVER__PORT`, `flags`. */
  readonly source: string
  /** What the key does; for those that are asked for. */
  readonly description?: string
  /** True for a documented key that no loaded plugin acts on. */
  readonly unused?: boolean
}

const MASK = '(secret)'

/** Every value in force with its source, by key; secrets are masked. */
export function configRows(plan: Plan): ConfigRow[] {
  const { config } = plan
  const rows = new Map<string, ConfigRow>()
  const add = (keys: readonly string[], value: unknown, unused: boolean) => {
    const key = keys.join('.')
    if (!rows.has(key))
      rows.set(key, { key, value: masked(keys, value), source: sourceOf(config, keys), ...(unused ? { unused } : {}) })
  }
  for (const [keys, value] of effective(plan)) for (const [inner, leaf] of leaves(value)) add([...keys, ...inner], leaf, false)
  for (const { keys, usual } of SERVED) add(keys, get(config.value, keys) ?? usual, false)
  // what is left has no owner that runs: documented keys, entries that are switched off, faults
  for (const [keys, value] of leaves(config.value))
    add(keys, value, !plan.plannedPlugins.some(planned => isWithin(keys, plannedKeys(planned))))
  return [...rows.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

type PlannedPlugin = Plan['plannedPlugins'][number]

const plannedKeys = ({ plugin, instance }: PlannedPlugin): string[] | undefined =>
  instance === undefined ? plugin.section?.split('.') : [...(plugin.instances ?? '').split('.'), instance]

const isWithin = (keys: readonly string[], section: readonly string[] | undefined) =>
  section !== undefined && section.every((key, at) => keys[at] === key)

/** The sections with their defaults filled in. */
function effective({ kernel, plannedPlugins }: Plan): [string[], unknown][] {
  const sections = plannedPlugins.flatMap(planned => {
    const keys = plannedKeys(planned)
    return keys === undefined ? [] : [[keys, planned.config] as [string[], unknown]]
  })
  return [[['host'], kernel.host], [['log'], kernel.log], ...sections]
}

/** The values of a tree that are no trees themselves; an empty tree is a value. */
function leaves(value: unknown, keys: readonly string[] = []): [string[], unknown][] {
  if (!isTree(value) || (keys.length > 0 && Object.keys(value).length === 0)) return [[[...keys], value]]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...keys, key]))
}

function sourceOf(config: Config, keys: readonly string[]): string {
  const layer = config.layerOf(keys)
  return layer === undefined || layer.name === 'defaults' ? 'default' : (config.where(keys) ?? layer.name)
}

const HIDING = new Set(['headers', 'env'])

/** Names of headers, which every browser is told. */
const isCors = ([first, second]: readonly string[]) => first === 'server' && second === 'cors'

/** A value is a secret by its name, or by its place: headers, environments, addresses, arguments of commands. */
function masked(keys: readonly string[], value: unknown): unknown {
  if (isTree(value)) return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, masked([...keys, key], inner)]))
  if (Array.isArray(value)) return listOfArguments(keys, value) ?? value.map(inner => masked(keys, inner))
  if (value === undefined || value === null || typeof value === 'boolean') return value
  const isSecret = (!isCors(keys) && keys.some(key => HIDING.has(key))) || SECRET.test((keys.at(-1) ?? '').replaceAll('-', '_'))
  if (isSecret) return MASK
  return typeof value === 'string' && (value.includes('://') || IS_URL.test(keys.at(-1) ?? '')) ? maskedUrl(value) : value
}

/** The arguments of a command, which say only together what is a secret. */
const listOfArguments = (keys: readonly string[], list: readonly unknown[]) =>
  keys.at(-1) === 'args' && list.every(one => typeof one === 'string')
    ? maskArguments(list, MASK).map(one => maskedUrl(one))
    : undefined

/** Keys whose value is an address, though it may lack its scheme. */
const IS_URL = /ur[il]s?$/i

/** An address without its user and password, and without the values of its query and fragment: there people put keys too. */
const maskedUrl = (text: string) =>
  text
    .replace(/(:\/\/)[^/\s]+@/g, `$1${MASK}@`)
    .replace(/[?#]\S*/g, tail => tail.replace(/([?#&])([^=&#]*=)?[^&#]+/g, `$1$2${MASK}`))

/** The plugins that are loaded, and which layer listed each last. */
export function pluginRows({ config }: Plan): { readonly name: string; readonly source: string }[] {
  return config.plugins.map(entry => {
    const name = nameOf(entry)
    const layer = config.layers.findLast(one => listOf(get(one.value, ['plugins'])).includes(name))
    return { name, source: layer === undefined || layer.name === 'defaults' ? 'default' : layer.name }
  })
}

const nameOf = ({ name, use }: { readonly name?: unknown; readonly use: unknown }) =>
  typeof name === 'string' ? name : typeof use === 'string' || use instanceof URL ? String(use) : 'inline'

const listOf = (plugins: unknown): string[] =>
  Array.isArray(plugins)
    ? plugins.map((ref: unknown) => (isTree(ref) && 'use' in ref ? nameOf({ name: ref.name, use: ref.use }) : String(ref)))
    : []
