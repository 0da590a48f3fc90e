import type { Plan } from '../loading/plan.ts'
import type { Plugin } from '../src/plugin.ts'
import { KERNEL_SCHEMA } from './kernel-config.ts'
import type { ReservedSection } from './sections.ts'

const closed = (properties: Readonly<Record<string, SchemaTree>>): SchemaTree => ({
  type: 'object',
  additionalProperties: false,
  properties,
})

const PLUGIN_ENTRY = closed({
  use: { type: 'string', minLength: 1, description: 'Name of a package, or path of a folder or file.' },
  name: { type: 'string', minLength: 1, description: 'Name in its errors and log lines.' },
  optional: { type: 'boolean', description: 'If true, the host starts even if the plugin fails.' },
  enabled: { type: 'boolean', description: 'Set to false to remove it.' },
  isolation: { enum: ['in-process', 'process'], description: 'Where its code runs.' },
  permissions: { type: 'object', description: 'Permissions instead of those in its manifest.' },
})

const PLUGINS = {
  type: 'array',
  description: 'Plugins in addition to the curated ones. Lists of several sources merge by name.',
  items: {
    anyOf: [
      { type: 'string', minLength: 1 },
      { ...PLUGIN_ENTRY, required: ['use'] },
    ],
  },
}

/**
 * The schema of all sections: of the kernel, of the plugins, and reserved ones. Nothing is required, because another source can
 * set it.
 */
export async function configSchema(
  { loaded }: Pick<Plan, 'loaded'>,
  known: readonly ReservedSection[]
): Promise<{ readonly [keyword: string]: unknown }> {
  const plugins = await Promise.all(loaded.map(wholeOf))
  const owned = plugins.flatMap(sectionOf)
  const taken = new Set(owned.map(([path]) => path))
  const reserved = known
    .filter(({ section }) => !taken.has(section))
    .map(({ section, json }) => [section, json as SchemaTree] as const)
  const kernel = (KERNEL_SCHEMA.json as SchemaTree).properties ?? {}
  const root = closed({
    $schema: { type: 'string' },
    plugins: PLUGINS,
    ...Object.fromEntries(Object.entries(kernel).map(([key, property]) => [key, layered(property)])),
  })
  // outer sections first: inner ones are inserted into them
  const instances = instancesOf(plugins)
  const entries = instances.map(({ section, schema }) => [section, schema] as const)
  const sections = [...reserved, ...owned, ...entries].sort(([a], [b]) => a.length - b.length)
  const tree = sections.reduce((at, [path, json]) => withSection(at, path.split('.'), layered(json)), root)
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'The configuration of svc',
    ...tree,
    definitions: Object.assign({}, ...instances.map(({ definitions }) => definitions)) as object,
  }
}

/** A plugin with instances but without a schema was not imported yet. */
export async function wholeOf({ found, plugin }: Plan['loaded'][number]): Promise<Plugin> {
  if (plugin.config !== undefined || found.manifest.instances === undefined) return plugin
  return found.load().catch(() => plugin)
}

const jsonOf = ({ config }: Plugin): SchemaTree =>
  typeof config?.json === 'object' ? (config.json as SchemaTree) : { type: 'object' }

const sectionOf = (plugin: Plugin): (readonly [string, SchemaTree])[] =>
  plugin.section === undefined ? [] : [[plugin.section, jsonOf(plugin)]]

/** The sections of instances, with the schemas of their types. */
function instancesOf(plugins: readonly Plugin[]) {
  const many = plugins.filter(({ instances, type }) => instances !== undefined && type !== undefined)
  return [...Map.groupBy(many, ({ instances }) => instances!)].map(([section, of]) => ({
    section,
    ...entriesSchema(
      section,
      of.map(plugin => [plugin.type!, jsonOf(plugin)])
    ),
  }))
}

/** A JSON Schema of an object, as far as this file builds it. */
interface SchemaTree {
  readonly [word: string]: unknown
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, SchemaTree>>
}

/** Removes `required`, because the values of several sources merge. A list has one source, so its items stay as they are. */
function layered({ required: _required, ...json }: SchemaTree): SchemaTree {
  const { properties } = json as SchemaTree
  if (properties === undefined) return json
  return { ...json, properties: Object.fromEntries(Object.entries(properties).map(([key, inner]) => [key, layered(inner)])) }
}

/** Inserts a schema at a path. */
function withSection(tree: SchemaTree, [key = '', ...rest]: readonly string[], json: SchemaTree): SchemaTree {
  const { properties = {} } = tree
  const there = properties[key]
  const inner = rest.length > 0 ? withSection(there ?? closed({}), rest, json) : there ? merged(there, json) : json
  return { ...tree, properties: { ...properties, [key]: inner } }
}

/** Merges a section with inner parts that were inserted before. */
const merged = (there: SchemaTree, json: SchemaTree): SchemaTree => ({
  ...json,
  properties: { ...json.properties, ...there.properties },
})

type Typed = readonly (readonly [type: string, json: SchemaTree])[]

/**
 * The schema of entries by name. Their keys depend on their `type`, or on their name if they have none. `definitions`: the
 * parts that the schema refers to.
 */
function entriesSchema(
  section: string,
  typed: Typed
): { readonly schema: SchemaTree; readonly definitions: Readonly<Record<string, SchemaTree>> } {
  const types = typed.map(([type]) => type).sort()
  const byType = typed.map(([type]) => ({
    if: { properties: { type: { const: type } }, required: ['type'] },
    // a keyword of JSON Schema, not a promise
    // oxlint-disable-next-line unicorn/no-thenable
    then: refTo(`${section}.${type}`),
  }))
  // oxlint-disable-next-line unicorn/no-thenable
  const choose = (type: string) => ({ if: { required: ['type'] }, then: refTo(section), else: refTo(`${section}.${type}`) })
  const named = typed.map(([type]) => [type, choose(type)])
  const any = { type: 'object', properties: { type: { enum: types } }, allOf: byType }
  return {
    schema: {
      type: 'object',
      properties: Object.fromEntries(named) as Record<string, SchemaTree>,
      additionalProperties: refTo(section),
    },
    definitions: {
      [section]: any,
      ...Object.fromEntries(typed.map(([type, json]) => [`${section}.${type}`, entryOf(json, types)])),
    },
  }
}

const refTo = (name: string): SchemaTree => ({ $ref: `#/definitions/${name}` })

function entryOf(json: SchemaTree, types: readonly string[]): SchemaTree {
  const own = {
    type: { enum: types, description: 'Type of the entry; default: the name of the entry.' },
    enabled: { type: 'boolean', description: 'Set to false to ignore the entry.' },
  }
  return layered({ ...json, properties: { ...own, ...json.properties } })
}
