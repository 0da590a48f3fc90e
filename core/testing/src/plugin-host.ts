import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { type ConfigTree, get, isTree, type Plugin, type RunningHost, type SlotToken, StartFailed, svcError } from '@svc/core'
import {
  allSettings,
  configuredServers,
  filledIn,
  handlesText,
  matchesHost,
  type OpenHandle,
  type OwnConfig,
} from '@svc/runtime/isolation'
import { openTestHost } from './host.ts'
import { generate, randomOf } from './made-up.ts'
import type { KitSubject } from './kit-case.ts'
import { createLogReader } from './plugin-log.ts'
import type { KitRun, PluginKitOptions, PluginPackage } from './plugin-package.ts'
import { watchReach } from './reach.ts'

/** A host with the plugin, and what the plugin does meanwhile. */
export interface PluginHost {
  readonly host: RunningHost
  readonly config: ConfigTree
  /** What would fail or be refused when it is installed, each once, as a sentence. Complete after `close`. */
  problems(): readonly string[]
  /** What its author should know. */
  warnings(): readonly string[]
  /** Its open handles. */
  handles(): Promise<readonly OpenHandle[]>
  /** Throws LEFTOVERS when it left something open. */
  close(): Promise<void>
}

/** The name of a generated instance. */
export const ENTRY = 'sample'

const GONE_MS = 500
const SETUP_MS = 5_000
/** A process takes its time to start on a busy machine. */
const PROCESS_SETUP_MS = 20_000

interface OpenOptions {
  /** Plugins after it. */
  readonly more?: NonNullable<PluginKitOptions['beside']>
  readonly strict?: boolean
  /** The run that several hosts share. Default: a new one. */
  readonly run?: KitRun
}

/** Starts a strict host with the plugin and its needs. */
export async function openPlugin(
  found: PluginPackage,
  options: PluginKitOptions,
  { more = [], strict = true, run }: OpenOptions = {}
): Promise<PluginHost> {
  const { info, plugin, isolation } = found
  const { beside = [], give = [], env = {}, sandbox = [] } = options
  await using stack = new AsyncDisposableStack()
  const at = run ?? stack.use(await openRun())
  stack.use(useHome(join(at.folder, 'home')))
  stack.use(setVariables(env))
  const isApart = isolation === 'process'
  const own = typeof options.config === 'function' ? await options.config(at) : options.config
  const config = { host: { setup_timeout_ms: isApart ? PROCESS_SETUP_MS : SETUP_MS }, ...configFor(plugin, own) }
  const given = JSON.stringify([config, env])
  const reach = isApart ? undefined : stack.use(watchReach(info, given))
  const mine = ownConfigs(plugin, config)
  const log = createLogReader(info.name, mine)
  const [late, left, opened] = [new Set<string>(), [] as OpenHandle[], [] as (() => Promise<readonly OpenHandle[]>)[]]
  const watch = {
    started: (open: (typeof opened)[number]) => void opened.push(open),
    left: (all: readonly OpenHandle[]) => void left.push(...all),
  }
  const ref = await found.refFor({ servers: serversIn(given), watch })
  const { host, handles } = await openTestHost(
    [...(isApart ? sandbox : []), ...beside, ref, ...more],
    {
      config,
      give,
      strict,
      log: { level: 'debug', destination: log },
      from: [pathToFileURL(join(info.folder, 'package.json')).href],
    },
    (by, place) =>
      by === info.name &&
      late.add(`it calls ${place} with the context of a call that has ended: pass on a context only while its call runs`)
  ).catch((error: unknown) => {
    throw withKitHints(error)
  })
  const held = stack.move()
  const close = async () => {
    // A process that is about to end takes a moment to be gone, and the host to log it.
    await Promise.all(opened.map(open => open().catch(() => sleep(GONE_MS))))
    await host.close().finally(() => held[Symbol.asyncDispose]())
    if (left.length > 0) throw leftOpen(info.name, left)
  }
  return {
    host,
    config,
    problems: () => [...(reach?.found() ?? []), ...log.problems(), ...late],
    warnings: () => [
      ...undeclaredSettings(found),
      ...undeclaredServers(found, config, mine),
      ...(reach?.warnings() ?? []),
      ...log.warnings(),
    ],
    handles: async () => [...handles(info.name), ...(await Promise.all(opened.map(open => open().catch(() => [])))).flat()],
    close,
  }
}

/** A host of the kit has only the plugins that its caller names. */
function withKitHints(error: unknown): unknown {
  for (const problem of error instanceof StartFailed ? error.problems : [])
    if (problem.code === 'SERVICE_MISSING') Object.assign(problem, { hint: besideHint(String(problem.details.service)) })
  return error
}

const besideHint = (service: string) =>
  `Name a plugin that provides "${service}" in "beside" of the options of pluginKit${service === 'store' ? ` (beside: ['@svc/plugin-store-memory'])` : ''}, with that package in "devDependencies", or provide the service in "give". \`svc plugins test\` adds the built-in plugins by itself`

const leftOpen = (plugin: string, left: readonly OpenHandle[]) =>
  svcError('LEFTOVERS', `${plugin} left open: ${handlesText(left)}`, {
    plugin,
    hint: 'Give what a plugin opens to its scope: scope.use(server), scope.defer(() => clearInterval(timer)), or end it when scope.signal aborts',
  })

let runs = 0

/** A run with an empty folder, which is removed at its end. */
export async function openRun(): Promise<KitRun & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-kit-'))
  const close = () => rm(folder, { recursive: true, force: true })
  return { id: `kit${process.pid}_${++runs}`, folder, [Symbol.asyncDispose]: close }
}

/** Servers on loopback that the configuration or a variable names: they belong to the test. */
const serversIn = (given: string): string[] => [...new Set(given.match(/(127\.0\.0\.1|localhost|\[::1\]):\d+/g) ?? [])]

/** One contribution of a plugin, with its own host for each case. */
export interface ItemUnderTest<T> {
  readonly name: string
  /** The data of the item from a closed host. Its methods must not be called. */
  readonly seen: T
  readonly options: PluginKitOptions
  readonly permissions: NonNullable<PluginPackage['info']['manifest']['permissions']>
  open(): Promise<{ readonly item: T; close(): Promise<void> } & Pick<KitSubject, 'handles' | 'pools'>>
}

/** Opens nothing yet: each `open` starts a host, and `close` puts what the plugin did into `seenIn`. */
export function itemUnderTest<T>(
  found: PluginPackage,
  options: PluginKitOptions,
  slot: SlotToken<T>,
  name: string,
  seen: T,
  seenIn: Observed
): ItemUnderTest<T> {
  return {
    name,
    seen,
    options,
    permissions: found.info.manifest.permissions ?? {},
    async open() {
      const { host, close, problems, warnings, handles } = await openPlugin(found, options)
      const end = async () => {
        await close().finally(() => {
          for (const text of problems()) seenIn.problems.add(text)
          for (const text of warnings()) seenIn.warnings.add(text)
        })
      }
      return { item: itemOf(host, slot, name), handles, pools: options.pools ?? [], close: end }
    },
  }
}

/** What a plugin did in one case. */
export interface Observed {
  readonly problems: Set<string>
  readonly warnings: Set<string>
}

function itemOf<T>(host: RunningHost, slot: SlotToken<T>, name: string): T {
  const item = host.slot(slot).get(name)
  if (item === undefined) throw new Error(`${slot.name} has no "${name}" any more`)
  return item
}

/** The parts of a configuration that belong to the plugin. */
function ownConfigs(plugin: Plugin | undefined, config: ConfigTree): OwnConfig[] {
  const { section, instances, type } = plugin ?? {}
  if (instances === undefined) return section === undefined ? [] : [{ section, value: get(config, section.split('.')) }]
  const entries = Object.entries(Object(get(config, instances.split('.'))) as ConfigTree)
  return entries.flatMap(([name, value]) => (isTree(value) && (value.type ?? name) === type ? [{ instances, value }] : []))
}

/** Required settings that the manifest does not list: svc would find that they are missing only after the installation. */
function undeclaredSettings({ info: { manifest }, plugin }: PluginPackage): string[] {
  const { section, instances, config } = plugin ?? {}
  if (section === undefined || instances !== undefined || manifest.runtime !== undefined) return []
  const { required = [] } = Object(config?.json) as { required?: readonly string[] }
  const missing = required.map(key => `${section}.${key}`).filter(setting => manifest.settings?.includes(setting) !== true)
  if (missing.length === 0) return []
  const all = JSON.stringify([...(manifest.settings ?? []), ...missing])
  return [
    `its configuration requires ${missing.join(', ')}: add "settings": ${all} to its manifest, so that svc checks that before it installs the plugin`,
  ]
}

/** Servers in its configuration that the plugin could not reach after its installation. The kit opens those on loopback for the test. */
function undeclaredServers({ info: { manifest } }: PluginPackage, config: ConfigTree, mine: readonly OwnConfig[]): string[] {
  const declared = filledIn('network', manifest.permissions?.network ?? [], allSettings(config, manifest.instances?.type))
  const servers = mine.flatMap(configuredServers).filter(({ host }) => !matchesHost(declared, host))
  return servers.map(
    ({ host, setting }) =>
      `its configuration names the server ${host}, which the installed plugin cannot reach: add it to "permissions": { "network": ["<${setting}>"] }`
  )
}

/** The configuration of its author, else a minimal one. */
function configFor(plugin: Plugin | undefined, config: ConfigTree | undefined): ConfigTree {
  if (config || !plugin) return config ?? {}
  const [section, entry] =
    plugin.instances === undefined ? [plugin.section, {}] : [`${plugin.instances}.${ENTRY}`, { type: plugin.type }]
  const needed = neededOf(plugin)
  if (section === undefined || (needed === undefined && plugin.instances === undefined)) return {}
  return section
    .split('.')
    .reduceRight<unknown>((inner, key) => ({ [key]: inner }), { ...entry, ...Object(needed) }) as ConfigTree
}

/** Generates values that the schema requires and has no default for. */
function neededOf({ config }: Plugin): unknown {
  const json = config?.json
  const { required = [], properties = {} } = Object(json) as { required?: string[]; properties?: object }
  if (required.length === 0) return undefined
  const only = Object.fromEntries(Object.entries(properties).filter(([key]) => required.includes(key)))
  return generate({ type: 'object', required, properties: only }, randomOf(1))
}

const homes: string[] = []
let ownHome: string | undefined

/** Sets the svc home until it is disposed: built-in plugins in `beside` must not open the data of the user. Runs can overlap. */
function useHome(home: string): Disposable {
  if (homes.length === 0) ownHome = process.env.SVC_HOME
  process.env.SVC_HOME = home
  homes.push(home)
  return {
    [Symbol.dispose]() {
      homes.splice(homes.indexOf(home), 1)
      const current = homes.at(-1) ?? ownHome
      if (current === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = current
    },
  }
}

/** Sets environment variables until it is disposed. */
function setVariables(env: Readonly<Record<string, string>>): Disposable {
  const before = Object.keys(env).map(name => [name, process.env[name]] as const)
  Object.assign(process.env, env)
  return {
    [Symbol.dispose]() {
      for (const [name, value] of before)
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
    },
  }
}
