import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import type { PluginCandidate, PermissionChange } from './change-types.ts'
import { dependencyStray, formerChanged, nameDiffers, notAPlugin, notBuilt } from './errors.ts'
import { dependenciesOf, type NpmLock } from './lock-graph.ts'
import type { IsolationMode, Lock, LockedPlugin, Origin, Permissions } from './lock.ts'
import { type NpmRun, runNpm } from './npm.ts'
import { type InstalledPackage, readPluginPackage } from './package-json.ts'
import { labelOf, partsOf } from './spec.ts'
import { readTarball } from './tarball.ts'

/** A fetched and inspected plugin; nothing of it is unpacked. */
export interface Fetched extends InstalledPackage {
  readonly origin: Origin
  readonly scripts: boolean
  /** Undefined for a link. */
  readonly tarball?: string
  /** Its own files: path → SHA-256. Undefined for a link. */
  readonly contents?: ReadonlyMap<string, string>
  readonly integrity: string
  readonly bytes: number
  readonly registry?: NonNullable<PluginCandidate['registry']>
}

export interface RequestedPlugin {
  readonly origin: Origin
  readonly scripts: boolean
  /** Its tarball on this machine, and the hash that it must have. Nothing else is fetched. */
  readonly kept?: { readonly name: string; readonly file: string; readonly integrity: string }
}

export interface FetchPlace {
  /** A separate folder for each plugin. */
  readonly work: string
  readonly npm: Omit<NpmRun, 'cwd'>
  readonly notify: (step: 'fetch' | 'inspect', plugin: string) => void
}

export async function fetchPlugin(
  { origin, scripts, kept }: RequestedPlugin,
  { work, npm, notify }: FetchPlace
): Promise<Fetched> {
  const label = labelOf(origin)
  await mkdir(work, { recursive: true })
  notify('fetch', label)
  if (origin.kind === 'link') {
    const linked = await packageIn(origin.spec, label, work)
    checkEntry(linked, origin, path => existsSync(join(origin.spec, path)))
    return { ...linked, installScripts: [], origin, scripts: false, integrity: '', bytes: 0 }
  }
  const fetched = kept ? FETCH.tarball({ spec: kept.file }, work) : FETCH[origin.kind](origin, work, { ...npm, plugin: label })
  const tarball = await fetched
  notify('inspect', label)
  const { packageJson, contents, integrity, bytes } = await readTarball(tarball, label, npm.signal)
  if (kept && kept.integrity !== integrity) throw formerChanged(kept.name)
  const plugin = await readPluginPackage(packageJson, label, work, contents.has('binding.gyp'))
  // npm would fetch it before the user has consented
  if (plugin.stray[0] !== undefined) throw dependencyStray(plugin.name, plugin.stray[0])
  checkEntry(plugin, origin, path => contents.has(path))
  if (origin.kind !== 'registry' || kept) return { ...plugin, origin, scripts, tarball, contents, integrity, bytes }
  const [asked] = partsOf(origin.spec)
  if (asked !== plugin.name) throw nameDiffers(asked, plugin.name)
  const registry = await toldBy(plugin, { ...npm, cwd: work })
  return { ...plugin, origin, scripts, tarball, contents, integrity, bytes, ...(registry ? { registry } : {}) }
}

/** Throws PLUGIN_IMPORT_FAILED for a package without its module, most often because it is not built. */
function checkEntry({ name, entry }: InstalledPackage, { kind }: Origin, exists: (path: string) => boolean): void {
  if (entry !== undefined && !exists(entry)) throw notBuilt(name, entry, kind === 'registry')
}

const FETCH = {
  registry: ({ spec }: Origin, work: string, npm: Omit<NpmRun, 'cwd'>) => pack(spec, work, npm),
  async folder({ spec }: Origin, work: string, npm: Omit<NpmRun, 'cwd'>) {
    // a package that is not a plugin gets an error of svc, not of npm
    await packageIn(spec, labelOf({ kind: 'folder', spec }), work)
    return pack(spec, work, npm)
  },
  async tarball({ spec }: Pick<Origin, 'spec'>, work: string) {
    const copy = join(work, 'plugin.tgz')
    await copyFile(spec, copy)
    return copy
  },
}

async function packageIn(folder: string, label: string, work: string): Promise<InstalledPackage> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') throw notAPlugin(label, 'its folder has no package.json')
    throw error
  })
  return readPluginPackage(text, label, work, false)
}

async function pack(spec: string, work: string, npm: Omit<NpmRun, 'cwd'>): Promise<string> {
  const into = join(work, 'packed')
  await mkdir(into, { recursive: true })
  await runNpm(['pack', `--pack-destination=${into}`, '--', spec], { ...npm, cwd: work })
  const [file] = await readdir(into)
  return join(into, file!)
}

interface Dist {
  readonly signatures?: readonly unknown[]
  readonly attestations?: { readonly provenance?: { readonly predicateType?: string } }
}

/** Only for display, so a registry without an answer is no error. */
async function toldBy({ name, version }: InstalledPackage, run: NpmRun): Promise<PluginCandidate['registry']> {
  try {
    const dist = Object(
      JSON.parse(await runNpm(['view', '--json', '--', `${name}@${version}`, 'dist'], { ...run, plugin: name }))
    ) as Dist
    const provenance = dist.attestations?.provenance?.predicateType
    return { signatures: dist.signatures?.length ?? 0, ...(provenance === undefined ? {} : { provenance }) }
  } catch {
    run.signal?.throwIfAborted()
    return undefined
  }
}

/** Describes a new plugin for the user; `npmLock` has its dependencies. */
export function candidateOf(plugin: Fetched, { plugins }: Lock, npmLock: NpmLock | undefined): PluginCandidate {
  const { name, version, origin, manifest, description, installScripts, scripts, integrity, bytes, registry } = plugin
  const old = plugins.find(item => item.name === name)
  const permissions = manifest.permissions ?? {}
  const change = permissionChange(old?.permissions ?? {}, permissions)
  const dependencies =
    plugin.tarball === undefined || !plugin.hasDependencies || npmLock === undefined ? [] : dependenciesOf(npmLock, name)
  return {
    name,
    ...(old ? { from: old.version } : {}),
    version,
    origin,
    manifest,
    description,
    permissions,
    permissionChange: change,
    installScripts,
    dependencyScripts: dependencies
      .filter(dependency => dependency.hasScripts)
      .map(dependency => `${dependency.name}@${dependency.version}`),
    scripts,
    dependencies: dependencies.length,
    packages: dependencies.map(({ name, version, integrity }) => ({ name, version, integrity })),
    ...(registry ? { registry } : {}),
    integrity,
    bytes,
    same: old !== undefined && isSame(plugin, old, [...change.added, ...change.removed]),
  }
}

function isSame({ origin, version, integrity, scripts }: Fetched, old: LockedPlugin, changes: readonly string[]): boolean {
  if (origin.kind === 'link')
    return old.origin.kind === 'link' && old.origin.spec === origin.spec && old.version === version && changes.length === 0
  return old.integrity === integrity && old.scripts === scripts
}

/** A draft of its entry in the lock; former choices stay. */
export function draftOf(
  { name, version, origin, integrity, permissions, scripts, manifest }: PluginCandidate,
  files: string,
  old: LockedPlugin | undefined
): LockedPlugin {
  const { declares, commands } = old !== undefined && files !== '' && old.files === files ? old : {}
  return {
    name,
    version,
    origin,
    integrity,
    files,
    isolation: isolationOf(manifest.runtime, old?.isolation),
    enabled: old?.enabled ?? true,
    permissions,
    ...(old?.values === undefined ? {} : { values: old.values }),
    scripts,
    trusted: old?.trusted ?? false,
    ...(declares === undefined ? {} : { declares }),
    ...(commands === undefined ? {} : { commands }),
  }
}

/** Code for the JavaScript sandbox runs only there, and other code never. */
function isolationOf(runtime: string | undefined, before: IsolationMode | undefined): IsolationMode {
  if (runtime !== undefined) return runtime === 'quickjs' ? 'quickjs' : 'data'
  return before === undefined || before === 'quickjs' || before === 'data' ? 'process' : before
}

const wordsOf = (permissions: Permissions): string[] =>
  Object.entries(permissions).flatMap(([kind, names]) =>
    // optional variables are among the variables
    kind === 'optional_env' ? [] : (names as readonly string[]).map(name => `${kind} ${name}`)
  )

function permissionChange(before: Permissions, after: Permissions): PermissionChange {
  const [had, has] = [new Set(wordsOf(before)), new Set(wordsOf(after))]
  return { added: [...has.difference(had)], removed: [...had.difference(has)] }
}
