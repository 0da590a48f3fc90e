import type { Plan } from '../loading/plan.ts'
import { get, isTree, type Layer } from './config.ts'
import { maskArguments } from './redaction.ts'
import { SECRET } from './schema.ts'
import { KERNEL_SCHEMA } from './kernel-config.ts'
import type { ReservedSection } from './sections.ts'
import type { JsonSchema } from './validator.ts'

// Shows the configuration of a plan to people: its keys, the values in effect without secrets, and their sources.

/** Sections that no plugin owns. */
export interface KnownSections {
  readonly reserved: readonly ReservedSection[]
  /** Keys that the program acts on, with their default. */
  readonly served: readonly { readonly keys: readonly string[]; readonly usual: unknown; readonly description: string }[]
}

/** A documented key, set or not. */
export interface DocumentedKey {
  readonly key: string
  readonly description: string
  /** svc knows and checks it, but no loaded plugin acts on it. */
  readonly unused: boolean
}

/** All documented keys: of the kernel, of loaded plugins, of entries of instances, and reserved ones. */
export function documentedKeys({ loaded, plannedPlugins }: Plan, { reserved, served }: KnownSections): DocumentedKey[] {
  const own = loaded.flatMap(({ plugin }) => (plugin.section ? keysOf(plugin.section, plugin.config?.json, false) : []))
  const entries = plannedPlugins.flatMap(({ plugin, instance }) =>
    instance === undefined ? [] : entryKeys(`${plugin.instances}.${instance}`, plugin.config?.json)
  )
  const rest = reserved.flatMap(({ section, json }) => keysOf(section, json, true))
  const servedKeys = served.map(({ keys, description }) => ({ key: keys.join('.'), description, unused: false }))
  const all = [LIST, ...servedKeys, ...keysOf('', KERNEL_SCHEMA.json, false), ...own, ...entries, ...rest]
  return all.filter((key, at) => all.findIndex(other => other.key === key.key) === at)
}

const LIST = {
  key: 'plugins',
  description: 'Package names, paths and { use, optional, enabled, isolation }, merged by name with the curated list.',
  unused: false,
}

const entryKeys = (entry: string, json: JsonSchema | undefined): DocumentedKey[] => [
  {
    key: `${entry}.type`,
    description: 'The plugin of the entry; by default its name selects the plugin.',
    unused: false,
  },
  { key: `${entry}.enabled`, description: 'Set to false to disable the entry.', unused: false },
  ...keysOf(entry, json, false),
]

function keysOf(key: string, json: JsonSchema | undefined, unused: boolean): DocumentedKey[] {
  if (!isTree(json)) return []
  const { properties, description } = json
  if (isTree(properties))
    return Object.entries(properties).flatMap(([name, inner]) =>
      keysOf(key === '' ? name : `${key}.${name}`, inner as JsonSchema, unused)
    )
  return key === '' ? [] : [{ key, description: typeof description === 'string' ? description : kindOf(json), unused }]
}

/** Describes the allowed values of a key without documentation. */
function kindOf({ type, enum: words, items }: { readonly [word: string]: unknown }): string {
  if (Array.isArray(words)) return `One of ${words.join(', ')}.`
  const inner = isTree(items) && typeof items.type === 'string' ? ` of ${items.type}` : ''
  return `A value of type ${[type ?? 'any'].flat().map(String).join(' or ')}${inner}.`
}

/** One value of the configuration in effect. */
export interface ConfigRow {
  /** With dots: `server.port`. */
  readonly key: string
  /** Absent if a documented key is not set. */
  readonly value?: unknown
  /** `default`, `svc.config.yaml:4`, `environment SVC_SERVER__PORT`, `flags`. */
  readonly source: string
  /** Documentation of a requested key. */
  readonly description?: string
  /** True for a documented key that no loaded plugin acts on. */
  readonly unused?: boolean
}

const MASK = '(secret)'

/** A value in effect, with the layer that set it; absent for a default. */
interface ConfigEntry {
  readonly keys: readonly string[]
  readonly value: unknown
  readonly layer?: Layer
  /** No running plugin uses it. */
  readonly unused: boolean
}

/** All values in effect, by key; secrets are masked. */
export function configEntries(plan: Plan, { served }: Pick<KnownSections, 'served'>): ConfigEntry[] {
  const { config } = plan
  const entries = new Map<string, ConfigEntry>()
  const add = (keys: readonly string[], value: unknown, unused: boolean) => {
    const key = keys.join('.')
    if (entries.has(key)) return
    const layer = config.layerOf(keys)
    const isSet = layer !== undefined && layer.name !== 'defaults'
    entries.set(key, { keys, value: maskedValue(keys, value), unused, ...(isSet ? { layer } : {}) })
  }
  for (const [keys, value] of effective(plan)) for (const [inner, leaf] of leaves(value)) add([...keys, ...inner], leaf, false)
  for (const { keys, usual } of served) add(keys, get(config.value, keys) ?? usual, false)
  // the rest has no running owner: documented keys, disabled entries, problems
  for (const [keys, value] of leaves(config.value))
    add(keys, value, !plan.plannedPlugins.some(planned => isWithin(keys, plannedKeys(planned))))
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry)
}

/** The same as rows for a terminal. */
export const configRows = (plan: Plan, known: Pick<KnownSections, 'served'>): ConfigRow[] =>
  configEntries(plan, known).map(({ keys, value, layer, unused }) => ({
    key: keys.join('.'),
    value,
    source: layer === undefined ? 'default' : (plan.config.where(keys) ?? layer.name),
    ...(unused ? { unused } : {}),
  }))

type PlannedPlugin = Plan['plannedPlugins'][number]

const plannedKeys = ({ plugin, instance }: PlannedPlugin): string[] | undefined =>
  instance === undefined ? plugin.section?.split('.') : [...(plugin.instances ?? '').split('.'), instance]

const isWithin = (keys: readonly string[], section: readonly string[] | undefined) =>
  section !== undefined && section.every((key, at) => keys[at] === key)

/** The sections with their defaults. */
function effective({ kernel, plannedPlugins }: Plan): [string[], unknown][] {
  const sections = plannedPlugins.flatMap(planned => {
    const keys = plannedKeys(planned)
    return keys === undefined ? [] : [[keys, planned.config] as [string[], unknown]]
  })
  return [[['host'], kernel.host], [['log'], kernel.log], ...sections]
}

/** The leaves of a tree; an empty tree is a value. */
export function leaves(value: unknown, keys: readonly string[] = []): [string[], unknown][] {
  if (!isTree(value) || (keys.length > 0 && Object.keys(value).length === 0)) return [[[...keys], value]]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...keys, key]))
}

const HIDING = new Set(['headers', 'env'])

/** Names of headers are public: every browser receives them. */
const isCors = ([first, second]: readonly string[]) => first === 'server' && second === 'cors'

/** Masks secrets by their names, and values in certain places: headers, environments, addresses, arguments of commands. */
export function maskedValue(keys: readonly string[], value: unknown): unknown {
  if (isTree(value))
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, maskedValue([...keys, key], inner)]))
  if (Array.isArray(value)) return listOfArguments(keys, value) ?? value.map(inner => maskedValue(keys, inner))
  if (value === undefined || value === null || typeof value === 'boolean') return value
  const isSecret = (!isCors(keys) && keys.some(key => HIDING.has(key))) || SECRET.test((keys.at(-1) ?? '').replaceAll('-', '_'))
  if (isSecret) return MASK
  return typeof value === 'string' && (value.includes('://') || IS_URL.test(keys.at(-1) ?? '')) ? maskedUrl(value) : value
}

/** The arguments of a command, masked together. */
const listOfArguments = (keys: readonly string[], list: readonly unknown[]) =>
  keys.at(-1) === 'args' && list.every(item => typeof item === 'string')
    ? maskArguments(list, MASK).map(maskArgument => maskedUrl(maskArgument))
    : undefined

/** Keys whose value is an address, possibly without a scheme. */
const IS_URL = /ur[il]s?$/i

/** An address without user, password, and values of its query and fragment, which can contain keys. */
const maskedUrl = (text: string) =>
  text
    .replace(/(:\/\/)[^/\s]+@/g, `$1${MASK}@`)
    .replace(/[?#]\S*/g, tail => tail.replace(/([?#&])([^=&#]*=)?[^&#]+/g, `$1$2${MASK}`))

/** The loaded plugins, with the layer that listed each last; absent for the default list. */
export const pluginEntries = ({ config }: Plan): { readonly name: string; readonly layer?: Layer }[] =>
  config.plugins.map(entry => {
    const name = nameOf(entry)
    const layer = config.layers.findLast(item => listOf(get(item.value, ['plugins'])).includes(name))
    return { name, ...(layer === undefined || layer.name === 'defaults' ? {} : { layer }) }
  })

/** The same as rows for a terminal. */
export const pluginRows = (plan: Plan): { readonly name: string; readonly source: string }[] =>
  pluginEntries(plan).map(({ name, layer }) => ({ name, source: layer?.name ?? 'default' }))

const nameOf = ({ name, use }: { readonly name?: unknown; readonly use: unknown }) =>
  typeof name === 'string' ? name : typeof use === 'string' || use instanceof URL ? String(use) : 'inline'

const listOf = (plugins: unknown): string[] =>
  Array.isArray(plugins)
    ? plugins.map((ref: unknown) => (isTree(ref) && 'use' in ref ? nameOf({ name: ref.name, use: ref.use }) : String(ref)))
    : []
