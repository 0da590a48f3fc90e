import { styleText } from 'node:util'
import { errorFacts, printError, table } from '@svc/cli/command'
import { findSettings, here, hostOptions, RESERVED, SERVED, type ServeOptions } from '@svc/cli/program'
import {
  type Config,
  get,
  isTree,
  type JsonSchema,
  KERNEL_SCHEMA,
  maskArguments,
  nearest,
  type Plan,
  planHost,
  SECRET,
  StartFailed,
  type SvcError,
  svcError,
} from '@svc/core'

const REFUSED = /^CONFIG_(NOT_TRUSTED|FOREIGN|AMBIGUOUS)$/

/** `svc config show`: prints values and sources; resolves with the exit code. */
export async function showConfig(options: ServeOptions, asked: { key: string | undefined; json: boolean }): Promise<number> {
  const place = here()
  const settings = await findSettings(options, place)
  // without the refused file, the other values would not be in effect
  const refused = settings.problems.filter(({ code }) => REFUSED.test(code))
  if (refused.length > 0 && !asked.json) {
    printError(new StartFailed(refused))
    return 1
  }
  const plan = await planHost(hostOptions(settings, place.home))
  const rows = rowsOf(plan, asked.key)
  const plugins = isBelow('plugins', asked.key) ? pluginRows(plan) : []
  const text = asked.json ? jsonText(rows, plugins, plan.problems) : plainText(rows, plugins)
  process.stdout.write(`${text}\n`)
  if (plan.problems.length > 0) printError(new StartFailed(plan.problems))
  return plan.problems.length > 0 ? 1 : 0
}

/** The values in effect. For a requested key also its documentation, even if it is not set. Throws CONFIG_UNKNOWN_KEY. */
function rowsOf(plan: Plan, asked: string | undefined): ConfigRow[] {
  const rows = configRows(plan)
  if (asked === undefined) return rows
  const documented = documentedKeys(plan)
  const set = rows.filter(row => isBelow(row.key, asked))
  const known = documented.filter(documentedKey => isBelow(documentedKey.key, asked))
  if (set.length + known.length === 0)
    throw keyUnknown(
      asked,
      [...rows, ...documented].flatMap(({ key }) => prefixesOf(key))
    )
  // a section shows its values; only a section without values shows its possible keys
  const unset = set.length > 0 ? [] : known.filter(documentedKey => documentedKey.key !== 'plugins').map(unsetRow)
  const words = new Map(known.map(documentedKey => [documentedKey.key, documentedKey.description]))
  return [...set.map(row => describe(row, words.get(row.key))), ...unset]
}

const unsetRow = ({ key, description, unused }: Documented): ConfigRow => ({
  key,
  description,
  source: 'not set',
  ...(unused ? { unused } : {}),
})
const describe = (row: ConfigRow, description: string | undefined): ConfigRow => ({
  ...row,
  ...(description === undefined ? {} : { description }),
})

/** `a.b.c`, `a.b`, `a`: the keys that can be requested. */
const prefixesOf = (key: string) => key.split('.').map((_, at, words) => words.slice(0, at + 1).join('.'))

const isBelow = (key: string, asked: string | undefined) => asked === undefined || key === asked || key.startsWith(`${asked}.`)

type PluginRows = ReturnType<typeof pluginRows>

const jsonText = (values: readonly ConfigRow[], plugins: PluginRows, problems: readonly unknown[]) =>
  JSON.stringify({ values, plugins, problems: problems.flatMap(errorFacts) }, null, 2)

function plainText(rows: readonly ConfigRow[], plugins: PluginRows): string {
  const dim = (text: string) => styleText('gray', text, { stream: process.stdout })
  const lines = rows.map(row => [
    row.key,
    JSON.stringify(row.value) ?? '',
    `${row.source}${row.unused ? ' (no plugin acts on it)' : ''}`,
    row.description ?? '',
  ])
  const list = plugins.map(plugin => [`plugins ${plugin.name}`, '', plugin.source])
  return table([...lines, ...list].map(([key = '', value = '', source = '', words = '']) => [key, value, dim(source), words]))
}

/** A documented key, set or not. */
interface Documented {
  readonly key: string
  readonly description: string
  /** svc knows and checks it, but no loaded plugin acts on it. */
  readonly unused: boolean
}

/** All documented keys: of the kernel, of loaded plugins, of entries of instances, and reserved ones. */
function documentedKeys({ loaded, plannedPlugins }: Plan): Documented[] {
  const own = loaded.flatMap(({ plugin }) => (plugin.section ? keysOf(plugin.section, plugin.config?.json, false) : []))
  const entries = plannedPlugins.flatMap(({ plugin, instance }) =>
    instance === undefined ? [] : entryKeys(`${plugin.instances}.${instance}`, plugin.config?.json)
  )
  const rest = RESERVED.flatMap(({ section, json }) => keysOf(section, json, true))
  const served = SERVED.map(({ keys, description }) => ({ key: keys.join('.'), description, unused: false }))
  const all = [LIST, ...served, ...keysOf('', KERNEL_SCHEMA.json, false), ...own, ...entries, ...rest]
  return all.filter((key, at) => all.findIndex(other => other.key === key.key) === at)
}

const LIST = {
  key: 'plugins',
  description: 'Package names, paths and { use, optional, enabled, isolation }, merged by name with the curated list.',
  unused: false,
}

const entryKeys = (entry: string, json: JsonSchema | undefined): Documented[] => [
  {
    key: `${entry}.type`,
    description: 'The plugin of the entry; by default its name selects the plugin.',
    unused: false,
  },
  { key: `${entry}.enabled`, description: 'Set to false to disable the entry.', unused: false },
  ...keysOf(entry, json, false),
]

function keysOf(key: string, json: JsonSchema | undefined, unused: boolean): Documented[] {
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

function keyUnknown(key: string, known: readonly string[]): SvcError {
  const near = nearest(key, known)
  const hint = `${near === undefined ? '' : `did you mean "${near}"? `}Run \`svc config show\` to list the keys that are set. See docs/reference/configuration.md for all keys`
  return svcError('CONFIG_UNKNOWN_KEY', `${key} is not a key of this configuration`, { hint })
}

/** One value of the configuration in effect. */
interface ConfigRow {
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

/** All values in effect with their sources, by key; secrets are masked. */
function configRows(plan: Plan): ConfigRow[] {
  const { config } = plan
  const rows = new Map<string, ConfigRow>()
  const add = (keys: readonly string[], value: unknown, unused: boolean) => {
    const key = keys.join('.')
    if (!rows.has(key))
      rows.set(key, { key, value: masked(keys, value), source: sourceOf(config, keys), ...(unused ? { unused } : {}) })
  }
  for (const [keys, value] of effective(plan)) for (const [inner, leaf] of leaves(value)) add([...keys, ...inner], leaf, false)
  for (const { keys, usual } of SERVED) add(keys, get(config.value, keys) ?? usual, false)
  // the rest has no running owner: documented keys, disabled entries, problems
  for (const [keys, value] of leaves(config.value))
    add(keys, value, !plan.plannedPlugins.some(planned => isWithin(keys, plannedKeys(planned))))
  return [...rows.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

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
function leaves(value: unknown, keys: readonly string[] = []): [string[], unknown][] {
  if (!isTree(value) || (keys.length > 0 && Object.keys(value).length === 0)) return [[[...keys], value]]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...keys, key]))
}

function sourceOf(config: Config, keys: readonly string[]): string {
  const layer = config.layerOf(keys)
  return layer === undefined || layer.name === 'defaults' ? 'default' : (config.where(keys) ?? layer.name)
}

const HIDING = new Set(['headers', 'env'])

/** Names of headers are public: every browser receives them. */
const isCors = ([first, second]: readonly string[]) => first === 'server' && second === 'cors'

/** Masks secrets by their names, and values in certain places: headers, environments, addresses, arguments of commands. */
function masked(keys: readonly string[], value: unknown): unknown {
  if (isTree(value)) return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, masked([...keys, key], inner)]))
  if (Array.isArray(value)) return listOfArguments(keys, value) ?? value.map(inner => masked(keys, inner))
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

/** The loaded plugins, with the layer that listed each last. */
function pluginRows({ config }: Plan): { readonly name: string; readonly source: string }[] {
  return config.plugins.map(entry => {
    const name = nameOf(entry)
    const layer = config.layers.findLast(item => listOf(get(item.value, ['plugins'])).includes(name))
    return { name, source: layer === undefined || layer.name === 'defaults' ? 'default' : layer.name }
  })
}

const nameOf = ({ name, use }: { readonly name?: unknown; readonly use: unknown }) =>
  typeof name === 'string' ? name : typeof use === 'string' || use instanceof URL ? String(use) : 'inline'

const listOf = (plugins: unknown): string[] =>
  Array.isArray(plugins)
    ? plugins.map((ref: unknown) => (isTree(ref) && 'use' in ref ? nameOf({ name: ref.name, use: ref.use }) : String(ref)))
    : []
