import { isTree, type JsonSchema, KERNEL_SCHEMA, type Plan } from '@svc/core'
import { RESERVED, SERVED } from './reserved.ts'

/** A key that the documents know, whether or not it is set. */
export interface Documented {
  readonly key: string
  readonly description: string
  /** Known and checked, but no loaded plugin acts on it. */
  readonly unused: boolean
}

/** Every documented key of the kernel, the loaded plugins and what no plugin owns yet; of instances, those of their entries. */
export function documentedKeys({ loaded, plannedPlugins }: Plan): Documented[] {
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
