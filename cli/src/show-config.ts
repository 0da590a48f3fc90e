import { styleText } from 'node:util'
import { type Plan, planHost, StartFailed, isTree, type JsonSchema, KERNEL_SCHEMA } from '@svc/core'
import { type ConfigRow, configRows, pluginRows } from './config-report.ts'
import { keyUnknown } from './errors.ts'
import { errorFacts, printError } from './command/report-error.ts'
import type { ServeOptions } from './serve-flags.ts'
import { hostOptions } from './host-options.ts'
import { findSettings, here } from './settings.ts'
import { table } from './command/text.ts'
import { RESERVED, SERVED } from './reserved.ts'

const REFUSED = /^CONFIG_(NOT_TRUSTED|FOREIGN|AMBIGUOUS)$/

/** `svc config show`: prints values and sources; resolves with the exit code. */
export async function showConfig(options: ServeOptions, asked: { key: string | undefined; json: boolean }): Promise<number> {
  const place = here()
  const settings = await findSettings(options, place)
  // without a file that was refused, what is left is not what would be in force
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

/** What is in force; of a key that is asked for also what it does, set or not. Throws CONFIG_UNKNOWN_KEY. */
function rowsOf(plan: Plan, asked: string | undefined): ConfigRow[] {
  const rows = configRows(plan)
  if (asked === undefined) return rows
  const documented = documentedKeys(plan)
  const set = rows.filter(row => isBelow(row.key, asked))
  const known = documented.filter(one => isBelow(one.key, asked))
  if (set.length + known.length === 0)
    throw keyUnknown(
      asked,
      [...rows, ...documented].flatMap(({ key }) => prefixesOf(key))
    )
  // a whole section is shown as it is in force; only where nothing of it is, with all that might be
  const unset = set.length > 0 ? [] : known.filter(one => one.key !== 'plugins').map(unsetRow)
  const words = new Map(known.map(one => [one.key, one.description]))
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

/** `a.b.c`, `a.b`, `a`: each may be asked for. */
const prefixesOf = (key: string) => key.split('.').map((_, at, words) => words.slice(0, at + 1).join('.'))

const isBelow = (key: string, asked: string | undefined) => asked === undefined || key === asked || key.startsWith(`${asked}.`)

type PluginRows = ReturnType<typeof pluginRows>

const jsonText = (values: readonly ConfigRow[], plugins: PluginRows, problems: readonly unknown[]) =>
  JSON.stringify({ values, plugins, faults: problems.flatMap(errorFacts) }, null, 2)

function plainText(rows: readonly ConfigRow[], plugins: PluginRows): string {
  const dim = (text: string) => styleText('gray', text, { stream: process.stdout })
  const lines = rows.map(row => [
    row.key,
    JSON.stringify(row.value) ?? '',
    `${row.source}${row.unused ? ' (no plugin acts on it)' : ''}`,
    row.description ?? '',
  ])
  const list = plugins.map(one => [`plugins ${one.name}`, '', one.source])
  return table([...lines, ...list].map(([key = '', value = '', source = '', words = '']) => [key, value, dim(source), words]))
}

/** A key that the documents know, whether or not it is set. */
interface Documented {
  readonly key: string
  readonly description: string
  /** Known and checked, but no loaded plugin acts on it. */
  readonly unused: boolean
}

/** Every documented key of the kernel, the loaded plugins and what no plugin owns yet; of instances, those of their entries. */
function documentedKeys({ loaded, plannedPlugins }: Plan): Documented[] {
  const own = loaded.flatMap(({ plugin }) => (plugin.section ? keysOf(plugin.section, plugin.config?.json, false) : []))
  const entries = plannedPlugins.flatMap(({ plugin, instance }) =>
    instance === undefined ? [] : entryKeys(`${plugin.instances}.${instance}`, plugin.config?.json)
  )
  const rest = RESERVED.flatMap(({ section, json }) => keysOf(section, json, true))
  const served = SERVED.map(({ keys, description }) => ({ key: keys.join('.'), description, unused: false }))
  const all = [LIST, ...served, ...keysOf('', KERNEL_SCHEMA.json, false), ...own, ...entries, ...rest]
  return all.filter((one, at) => all.findIndex(other => other.key === one.key) === at)
}

const LIST = {
  key: 'plugins',
  description: 'Package names, paths and { use, optional, enabled, isolation }: merged by name with the list that svc brings.',
  unused: false,
}

const entryKeys = (entry: string, json: JsonSchema | undefined): Documented[] => [
  {
    key: `${entry}.type`,
    description: 'Which plugin the entry belongs to; without it, the one that its name says.',
    unused: false,
  },
  { key: `${entry}.enabled`, description: 'false switches the entry off.', unused: false },
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

/** Where nobody has written what it does, at least what may stand there. */
function kindOf({ type, enum: words, items }: { readonly [word: string]: unknown }): string {
  if (Array.isArray(words)) return `One of ${words.join(', ')}.`
  const inner = isTree(items) && typeof items.type === 'string' ? ` of ${items.type}` : ''
  return `A value of type ${[type ?? 'any'].flat().map(String).join(' or ')}${inner}.`
}
