import type { Plugin } from '../src/plugin.ts'
import type { SvcError } from '../src/errors.ts'
import { type Config, type ConfigTree, get, isTree } from './config.ts'
import { configInvalid, configUnknownKey, configUnowned, referenceInvalid, reservedNeedsPlugin } from './errors.ts'
import { KERNEL_SCHEMA, type KernelConfig } from './kernel-config.ts'
import { nearest } from './nearest.ts'
import { SECRET_NAME } from './redaction.ts'
import { pathOf, schema, type Schema, type SchemaProblem, show } from './schema.ts'
import type { JsonSchema } from './validator.ts'

/**
 * A documented section of the configuration that possibly has no owner. It is validated, and rejected where it asks for work
 * that no plugin does.
 */
export interface ReservedSection {
  readonly section: string
  readonly json: JsonSchema
  /**
   * Values that ask for work: `{ key: 'enabled', when: value => value === true, what, hint }`. An empty `key` means the section
   * itself.
   */
  readonly asks?: readonly {
    readonly key: string
    readonly when: (value: unknown) => boolean
    readonly what: string
    readonly hint: string
  }[]
}

/** A planned setup: a plugin, or one entry of the section of its instances. */
export interface PlannedPlugin {
  readonly name: string
  readonly plugin: Plugin
  readonly instance?: string
  /** The position of the entry in its section. */
  readonly place: number
  /** With references, it has its final form only in `resolve`. */
  readonly config: unknown
  readonly problems: readonly SvcError[]
  /** The references to secrets in its configuration. */
  readonly references: readonly (ConfigReference & { readonly path: string; readonly where: string | undefined })[]
  /** Returns the validated configuration with these secrets. */
  resolve(secrets: ReadonlyMap<string, string>): Pick<PlannedPlugin, 'config' | 'problems'>
}

interface Owner {
  readonly path: string
  readonly name: string
  readonly plugin?: Plugin
  readonly reserved?: ReservedSection
}

const keysOf = (path: string) => path.split('.')

export interface Sections {
  readonly kernel: KernelConfig
  readonly plannedPlugins: readonly PlannedPlugin[]
  /** Problems that belong to no plugin. */
  readonly problems: readonly SvcError[]
  /** Keys and types that no plugin owns. */
  readonly unowned: readonly SvcError[]
}

/**
 * Splits the configuration into the sections that plugins own, deepest owner first, and validates each. Collects all problems.
 */
export function splitSections(
  config: Config,
  plugins: readonly { name: string; plugin: Plugin }[],
  reserved: readonly ReservedSection[] = []
): Sections {
  const owners = ownersOf(plugins, reserved)
  const kernel = extractSection({ host: config.value.host, log: config.value.log }, [], owners) as ConfigTree
  const kernelProblems = KERNEL_SCHEMA.check(kernel).map(problem => problemError(config, owners, undefined, [], problem))
  return {
    kernel: kernel as unknown as KernelConfig,
    plannedPlugins: plugins.flatMap(plugin => planEntries(config, plugin.name, plugin.plugin, owners)),
    problems: [...kernelProblems, ...reservedProblems(config, owners)],
    unowned: [...unknownKeys(config, owners), ...unknownTypes(config, plugins)],
  }
}

/** Every problem of a configuration for plugins that are already loaded. It runs no code of them. */
export function checkSections(
  config: Config,
  plugins: readonly { name: string; plugin: Plugin }[],
  reserved: readonly ReservedSection[] = []
): SvcError[] {
  const { problems, unowned, plannedPlugins } = splitSections(config, plugins, reserved)
  return [...config.problems, ...problems, ...unowned, ...plannedPlugins.flatMap(planned => planned.problems)]
}

function ownersOf(plugins: readonly { name: string; plugin: Plugin }[], reserved: readonly ReservedSection[]): Owner[] {
  const own = plugins.flatMap(({ name, plugin }) =>
    [plugin.section, plugin.instances].filter(path => path !== undefined).map(path => ({ path, name, plugin }))
  )
  const taken = new Set<string>(own.map(owner => owner.path))
  const free = reserved
    .filter(reservedSection => !taken.has(reservedSection.section))
    .map(reservedSection => ({ path: reservedSection.section, name: 'svc', reserved: reservedSection }))
  return [{ path: 'host', name: 'svc' }, { path: 'log', name: 'svc' }, ...own, ...free]
}

/** Copies a section without the parts that deeper owners own. Validation can fill in the copy. */
function extractSection(value: unknown, keys: readonly string[], owners: readonly Owner[]): unknown {
  if (!isTree(value))
    return Array.isArray(value) ? value.map((inner, at) => extractSection(inner, [...keys, String(at)], owners)) : value
  const tree: ConfigTree = {}
  for (const [key, inner] of Object.entries(value)) {
    const path = [...keys, key]
    if (keys.length > 0 && owners.some(owner => owner.path === path.join('.'))) continue
    if (inner !== undefined)
      Object.defineProperty(tree, key, {
        value: extractSection(inner, path, owners),
        enumerable: true,
        writable: true,
        configurable: true,
      })
  }
  return tree
}

function planEntries(config: Config, name: string, plugin: Plugin, owners: readonly Owner[]): PlannedPlugin[] {
  if (plugin.instances === undefined)
    return [planEntry(config, name, plugin, plugin.section === undefined ? [] : keysOf(plugin.section), owners)]
  const keys = keysOf(plugin.instances)
  const places = entriesIn(config, plugin.instances).map(([entry]) => entry)
  const plannedPlugin = (entry: string) => planEntry(config, name, plugin, [...keys, entry], owners)
  const mine = entriesOf(config, plugin.instances, plugin.type)
  return mine.map(entry => ({ ...plannedPlugin(entry), instance: entry, place: places.indexOf(entry) }))
}

function entriesIn(config: Config, section: string): [string, unknown][] {
  const entries = get(config.value, keysOf(section))
  return isTree(entries) ? Object.entries(entries) : []
}

/** The enabled entries of this type in a section of instances. */
export const entriesOf = (config: Config, section: string, type: string | undefined): string[] =>
  entriesIn(config, section).flatMap(([entry, value]) =>
    typeOf(entry, value) === type && !(isTree(value) && value.enabled === false) ? [entry] : []
  )

/** The type of an entry: its `type`, or its name. */
function typeOf(entry: string, value: unknown): string {
  const type = isTree(value) ? value.type : undefined
  return type === undefined ? entry : typeof type === 'string' ? type : show(type)
}

function planEntry(
  config: Config,
  name: string,
  plugin: Plugin,
  keys: readonly string[],
  owners: readonly Owner[]
): PlannedPlugin {
  const found = keys.length === 0 ? {} : extractSection(get(config.value, keys) ?? defaultOf(plugin), keys, owners)
  const raw = plugin.instances !== undefined && isTree(found) ? withoutEntryKeys(found) : found
  const references = referencesIn(raw).map(reference => {
    const path = [...keys, ...reference.keys]
    return { ...reference, path: pathOf(path), where: config.where(path) }
  })
  const resolve = (secrets: ReadonlyMap<string, string>, isDue: (problem: SchemaProblem) => boolean = () => true) => {
    const value = withSecrets(raw, secrets)
    const problems = (plugin.config ? plugin.config.check(value) : noConfig(value)).filter(isDue)
    const hidden = secrets.size === 0 ? problems : problems.map(withoutValue)
    const errors = hidden.map(problem =>
      problemError(config, owners, name, keys, plugin.instances === undefined ? problem : inEntry(problem))
    )
    return { config: deepFreeze(value), problems: errors }
  }
  const now = resolve(new Map(), problem => !canBeOfReference(problem, references))
  const unreadable = references.filter(reference => reference.name === undefined)
  return {
    name,
    plugin,
    place: 0,
    config: now.config,
    references,
    problems: [...now.problems, ...unreadable.map(({ path, where }) => referenceInvalid(name, path, where))],
    resolve,
  }
}

/** The value of a configuration with secrets can contain one of them. */
const withoutValue = (problem: SchemaProblem): SchemaProblem => ({
  ...problem,
  message: problem.message.replace(/, was [^]*$/, ', was another value'),
})

/** The value of an absent section: the default of its schema, or an empty object. */
const defaultOf = ({ config }: Plugin): unknown => (typeof config?.json === 'object' ? config.json.default : undefined) ?? {}

/** Keys of an entry that select the plugin and are not part of its schema. */
const ENTRY_KEYS = ['type', 'enabled']

const inEntry = (problem: SchemaProblem): SchemaProblem =>
  problem.keyword === 'unknown' && problem.keys.length === 1
    ? { ...problem, allowed: [...(problem.allowed ?? []), ...ENTRY_KEYS] }
    : problem

function withoutEntryKeys(entry: ConfigTree): ConfigTree {
  const { type: _type, enabled: _enabled, ...rest } = entry
  return rest
}

const NO_KEYS: Schema = schema({ type: 'object', additionalProperties: false })
const noConfig = (value: unknown) => (isTree(value) && Object.keys(value).length === 0 ? [] : NO_KEYS.check(value))

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value))
    for (const inner of Object.values(Object.freeze(value))) deepFreeze(inner)
  return value
}

function problemError(
  config: Config,
  owners: readonly Owner[],
  plugin: string | undefined,
  keys: readonly string[],
  problem: SchemaProblem
): SvcError {
  const path = [...keys, ...problem.keys]
  const where = config.where(path)
  if (problem.keyword === 'unknown') {
    const known = [...(problem.allowed as string[]), ...ownedBelow(path.slice(0, -1), owners)]
    return Object.assign(configUnknownKey(path.join('.'), known, where), plugin ? { plugin } : {})
  }
  const hint = problem.keyword === 'required' ? `Set ${pathOf(path)}` : undefined
  const error = configInvalid(plugin, `${pathOf(path)} ${problem.message}`, where, hint)
  return Object.assign(error, { details: { path: pathOf(path) } })
}

/** The next keys on the paths of owners below `keys`. */
function ownedBelow(keys: readonly string[], owners: readonly Owner[]): Set<string> {
  const at = keys.join('.')
  const below = owners.filter(owner => at === '' || owner.path.startsWith(`${at}.`))
  return new Set(below.map(owner => keysOf(owner.path)[keys.length]!))
}

function unknownKeys(config: Config, owners: readonly Owner[], keys: readonly string[] = []): SvcError[] {
  const at = keys.join('.')
  const tree = keys.length === 0 ? config.value : get(config.value, keys)
  if (owners.some(owner => owner.path === at)) return []
  if (!isTree(tree)) return [configInvalid(undefined, `${at} must be an object`, config.where(keys))]
  const known = ownedBelow(keys, owners)
  return Object.keys(tree).flatMap(key => {
    const path = [...keys, key]
    if (known.has(key)) return unknownKeys(config, owners, path)
    return isDefault(config, path) ? [] : [configUnowned(path.join('.'), known, config.where(path))]
  })
}

/** An unowned key in the defaults is not an error: its plugin can have been removed. */
const isDefault = (config: Config, keys: readonly string[]) => config.layerOf(keys)?.name === 'defaults'

/** Reports entries whose type no loaded plugin has. */
function unknownTypes(config: Config, plugins: readonly { name: string; plugin: Plugin }[]): SvcError[] {
  const sections = Map.groupBy(
    plugins.filter(plugin => plugin.plugin.instances !== undefined),
    plugin => plugin.plugin.instances!
  )
  return [...sections].flatMap(([section, owners]) => {
    const types = owners.map(owner => owner.plugin.type ?? '')
    const named = entriesIn(config, section).filter(([entry]) => !isDefault(config, [...keysOf(section), entry]))
    const strange = named.filter(([entry, value]) => !types.includes(typeOf(entry, value)))
    return strange.map(([entry, value]) => {
      const keys = [...keysOf(section), entry]
      return mistyped(config, keys, value) ?? unknownType(config, keys, typeOf(entry, value), types)
    })
  })
}

/** Recognizes an entry without a type that has a key similar to `type`. */
function mistyped(config: Config, keys: string[], value: unknown): SvcError | undefined {
  const near = isTree(value) && value.type === undefined ? Object.keys(value).find(key => nearest(key, ['type'])) : undefined
  return near === undefined ? undefined : configUnknownKey([...keys, near].join('.'), ENTRY_KEYS, config.where([...keys, near]))
}

function unknownType(config: Config, keys: string[], type: string, types: string[]): SvcError {
  const where = config.where([...keys, 'type'])
  return configInvalid(
    undefined,
    `${keys.join('.')} has the type "${type}", which no loaded plugin provides`,
    where,
    `Use one of the types ${types.sort().join(', ')}, or add the plugin that provides "${type}"`
  )
}

function reservedProblems(config: Config, owners: readonly Owner[]): SvcError[] {
  return owners.flatMap(({ reserved, path }) => {
    const value = reserved && get(config.value, keysOf(path))
    if (!reserved || value === undefined) return []
    const problems = schema(reserved.json).check(extractSection(value, keysOf(path), owners))
    const asked = (reserved.asks ?? []).filter(ask => ask.when(ask.key === '' ? value : get(value, keysOf(ask.key))))
    return [
      ...problems.map(problem => problemError(config, owners, undefined, keysOf(path), problem)),
      ...asked.map(ask => {
        const keys = [...keysOf(path), ...(ask.key === '' ? [] : keysOf(ask.key))]
        return reservedNeedsPlugin(keys.join('.'), ask.what, config.where(keys), ask.hint)
      }),
    ]
  })
}

// --- references to secrets ---

/** A reference in a value of the configuration, such as `${secret:db_password}`. */
interface ConfigReference {
  /** The place of the value, below the section. */
  readonly keys: readonly string[]
  /** The name. Absent: what follows `${secret:` is not a name and a brace. */
  readonly name?: string
}

/** `$${secret:` stands for the text `${secret:`. */
const REFERENCE = /(\$?)\$\{secret:(?:([^}]*)\})?/g

/** Lists the references in all texts of a value. */
function referencesIn(value: unknown, keys: readonly string[] = []): ConfigReference[] {
  if (typeof value === 'string') return value.includes('${secret:') ? inText(value, keys) : []
  if (Array.isArray(value)) return value.flatMap((item, at) => referencesIn(item, [...keys, String(at)]))
  return isTree(value) ? Object.entries(value).flatMap(([key, item]) => referencesIn(item, [...keys, key])) : []
}

const inText = (text: string, keys: readonly string[]): ConfigReference[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, escape, name]) => {
    if (escape === '$') return []
    return [name !== undefined && SECRET_NAME.test(name) ? { keys, name } : { keys }]
  })

/** Keywords that report a problem of an inner value at a value around it. */
const AROUND: readonly string[] = ['oneOf', 'anyOf', 'allOf', 'not', 'contains']

/** Whether a problem can be due to a reference that is not resolved yet. */
const canBeOfReference = ({ keys, keyword }: SchemaProblem, references: readonly ConfigReference[]): boolean =>
  references.some(reference => {
    const isWithin = keys.every((key, at) => key === reference.keys[at])
    return isWithin && (keys.length === reference.keys.length || AROUND.includes(keyword))
  })

/** Copies a value with the secrets in place of the references. A secret is not searched for references. */
function withSecrets(value: unknown, secrets: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string')
    return value.replace(REFERENCE, (whole: string, escape: string, name?: string) =>
      escape === '$' ? whole.slice(1) : (secrets.get(name ?? '') ?? whole)
    )
  if (Array.isArray(value)) return value.map(item => withSecrets(item, secrets))
  if (!isTree(value)) return value
  const tree: ConfigTree = {}
  for (const [key, item] of Object.entries(value))
    Object.defineProperty(tree, key, {
      value: withSecrets(item, secrets),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  return tree
}
