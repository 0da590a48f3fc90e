import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  type Manifest,
  type PackageInfo,
  type Plugin,
  type PluginRef,
  readManifest,
  startHost,
  svcError,
  type ConfigTree,
} from '@svc/core'
import { Isolation, type Json, type RouteRequest } from '@svc/core/contracts'
import { importModule, importPlugin, type PluginOrigin, urlFrom } from '@svc/core/internal'
import { describeIsolated, isolate, type HandleListener } from '@svc/runtime/isolation'
import { TOKENS } from './isolated.ts'
import type { AuthSubject } from './auth-kit.ts'
import type { Fixture } from './host.ts'
import type { NodeSamples } from './node-kit.ts'
import type { ProviderKitOptions, ProviderRequests, ProviderSubject } from './provider-subject.ts'
import type { ToolSamples } from './tool-kit.ts'

/** How one host runs a plugin. */
interface PluginRun {
  /** Servers of the test: an isolated plugin may reach them, whatever its manifest says. */
  readonly servers: readonly string[]
  readonly watch: HandleListener
}

/** The folder of a plugin: its source if `exports` has one for development, else its build. */
export interface PluginPackage {
  readonly info: PackageInfo
  /** Whether its code runs in this process or in a confined one. */
  readonly isolation: 'in-process' | 'process'
  /** Absent for code that is never imported. */
  readonly plugin: Plugin | undefined
  /** The reference for one host. */
  refFor(run: PluginRun): Promise<PluginRef>
  /** Imports a module of `exports`. */
  importModule(module: string): Promise<{ readonly COMMANDS?: unknown }>
}

interface PackageJson {
  readonly exports?: unknown
}

/** Why a plugin can only run in the process of the host. Undefined if it can be isolated. */
export function onlyInProcess({ kind, runtime, contributes = {} }: Manifest): string | undefined {
  if (runtime !== undefined) return `its code runs in "${runtime}"`
  if (kind === 'store') return 'it is a store'
  return Object.hasOwn(contributes, 'mounts') ? 'it adds mounts' : undefined
}

/**
 * Reads a folder and imports its module, in a process of its own if `policy` names the plugins that isolate others. Throws
 * MANIFEST_INVALID, MANIFEST_NEWER, PLUGIN_IMPORT_FAILED.
 */
export async function openPackage(place: URL | string, policy: readonly PluginRef[] = []): Promise<PluginPackage> {
  const folder = place instanceof URL || place.startsWith('file:') ? fileURLToPath(place) : place
  const file = join(folder, 'package.json')
  if (!existsSync(file))
    throw svcError('PLUGIN_UNKNOWN', `there is no package.json in ${basename(folder)}`, { hint: 'Name the folder of a plugin' })
  const info = await readManifest(file)
  const sources = sourcesOf(folder, JSON.parse(readFileSync(file, 'utf8')) as PackageJson)
  const origin = (module: string) => originOf(info, sources, module)
  const load = async (module: string) =>
    (await importModule(info.name, folder, origin(module))) as { readonly COMMANDS?: unknown }
  const found = { info, importModule: load }
  if (info.manifest.runtime !== undefined)
    return { ...found, isolation: 'in-process', refFor: async () => pathToFileURL(folder), plugin: undefined }
  if (policy.length > 0 && onlyInProcess(info.manifest) === undefined)
    return { ...found, ...(await apart(info, origin('.'), policy)) }
  const plugin = await importPlugin(info.name, folder, origin('.'))
  const ref = { name: info.name, manifest: info.manifest, use: plugin }
  return { ...found, isolation: 'in-process', refFor: async () => ref, plugin }
}

/** Reads the declarations of the plugin in the sandbox. Each host then has its own process of it. */
async function apart(
  { name, folder, manifest }: PackageInfo,
  origin: PluginOrigin,
  policy: readonly PluginRef[]
): Promise<Pick<PluginPackage, 'isolation' | 'plugin' | 'refFor'>> {
  const module = origin.module ?? (await urlFrom(origin.name, origin.place))
  const permissions = manifest.permissions ?? {}
  const confined = (network: readonly string[]) => ({
    name,
    module,
    confinement: { folder, permissions: { ...permissions, network: [...(permissions.network ?? []), ...network] } },
  })
  await using host = await startHost({ plugins: policy, config: {} })
  const declares = await describeIsolated(confined([]), host.service(Isolation))
  const plugin = await isolate(confined([]), { contracts: TOKENS }, declares)
  return {
    isolation: 'process',
    plugin,
    async refFor({ servers, watch }) {
      return { name, manifest, use: await isolate(confined(servers), { contracts: TOKENS, watch }, declares) }
    },
  }
}

/** Maps keys of `exports` to the existing file of the condition `development`. */
function sourcesOf(folder: string, { exports }: PackageJson): ReadonlyMap<string, string> {
  const named = Object.entries((typeof exports === 'object' ? exports : null) ?? {}).map(
    ([key, one]) => [key, (one as { development?: unknown } | null)?.development] as const
  )
  const files = named.flatMap(([key, file]) => (typeof file === 'string' ? [[key, join(folder, file)] as const] : []))
  return new Map(files.filter(([, file]) => existsSync(file)))
}

/** Locates a module of the package. Without a known file, `import` resolves the plugin by name. */
function originOf({ name, folder, main }: PackageInfo, sources: ReadonlyMap<string, string>, module: string): PluginOrigin {
  const file = sources.get(module) ?? (module === '.' ? main && join(folder, main) : fileOf(name, folder, module))
  const place = pathToFileURL(join(folder, 'package.json')).href
  return { name, place, ...(file ? { module: pathToFileURL(file).href } : {}) }
}

const fileOf = (name: string, folder: string, module: string) =>
  existsSync(join(folder, module))
    ? join(folder, module)
    : createRequire(join(folder, 'package.json')).resolve(join(name, module))

/** Samples that show a plugin at work. All are optional: the kit generates data where it can, and reports what it skipped. */
export interface PluginSamples {
  /** The configuration, or a function that returns the one of each case. Default: a minimal one by its schema. */
  readonly config?: ConfigTree | ((run: KitRun) => ConfigTree | Promise<ConfigTree>)
  /** Environment variables that it needs. */
  readonly env?: Readonly<Record<string, string>>
  /** Plugins that it needs. */
  readonly beside?: readonly PluginRef[]
  /** Services and items that it needs, provided by the test. */
  readonly give?: readonly Fixture[]
  /**
   * Samples by tool name, for the whole toolKit. `madeUp`: the tool can be called with generated arguments although it writes,
   * executes or uses the network.
   */
  readonly tools?: Readonly<Record<string, ToolSamples & { readonly madeUp?: boolean }>>
  /** Samples of its providers, for the whole providerKit. `connections`: those of the fake upstream that `config` points to. */
  readonly provider?: ProviderRequests & ProviderKitOptions & Pick<ProviderSubject, 'connections'>
  /** Samples by node name, for the whole nodeKit. */
  readonly nodes?: Readonly<Record<string, NodeSamples>>
  /** Samples by scheme name, for the whole authKit. */
  readonly auth?: Readonly<Record<string, Pick<AuthSubject, 'good' | 'bad' | 'passesOn'>>>
  /** Requests by route name. */
  readonly routes?: Readonly<Record<string, readonly RouteSample[]>>
  /**
   * Packages that keep connections open, such as `pg-pool`. The kit accepts open handles that do not grow with the calls; it
   * does not count those of these packages at all until the plugin ends.
   */
  readonly pools?: readonly string[]
  /** For a store whose data lasts: a host that starts again with the same configuration has it. */
  readonly lasts?: boolean
}

/** One case of a kit. A store case that opens the same data again has the same run. */
export interface KitRun {
  /** Differs for each case: for the name of a schema or a prefix of keys. */
  readonly id: string
  /** An empty folder, which the kit removes after the case. */
  readonly folder: string
}

/** A request to a route. */
export interface RouteSample extends Partial<RouteRequest> {
  expect?(answer: Json | string): void
}

export interface PluginKitOptions extends PluginSamples {
  /**
   * The plugins that isolate others (`@svc/plugin-sandbox-process`, `@svc/plugin-isolation`): the kit runs the plugin in a process
   * of its own, confined to its manifest. Default: none; it runs in this process.
   */
  readonly sandbox?: readonly PluginRef[]
  /** Seed of generated data. Default 1. */
  readonly seed?: number
  /** Number of generated calls per contribution. Default 50. */
  readonly rounds?: number
}
