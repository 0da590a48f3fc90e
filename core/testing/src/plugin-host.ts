import type { ConfigTree, Plugin, RunningHost, SlotToken } from '@svc/core'
import { testHost } from './host.ts'
import { madeUp, randomOf } from './made-up.ts'
import type { PluginPackage } from './plugin-package.ts'
import type { PluginKitOptions } from './plugin-samples.ts'
import { watchReach } from './reach.ts'

/** A host that runs the plugin, and what that one reaches outside meanwhile. */
export interface PluginHost {
  readonly host: RunningHost
  readonly config: ConfigTree
  /** Variables and hosts that it asked for and does not declare. */
  undeclared(): readonly string[]
  close(): Promise<void>
}

/** What an entry of its instances is called. */
export const ENTRY = 'sample'

const SETUP_MS = 5_000
const SILENT = { destination: { write() {} } }

/** Starts a strict host with the plugin and what it needs. `more` are plugins after it. */
export async function openPlugin(
  { info, ref, plugin }: PluginPackage,
  options: PluginKitOptions,
  { more = [], strict = true }: { readonly more?: NonNullable<PluginKitOptions['beside']>; readonly strict?: boolean } = {}
): Promise<PluginHost> {
  const { beside = [], give = [], env = {} } = options
  const environment = setVariables(env)
  const reach = watchReach(info, JSON.stringify([options.config, env]))
  const config = { host: { setup_timeout_ms: SETUP_MS }, ...configFor(plugin, options) }
  try {
    const host = await testHost([...beside, ref, ...more], {
      config,
      give,
      strict,
      log: SILENT,
      from: [new URL('package.json', folderUrl(info.folder)).href],
    })
    const close = async () => {
      await host.close().finally(() => {
        reach[Symbol.dispose]()
        environment[Symbol.dispose]()
      })
    }
    return { host, config, undeclared: () => reach.found(), close }
  } catch (error) {
    reach[Symbol.dispose]()
    environment[Symbol.dispose]()
    throw error
  }
}

/** One thing that a plugin adds, in a host of its own for each case. */
export interface Thing<T> {
  readonly name: string
  /** As it was in a host that has ended: its data, nothing to call. */
  readonly seen: T
  readonly options: PluginKitOptions
  readonly permissions: NonNullable<PluginPackage['info']['manifest']['permissions']>
  open(): Promise<{ readonly item: T; close(): Promise<void> }>
}

/** Opens nothing yet: each `open` starts a host, and what the plugin reaches for there is noted in `reached`. */
export function thingOf<T>(
  found: PluginPackage,
  options: PluginKitOptions,
  slot: SlotToken<T>,
  name: string,
  seen: T,
  reached: Set<string>
): Thing<T> {
  return {
    name,
    seen,
    options,
    permissions: found.info.manifest.permissions ?? {},
    async open() {
      const { host, close, undeclared } = await openPlugin(found, options)
      const end = async () => {
        for (const one of undeclared()) reached.add(one)
        await close()
      }
      return { item: itemOf(host, slot, name), close: end }
    },
  }
}

function itemOf<T>(host: RunningHost, slot: SlotToken<T>, name: string): T {
  const item = host.slot(slot).get(name)
  if (item === undefined) throw new Error(`${slot.name} has no "${name}" any more`)
  return item
}

const folderUrl = (folder: string) =>
  new URL(`file://${folder.replaceAll('%', '%25').replaceAll('#', '%23').replaceAll('?', '%3f')}/`)

/** What its author says, else as little as its schema takes. */
function configFor(plugin: Plugin | undefined, { config }: PluginKitOptions): ConfigTree {
  if (config || !plugin) return config ?? {}
  const [section, entry] =
    plugin.instances === undefined ? [plugin.section, {}] : [`${plugin.instances}.${ENTRY}`, { type: plugin.type }]
  const needed = neededOf(plugin)
  if (section === undefined || (needed === undefined && plugin.instances === undefined)) return {}
  return section
    .split('.')
    .reduceRight<unknown>((inner, key) => ({ [key]: inner }), { ...entry, ...Object(needed) }) as ConfigTree
}

/** Values for what its schema requires and has no default for. */
function neededOf({ config }: Plugin): unknown {
  const json = config?.json
  const { required = [], properties = {} } = Object(json) as { required?: string[]; properties?: object }
  if (required.length === 0) return undefined
  const only = Object.fromEntries(Object.entries(properties).filter(([key]) => required.includes(key)))
  return madeUp({ type: 'object', required, properties: only }, randomOf(1))
}

/** Sets variables of the environment until it is disposed of. */
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
