import { pathToFileURL } from 'node:url'
import { type Config, configOf, type ConfigTree, entryOf, nameOf, type PluginEntry, type PluginRef } from '../config/config.ts'
import { brokenCommands, type KnownNames, unknownSlots } from '../config/contributions.ts'
import { referenceTooEarly, referenceUnprovided, withLostHint } from '../config/errors.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import { entriesOf, type PlannedPlugin, type ReservedSection, type Sections, splitSections } from '../config/sections.ts'
import { asSvcError, checkFailed, type SvcError } from '../src/errors.ts'
import { Events } from '../src/events.ts'
import { LogLines, type LogOptions } from '../src/log.ts'
import { type CheckContext, definePlugin, type Plugin } from '../src/plugin.ts'
import { failedReport, Host, type PluginReport } from '../src/report.ts'
import { withTimeout } from '../src/scheduling.ts'
import type { PluginBoundary } from '../src/scope.ts'
import { manifestInvalid, pluginTwice } from './errors.ts'
import { findPlugin, type LocatedPlugin, type Isolate } from './load.ts'
import { PackageFiles } from './package-files.ts'
import { type Order, orderPlugins, servicesOf } from './order.ts'
import { sectionsTaken } from './runtime.ts'

/** Options of a host. */
export interface HostOptions extends KnownNames {
  /** The plugins. Default: those of `config`. */
  readonly plugins?: readonly PluginRef[]
  /** A configuration that was found, or an object. */
  readonly config?: Config | ConfigTree
  /** File or folder URLs from which plugin names are resolved, in order of priority. Default: the current folder. */
  readonly from?: readonly string[]
  readonly log?: LogOptions
  /** Documented sections that possibly have no owner. */
  readonly reserved?: readonly ReservedSection[]
  /** The name of this server among those that share a store. Default: generated. */
  readonly serverId?: string
  /** The name of the node. Default: that of the server. */
  readonly nodeId?: string
  /** The name of the cluster. Default: that of the server. */
  readonly clusterId?: string
  /** The name of this process. Default: that of the server and `.0`. */
  readonly worker?: string
  /** What the server does, for plugins that belong to a role. Default: everything. */
  readonly roles?: readonly string[]
  /** Start time of the server in Unix milliseconds, when it is older than this host. Default: now. */
  readonly startedAt?: number
  /** Other processes of this server already run with this configuration. Plugins learn it in their `check`. */
  readonly running?: boolean
  /** The version that `/health` reports. */
  readonly version?: string
  /** Ends a start that has not ended: what is set up is undone. It does not close a host that has started. */
  readonly signal?: AbortSignal
  readonly boundary?: PluginBoundary
  /** Creates the plugin that runs a package in its own process, for entries with `isolation: 'process'`. */
  readonly isolate?: Isolate
  /**
   * Called before modules are loaded. The returned function is called after loading and before setup, and reports files that
   * have changed meanwhile.
   */
  readonly watchFiles?: () => Promise<() => readonly SvcError[]>
  /**
   * Describes how to start without a plugin, when that is not by removing it from `plugins`: `start without it: svc plugins
   * disable weather`.
   */
  readonly without?: (plugin: string) => string | undefined
}

/** The result of planning a host, before any setup. */
export interface Plan {
  readonly config: Config
  readonly kernel: KernelConfig
  /**
   * All plugins that were found, in the order of the list. Each is imported, unless its manifest shows that there is nothing to
   * do for it.
   */
  readonly loaded: readonly Loaded[]
  /** In start order. */
  readonly plannedPlugins: readonly (PlannedPlugin & { readonly found: LocatedPlugin })[]
  readonly failed: readonly PluginReport[]
  readonly problems: readonly SvcError[]
  /** Problems that do not prevent the start. */
  readonly notes: readonly SvcError[]
}

/** A plugin that was found but not set up. */
interface Loaded {
  readonly name: string
  readonly found: LocatedPlugin
  readonly plugin: Plugin
}

/** Reads manifests, imports plugins, validates configuration and sorts, but sets nothing up. It collects all problems. */
export async function planHost(options: HostOptions): Promise<Plan> {
  const config = takeConfig(options.config)
  const changedFiles = await options.watchFiles?.()
  const { loaded, lost, failed, problems } = await loadAll(options, config)
  const cut = splitSections(config, loaded, options.reserved)
  const sections = { ...cut, plannedPlugins: await checkAll(cut, { running: options.running === true }) }
  const commands = [...(await brokenCommands(loaded, options)), ...sectionsTaken(loaded)]
  const strange = [...cut.unowned, ...(await unknownSlots(loaded, options))]
  const gone = [...lost, ...failed.map(item => item.name)]
  const unowned = gone.length === 0 ? strange : strange.map(unknownSlot => withLostHint(unknownSlot, gone))
  // An optional plugin that failed to load could own any key, so the host starts in spite of unknown keys.
  const isProblem = failed.length === 0 || lost.length > 0
  const { dropped, kept } = dropOptional(loaded, [
    ...sections.plannedPlugins.flatMap(plannedPlugin => plannedPlugin.problems),
    ...commands,
  ])
  const references = referencesOf(sections.plannedPlugins, kept)
  const { order, out, problems: orderProblems } = orderRest(kept, references.after)
  const plannedPlugins = inOrder(order, sections)
  return {
    config,
    kernel: sections.kernel,
    loaded,
    plannedPlugins,
    failed: [...failed, ...dropped, ...out],
    problems: [
      ...config.problems,
      ...problems,
      ...(changedFiles?.() ?? []),
      ...sections.problems,
      ...(isProblem ? unowned : []),
      ...commands.filter(problem => kept.some(item => item.name === problem.plugin)),
      ...plannedPlugins.flatMap(plannedPlugin => plannedPlugin.problems),
      ...references.problems,
      ...orderProblems,
    ],
    notes: [...(config.notes ?? []), ...(isProblem ? [] : unowned)],
  }
}

/** Checks a configuration as `planHost` does, the `check` of each plugin included, for plugins that are already loaded. */
export async function checkLoaded(
  config: Config,
  loaded: readonly { readonly name: string; readonly plugin: Plugin }[],
  reserved?: readonly ReservedSection[]
): Promise<{ readonly plannedPlugins: readonly PlannedPlugin[]; readonly problems: readonly SvcError[] }> {
  const cut = splitSections(config, loaded, reserved)
  const plannedPlugins = await checkAll(cut, { running: false })
  const problems = [...config.problems, ...cut.problems, ...cut.unowned, ...plannedPlugins.flatMap(planned => planned.problems)]
  return { plannedPlugins, problems }
}

/** Runs the `check` of each plugin. */
const checkAll = ({ plannedPlugins, kernel }: Sections, context: CheckContext): Promise<PlannedPlugin[]> =>
  Promise.all(
    plannedPlugins.map(async plannedPlugin => ({
      ...plannedPlugin,
      problems: [...plannedPlugin.problems, ...(await checkOne(plannedPlugin, kernel, context))],
    }))
  )

async function checkOne(
  { name, plugin, config, instance, problems, references }: PlannedPlugin,
  kernel: KernelConfig,
  context: CheckContext
): Promise<SvcError[]> {
  // The final configuration does not exist yet: the check runs before the setup of the plugin.
  if (plugin.check === undefined || problems.length > 0 || references.length > 0) return []
  return runCheck({ name, plugin, config, instance }, kernel, context)
}

/** Runs the `check` of a plugin with its final configuration. */
export async function runCheck(
  { name, plugin, config, instance }: Pick<PlannedPlugin, 'name' | 'plugin' | 'config' | 'instance'>,
  kernel: KernelConfig,
  context: CheckContext
): Promise<SvcError[]> {
  try {
    const found = await withTimeout(kernel.host.setup_timeout_ms, async () => plugin.check?.(config, instance, context))
    return (found ?? []).map(problem => Object.assign(problem, { plugin: name }))
  } catch (error) {
    return [checkFailed(name, error)]
  }
}

/**
 * The plugins with references in their configuration, each with the plugin that has to start before it because it resolves them.
 */
function referencesOf(
  plannedPlugins: readonly PlannedPlugin[],
  kept: readonly Loaded[]
): { readonly after: ReadonlyMap<string, string>; readonly problems: SvcError[] } {
  const users = plannedPlugins.filter(({ name, references }) => references.length > 0 && kept.some(item => item.name === name))
  const resolver = kept.find(item => item.plugin.provides?.resolves !== undefined)
  if (users.length === 0) return { after: new Map(), problems: [] }
  const early = resolver ? neededBy(resolver, kept) : new Set<string>()
  const problemOf = resolver ? referenceTooEarly : referenceUnprovided
  const isWrong = ({ name }: PlannedPlugin) => resolver === undefined || early.has(name)
  return {
    after: new Map(users.filter(user => !isWrong(user)).map(user => [user.name, resolver!.name])),
    problems: users
      .filter(isWrong)
      .flatMap(({ name, references }) => references.map(({ path, where }) => problemOf(name, path, where))),
  }
}

/** A plugin and all plugins whose services it uses, directly or not. */
function neededBy(plugin: Loaded, plugins: readonly Loaded[]): ReadonlySet<string> {
  const found = new Set([plugin])
  // The loop also visits the items that are added to the set meanwhile.
  for (const { plugin: item } of found)
    for (const token of servicesOf({ ...item.requires, ...item.optional }))
      for (const other of plugins) if (other.plugin.provides?.name === token.name) found.add(other)
  return new Set([...found].map(({ name }) => name))
}

/**
 * Sorts the plugins. An optional plugin that cannot be sorted (a service is missing, taken or in a cycle) is left out, and with
 * it the plugins that need it.
 */
function orderRest(
  kept: readonly Loaded[],
  after: ReadonlyMap<string, string>,
  out: readonly PluginReport[] = []
): Order<Loaded> & { readonly out: readonly PluginReport[] } {
  const { order, problems } = orderPlugins(kept, [Host, Events, LogLines, PackageFiles], after)
  const found = new Map(problems.map(problem => [problem.plugin, problem]))
  const dropped = kept.find(loaded => loaded.found.optional && found.has(loaded.name))
  if (!dropped) return { order, problems, out }
  const rest = kept.filter(loaded => loaded !== dropped)
  return orderRest(rest, after, [...out, failedReport(dropped.found, found.get(dropped.name)!)])
}

/**
 * Sorts instances in the order of the configuration, so that "the first configured" means what a person wrote. Instances that
 * need no service come first, the others last. They provide no service, so no plugin waits for them.
 */
function inOrder(order: readonly Loaded[], { plannedPlugins }: Sections): Plan['plannedPlugins'] {
  const planned = order.flatMap(loaded =>
    plannedPlugins
      .filter(plannedPlugin => plannedPlugin.name === loaded.name)
      .map(plannedPlugin => ({ ...plannedPlugin, found: loaded.found }))
  )
  const single = planned.filter(plannedPlugin => plannedPlugin.instance === undefined)
  const many = planned.filter(plannedPlugin => plannedPlugin.instance !== undefined).sort((a, b) => a.place - b.place)
  return [...many.filter(plannedPlugin => !needsService(plannedPlugin)), ...single, ...many.filter(needsService)]
}

const needsService = ({ plugin, references }: PlannedPlugin) =>
  references.length > 0 || Object.values({ ...plugin.requires, ...plugin.optional }).some(token => token.what === 'service')

/** Leaves out optional plugins whose configuration or commands are invalid. */
function dropOptional(loaded: readonly Loaded[], problems: readonly SvcError[]) {
  const found = new Map(problems.map(problem => [problem.plugin, problem]))
  const out = loaded.filter(item => item.found.optional && found.has(item.name))
  return {
    dropped: out.map(item => failedReport(item.found, found.get(item.name)!)),
    kept: loaded.filter(item => !out.includes(item)),
  }
}

function takeConfig(given: HostOptions['config']): Config {
  return given && typeof given.where === 'function' ? (given as Config) : configOf((given as ConfigTree | undefined) ?? {})
}

interface Outcome {
  readonly loaded?: Loaded
  readonly failed?: PluginReport
  readonly problem?: SvcError
}

const UNREAD = new Set(['CONFIG_UNREADABLE', 'CONFIG_AMBIGUOUS'])

async function loadAll(options: HostOptions, config: Config) {
  const entries = options.plugins
    ? options.plugins.map(ref => entryOf(ref)).filter(entry => entry.enabled !== false)
    : config.plugins
  const from = options.from ?? [pathToFileURL(`${process.cwd()}/`).href]
  const outcomes = await Promise.all(entries.map(entry => loadOne(entry, from, config, options.isolate)))
  const all = outcomes.flatMap(outcome => outcome.loaded ?? [])
  const loaded = all.filter((item, at) => all.findIndex(other => other.name === item.name) === at)
  const missing = outcomes.flatMap(outcome => outcome.problem?.plugin ?? [])
  const twice = all.filter(item => !loaded.includes(item)).map(item => pluginTwice(item.name))
  return {
    loaded,
    /** Configuration and plugins that could not be read and could own any key. */
    lost: [...config.problems.flatMap(problem => (UNREAD.has(problem.code) ? (problem.where ?? []) : [])), ...missing],
    failed: outcomes.flatMap(outcome => outcome.failed ?? []),
    problems: [...outcomes.flatMap(outcome => outcome.problem ?? []), ...twice],
  }
}

async function loadOne(entry: PluginEntry, from: readonly string[], config: Config, isolate?: Isolate): Promise<Outcome> {
  let found: LocatedPlugin | undefined
  try {
    found = await findPlugin(entry, from, isolate)
    return { loaded: { name: found.name, found, plugin: await pluginOf(found, config) } }
  } catch (error) {
    const name = found?.name ?? shortName(entry)
    const problem = asSvcError(error, 'PLUGIN_IMPORT_FAILED', { plugin: name })
    return entry.optional ? { failed: failedReport(found ?? { name, version: '' }, problem) } : { problem }
  }
}

/** A plugin without a configured instance is not imported: its manifest is enough for the plan. */
async function pluginOf(found: LocatedPlugin, config: Config): Promise<Plugin> {
  const { instances } = found.manifest
  if (instances === undefined) return found.load()
  const { section, type } = instances
  if (entriesOf(config, section, type).length === 0) return definePlugin({ instances: section, type, setup() {} })
  const plugin = await found.load()
  if (plugin.instances !== section || plugin.type !== type) {
    const what = `its manifest declares instances of ${section}, type ${type}, but its code ${plugin.instances}, type ${plugin.type}`
    throw manifestInvalid(found.name, what, 'package.json', 'Make both agree')
  }
  return plugin
}

/** A public name for a plugin that was not found: the end of its path, never the whole. */
const shortName = (entry: PluginEntry) => nameOf(entry).replace(/^(file:|\.{0,2}[\\/]|[A-Za-z]:).*?([^\\/]+)[\\/]*$/, '$2')
