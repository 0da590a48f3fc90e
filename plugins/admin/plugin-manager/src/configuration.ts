import { basename, dirname, join, relative, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  asSvcError,
  checkLoaded,
  checkSections,
  codeOf,
  type Config,
  configEntries,
  configSchema,
  type ConfigTree,
  get,
  isTree,
  type JsonSchema,
  type KnownSections,
  type Layer,
  leaves,
  maskedValue,
  mergeConfig,
  type Plan,
  pluginEntries,
  readConfigText,
  type SvcError,
  wholeOf,
} from '@svc/core'
import { configFilesIn } from '@svc/core/config'
import type {
  ConfigChange,
  ConfigCheck,
  ConfigDraft,
  ConfigProblem,
  ConfigSource,
  Configuration,
  ConfigState,
  Json,
} from '@svc/core/contracts'
import { changeYaml, patchedText, readVersioned, type VersionedText } from '@svc/runtime/home-files'
import { configLocked, draftInvalid, keyLocal, keyOverridden, keyReserved, tooManyKeys } from './configuration/errors.ts'
import { localReason, ownersIn, secretReason } from './configuration/local-keys.ts'
import { toolNameProblems, uncheckedWords } from './configuration/problems.ts'
import { LOCK_NAME } from './set/lock.ts'

export interface ConfigurationOptions {
  readonly home: string
  /** The plan of the running host. */
  readonly plan: () => Plan
  /** Names of the plugins that come with svc. */
  readonly ours: ReadonlySet<string>
  readonly known: KnownSections
}

type Values = Extract<ConfigDraft, { readonly values: unknown }>['values']

const FILE = 'svc.config.yaml'
const NEW_FILE = '# The configuration of svc in its home. See docs/reference/configuration.md.\n'

/** The service `Configuration` of a worker. Its plan and the file of the home are the same for all workers of a generation. */
export function createConfiguration({ home, plan, ours, known }: ConfigurationOptions): Configuration {
  const file = join(resolve(home), FILE)
  const hide = (text: string) => withoutPaths(text, home)
  const checked = async (before: ConfigTree, text: string): Promise<ConfigCheck> => {
    const { problems, unchecked } = await checkDraft({ plan: plan(), file, before, ours, reserved: known.reserved }, text)
    return { problems: problems.map(problem => publicProblem(problem, hide)), unchecked: unchecked.map(hide) }
  }
  return {
    async read() {
      const { value, version } = await readFile(file)
      return stateOf({ plan: plan(), home, file, ours, known, locked: lockedReason(home) }, value, version)
    },
    schema: async () => (await configSchema({ loaded: await loadedFor(plan(), ours) }, known.reserved)) as JsonSchema,
    async check(draft) {
      const { value, text } = await readFile(file)
      try {
        return await checked(value, 'text' in draft ? draft.text : await withValues(text, draft.values))
      } catch (error) {
        return { problems: [publicProblem(asSvcError(error, 'CONFIG_INVALID'), hide)], unchecked: ALL_UNCHECKED }
      }
    },
    async change(values, ifVersion) {
      const locked = lockedReason(home)
      if (locked !== undefined) throw configLocked(locked)
      let changed: ConfigChange['changed'] = []
      let unchecked: readonly string[] = []
      const accept = async (before: string, after: string) => {
        const former = await treeOf(before)
        const found = await checked(former, after)
        if (found.problems.length > 0) throw draftInvalid(found.problems)
        unchecked = found.unchecked
        changed = changesBetween(former, await treeOf(after), home)
      }
      try {
        mustBeSound(values)
      } catch (error) {
        throw draftInvalid([publicProblem(error as SvcError, hide)])
      }
      const { version } = await changeYaml(file, { ifVersion, values, first: NEW_FILE, accept }).catch((error: unknown) => {
        throw rejection(error, hide)
      })
      return { version, changed, unchecked }
    },
  }
}

/** The file of the home; without one it is empty. A link or an unreadable file has no values: `lockedReason` says why. */
async function readFile(file: string): Promise<VersionedText & { readonly value: ConfigTree }> {
  const read = await readVersioned(file).catch(() => ({ version: 'unreadable' }) as VersionedText)
  return { ...read, value: await treeOf(read.text ?? '') }
}

/** The values of a text, without those that svc could not read: for a comparison, nothing of them is known. */
const treeOf = async (text: string): Promise<ConfigTree> =>
  readConfigText(FILE, text).then(
    ({ value }) => value,
    () => ({})
  )

/** Why the file of the home cannot be changed: svc would not read it, or it is not its own. */
function lockedReason(home: string): string | undefined {
  const [other] = configFilesIn(home)
    .map(file => basename(file))
    .filter(name => name !== FILE)
  return other === undefined ? undefined : `the svc home has ${other}, and only ${FILE} can be changed over HTTP`
}

/** Errors of a write as those of the contract. */
function rejection(error: unknown, hide: (text: string) => string): unknown {
  const code = codeOf(error)
  if (code === 'YAML_ALIASED') return draftInvalid([publicProblem(error as SvcError, hide)])
  if (code === 'YAML_INVALID') return configLocked(`${FILE} has errors`)
  if (code === 'ELOOP' || code === 'FILE_TOO_LARGE') return configLocked(`${FILE} is a link, or too large`)
  return error
}

/** Throws the problem of values that are not looked at further. */
function mustBeSound(values: Values): void {
  const reserved = reservedName(values)
  if (reserved !== undefined) throw keyReserved(reserved)
  if (isLarge(values)) throw tooManyKeys(MOST_KEYS)
}

/** Values of a draft, those in lists included. No real configuration comes near. */
const MOST_KEYS = 5_000

function isLarge(value: unknown): boolean {
  const open: unknown[] = [value]
  // the loop also visits the items that are added to the list meanwhile
  for (const item of open) {
    if (typeof item !== 'object' || item === null) continue
    const inner = Object.values(item)
    if (open.length + inner.length > MOST_KEYS) return true
    open.push(...inner)
  }
  return false
}

/** The text with some keys changed, without a file. */
function withValues(text: string | undefined, values: Values): Promise<string> {
  mustBeSound(values)
  return patchedText(text ?? '', values)
}

const RESERVED_NAMES = new Set(['__proto__', 'constructor', 'prototype', '<<'])

/** The first key that JavaScript or YAML gives a meaning. Such a key is never a setting. */
function reservedName(value: unknown, keys: readonly string[] = []): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const path = [...keys, key]
    const found = RESERVED_NAMES.has(key) ? path : reservedName(inner, path)
    if (found) return found
  }
  return undefined
}

interface Draft extends Pick<ConfigurationOptions, 'ours'>, Pick<KnownSections, 'reserved'> {
  readonly plan: Plan
  readonly file: string
  /** The present values of the file. */
  readonly before: ConfigTree
}

const MOST_PROBLEMS = 50

/** What `svc serve` adds to the plugins of the configuration. It has no manifest, and adds no tools. */
const ADDED: ReadonlySet<string> = new Set(['server-control', 'workers', 'protected-paths'])

interface CheckedDraft {
  readonly problems: readonly SvcError[]
  readonly unchecked: readonly string[]
}

const ALL_UNCHECKED = ['everything else: the first problems prevent a further look']
const only = (...problems: readonly SvcError[]): CheckedDraft => ({ problems, unchecked: ALL_UNCHECKED })

/** Checks a text in place of the file of the home. Keys that clients cannot change come first. */
async function checkDraft({ plan, file, before, ours, reserved }: Draft, text: string): Promise<CheckedDraft> {
  let read: Layer
  try {
    read = await readConfigText(FILE, text)
  } catch (error) {
    return only(asSvcError(error, 'CONFIG_UNREADABLE'))
  }
  const tree = read.value
  const name = reservedName(tree)
  if (name) return only(keyReserved(name))
  if (isLarge(tree)) return only(tooManyKeys(MOST_KEYS))
  const layer: Layer = { ...read, file }
  const config = mergeConfig(layersWith(plan.config, layer))
  const owners = ownersIn(plan, ours)
  const refused = changedKeys(before, tree).flatMap(keys => {
    const reason = localReason(keys, [config.value, plan.config.value], owners) ?? secretReason(get(tree, keys))
    return reason === undefined ? [] : [keyLocal(keys, reason, config.where(keys))]
  })
  // a draft with such keys is not checked further: what they name must not be looked at
  if (refused.length > 0) return only(...refused.slice(0, MOST_PROBLEMS))
  const loaded = await loadedFor(plan, ours)
  const { problems, plannedPlugins } = await checkLoaded(config, loaded, reserved)
  const isConfigured = ({ name }: { readonly name: string }) => !ADDED.has(name)
  const configured = { plannedPlugins: plannedPlugins.filter(isConfigured), loaded: loaded.filter(isConfigured) }
  const found = [...problems, ...toolNameProblems(config, configured), ...overridden(config, layer, before)]
  // other sources can hide a wrong value, which would then fail a start without them
  const alone = checkSections(mergeConfig(layersBelow(plan.config, layer)), loaded, reserved)
  const known = new Set(found.map(({ message }) => message))
  const hidden = alone.filter(({ message }) => !known.has(message) && !message.endsWith(' is required'))
  return {
    problems: [...found, ...hidden].slice(0, MOST_PROBLEMS),
    unchecked: uncheckedWords(configured, false),
  }
}

/** The changed keys that a source of higher priority sets. Their removal is no problem. */
function overridden(config: Config, layer: Layer, before: ConfigTree): SvcError[] {
  const above = config.layers.slice(config.layers.indexOf(layer) + 1)
  return changedKeys(before, layer.value).flatMap(keys => {
    const value = get(layer.value, keys)
    if (value === undefined || isTree(value)) return []
    const stronger = above.findLast(({ value: tree }) => isSetAt(tree, keys))
    return stronger === undefined ? [] : [keyOverridden(keys, sourceOf(keys, stronger, layer.file ?? ''), config.where(keys))]
  })
}

/** Whether a tree has the key, or a value in place of a tree around it. */
const isSetAt = (tree: ConfigTree, keys: readonly string[]): boolean =>
  get(tree, keys) !== undefined ||
  keys.some((_, depth) => {
    const around = depth === 0 ? tree : get(tree, keys.slice(0, depth))
    return around !== undefined && !isTree(around)
  })

/** The other sources, and this layer where the file of the home belongs. */
function layersWith({ layers }: Config, layer: Layer): Layer[] {
  const at = layers.findIndex(({ file }) => file !== undefined && resolve(file) === layer.file)
  if (at >= 0) return layers.with(at, layer)
  const low = layers.findLastIndex(({ name }) => name === 'defaults' || name === LOCK_NAME)
  return layers.toSpliced(low + 1, 0, layer)
}

/** The layer with those of lower priority. */
const layersBelow = (config: Config, layer: Layer): Layer[] => {
  const layers = layersWith(config, layer)
  return layers.slice(0, layers.indexOf(layer) + 1)
}

/** Plugins of svc that no entry uses yet are imported for their schema. No plugin of others is. */
async function loadedFor({ loaded }: Plan, ours: ReadonlySet<string>): Promise<Plan['loaded']> {
  return Promise.all(loaded.map(async item => (ours.has(item.name) ? { ...item, plugin: await wholeOf(item) } : item)))
}

/** The leaves that differ. */
function changedKeys(before: ConfigTree, after: ConfigTree): string[][] {
  const [old, next] = [before, after].map(tree => new Map(leaves(tree).map(([keys, value]) => [JSON.stringify(keys), value])))
  const all = [...new Set([...old!.keys(), ...next!.keys()])]
  return all
    .filter(key => !(old!.has(key) && next!.has(key) && isDeepStrictEqual(old!.get(key), next!.get(key))))
    .map(key => JSON.parse(key) as string[])
    .filter(keys => keys.length > 0 && keys[0] !== '$schema')
}

function changesBetween(before: ConfigTree, after: ConfigTree, home: string): ConfigChange['changed'] {
  const shown = (tree: ConfigTree, keys: readonly string[]) => plainOf(maskedValue(keys, get(tree, keys) ?? null), home)
  return changedKeys(before, after).map(keys => ({ key: keys.join('.'), before: shown(before, keys), after: shown(after, keys) }))
}

interface Shown extends Pick<ConfigurationOptions, 'home' | 'ours' | 'known'> {
  readonly plan: Plan
  readonly file: string
  readonly locked: string | undefined
}

function stateOf({ plan, home, file, ours, known, locked }: Shown, value: ConfigTree, version: string): ConfigState {
  const source = (keys: readonly string[], layer: Layer | undefined): ConfigSource => sourceOf(keys, layer, file)
  const owners = ownersIn(plan, ours)
  const running = plan.config.layers.find(layer => layer.file !== undefined && resolve(layer.file) === file)?.value ?? {}
  return {
    values: configEntries(plan, known).map(({ keys, value: shown, layer, unused }) => {
      const local = localReason(keys, [plan.config.value], owners)
      return {
        keys: [...keys],
        value: plainOf(shown, home),
        source: source(keys, layer),
        unused,
        ...(local === undefined ? {} : { local }),
        inFile: get(value, keys) !== undefined,
      }
    }),
    plugins: pluginEntries(plan).map(({ name, layer }) => ({ name: shortName(name), source: source(['plugins'], layer) })),
    file: { version, isPending: !isDeepStrictEqual(value, running), ...(locked === undefined ? {} : { locked }) },
  }
}

/** A path of a plugin is shown without its folders. */
const shortName = (name: string) => (/^(\/|\.|file:|[A-Za-z]:\\)/.test(name) ? basename(name) : name)

function sourceOf(keys: readonly string[], layer: Layer | undefined, home: string): ConfigSource {
  if (layer === undefined) return { kind: 'default' }
  if (layer.name === LOCK_NAME) return { kind: 'installed' }
  if (layer.file !== undefined)
    return resolve(layer.file) === home
      ? { kind: 'home', name: `${HOME}/${FILE}` }
      : { kind: 'file', name: fileName(relative(process.cwd(), layer.file)) }
  if (layer.name === 'flags') return { kind: 'flags' }
  // later workers get the values of the environment without its variables
  const variable = `SVC_${keys.join('__').toUpperCase()}`
  return { kind: 'environment', ...(process.env[variable] === undefined ? {} : { name: variable }) }
}

/** A file from the working folder. One elsewhere is shown without its folders, except in a folder around this one. */
function fileName(path: string): string {
  if (!path.startsWith('..')) return `./${path}`
  return /[^./]/.test(dirname(path)) ? basename(path) : path
}

/** A value as JSON: a configuration that is code can contain functions. The path of the home is not shown. */
function plainOf(value: unknown, home: string): Json {
  if (typeof value === 'string') return withoutHome(value, home)
  if (Array.isArray(value)) return value.map(item => plainOf(item, home))
  if (isTree(value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainOf(item, home)]))
  return value === null || typeof value === 'number' || typeof value === 'boolean' ? value : null
}

const HOME = '<svc home>'
const withoutHome = (text: string, home: string) => text.replaceAll(resolve(home), HOME)
/** Paths of the machine, of which only the last name is shown. */
const PATH = /(?<![\w:/.])~?(?:\/[^\s/:'"`]+)+\/([^\s/:'"`]+)/g
const withoutPaths = (text: string, home: string) => withoutHome(text, home).replace(PATH, '$1')

function publicProblem({ code, message, where, hint, plugin, details }: SvcError, hide: (text: string) => string): ConfigProblem {
  const { path } = details as { path?: unknown }
  const texts = Object.entries({ where, hint, plugin }).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, hide(text)]]
  )
  return { code, message: hide(message), ...(typeof path === 'string' ? { path } : {}), ...Object.fromEntries(texts) }
}

/** Problems that came from the supervisor, for a client. */
export const publicProblems = (problems: readonly SvcError[], home: string): ConfigProblem[] =>
  problems.map(problem => publicProblem(problem, text => withoutPaths(text, home)))
