import { existsSync, readFileSync } from 'node:fs'
import { copyFile, cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { type Candidate, type SetOptions } from './change-types.ts'
import { draftOf, type Fetched } from './fetch.ts'
import { changedFiles, unpackedOtherwise } from './errors.ts'
import { contentsOf, dependencyFiles, hashOf, ownFiles, problemsOf, stampOf } from './verify.ts'
import { readNpmLock, writeNpmLock } from './lock-graph.ts'
import { EMPTY, type Lock, type LockedPlugin, needsSet, tarballName } from './lock.ts'
import { runNpm } from './npm.ts'
import type { NewSet, Staging } from './staging.ts'
import { readTarball } from './tarball.ts'

/** What a change comes to. */
export interface Plan {
  readonly home: string
  readonly before: Lock
  readonly fetched: readonly Fetched[]
  readonly removed: readonly LockedPlugin[]
  readonly ingredients: Ingredients
  readonly staging: Staging
  readonly offline: boolean
  readonly options: SetOptions
}

/** Puts the new set together and in its place. Where only links come and go, the set in force is the new one too. */
export async function buildSet(plan: Plan, candidates: readonly Candidate[]): Promise<NewSet> {
  const { before, removed, ingredients } = plan
  const spoken = new Set([...candidates, ...removed].map(one => one.name))
  const { own, ...made } = await makeSet(plan)
  return {
    ...made,
    kept: before.plugins.filter(one => !spoken.has(one.name)).map(one => rehashed(one, own)),
    plugins: candidates.map(one =>
      draftOf(one, own.get(one.name) ?? '', ingredients.kept.find(same(one)) ?? before.plugins.find(same(one)))
    ),
  }
}

const same = (one: { readonly name: string }) => (other: { readonly name: string }) => one.name === other.name

interface MadeSet extends Pick<NewSet, 'folder' | 'set' | 'dependencies'> {
  /** Of each plugin in it: the hash of its own files. */
  readonly own: ReadonlyMap<string, string>
}

async function makeSet(plan: Plan): Promise<MadeSet> {
  const { before, ingredients, staging, options } = plan
  const { kept, fresh, dropped, old } = ingredients
  if (kept.length + fresh.length === 0) return { folder: '', set: '', dependencies: EMPTY.dependencies, own: new Map() }
  if (dropped.length === 0) {
    const own = new Map(kept.map(one => [one.name, one.files]))
    return { folder: old!, set: before.set, dependencies: before.dependencies, own }
  }
  await install(plan)
  options.onProgress?.({ step: 'hash' })
  const hashed = hashSet(
    staging.set,
    [...kept, ...fresh].map(one => one.name)
  )
  options.signal?.throwIfAborted()
  return { folder: await staging.settle(), set: staging.id, ...hashed }
}

async function install(plan: Plan): Promise<void> {
  const { home, before, ingredients, staging, offline, options } = plan
  const { set } = staging
  if (!existsSync(set)) await writeSet(set, ingredients)
  const isWhole =
    ingredients.old !== undefined &&
    (await problemsOf(home, { ...before, plugins: before.plugins.filter(needsSet) })).length === 0
  if (isWhole) {
    options.onProgress?.({ step: 'copy' })
    await copyModules(ingredients.old!, set, ingredients.dropped)
  }
  options.onProgress?.({ step: 'install' })
  await runNpm(['install', '--prefer-offline'], { ...options, cwd: set, offline })
  const unpacked = [...ingredients.fresh, ...(isWhole ? [] : ingredients.kept)]
  for (const plugin of unpacked) await checkUnpacked(set, plugin)
  // what is carried on has run its scripts already
  for (const plugin of unpacked) if (plugin.scripts) await runScripts(plugin, set, options)
  await linkHost(set)
}

/** Runs the install scripts of one package, and of none that it brings with it. npm's own list of what may run would name it by where its tarball lies; this run names it alone. */
async function runScripts(
  { name, version }: Pick<LockedPlugin, 'name' | 'version'>,
  set: string,
  options: SetOptions
): Promise<void> {
  options.onProgress?.({ step: 'scripts', plugin: name })
  const args = ['rebuild', '--foreground-scripts', '--dangerously-allow-all-scripts', '--', `${name}@${version}`]
  await runNpm(args, { ...options, cwd: set, runsScripts: true, plugin: name })
}

/** The hashes of a set that npm has put together, as its lock has them. */
export function hashSet(set: string, plugins: readonly string[]): Pick<MadeSet, 'own' | 'dependencies'> {
  const modules = join(set, 'node_modules')
  const shared = dependencyFiles(modules, plugins)
  return {
    own: new Map(plugins.map(name => [name, hashOf(contentsOf(join(modules, name), ownFiles(join(modules, name))))])),
    dependencies: { files: hashOf(contentsOf(modules, shared)), stamp: stampOf(modules, shared) },
  }
}

/** Built anew, a plugin may have other files; then what was learnt of it holds no longer. */
function rehashed(plugin: LockedPlugin, own: ReadonlyMap<string, string>): LockedPlugin {
  const files = own.get(plugin.name) ?? plugin.files
  if (files === plugin.files) return plugin
  const { declares: _learnt, commands: _described, ...rest } = plugin
  return { ...rest, files }
}

/** How many files are named. */
const NAMED = 5
/** npm gives the first of them the name of the second. */
const RENAMED = /(^|\/)\.(gitignore|npmignore)$/

type Unpacked = Pick<LockedPlugin, 'name' | 'version' | 'integrity'>

/**
 * Compares what npm has unpacked with what svc found in the same tarball before a person accepted it: npm reads archives with a parser of its own, and what it
 * understands in another way was not shown. Throws PLUGIN_TARBALL_UNSAFE, and PLUGIN_CHANGED where the tarball is another one by now.
 */
async function checkUnpacked(set: string, { name, version, integrity }: Unpacked): Promise<void> {
  const tarball = await readTarball(join(set, 'tarballs', tarballName(name, version)), name)
  if (tarball.integrity !== integrity) throw changedFiles(name, ['its tarball'])
  const folder = join(set, 'node_modules', name)
  const found = contentsOf(folder, ownFiles(folder))
  const paths = new Set([...tarball.contents.keys(), ...found.keys()])
  const other = [...paths].filter(path => tarball.contents.get(path) !== found.get(path) && !RENAMED.test(path))
  if (other.length > 0) throw unpackedOtherwise(name, other.sort().slice(0, NAMED))
}

/** What a new set is made of. */
export interface Ingredients {
  /** The set in force, where there is one. */
  readonly old: string | undefined
  /** Plugins that stay as they are. */
  readonly kept: readonly LockedPlugin[]
  /** Plugins that come, with a tarball each. */
  readonly fresh: readonly Fetched[]
  /** What of the old set is not carried on. */
  readonly dropped: readonly string[]
}

/** Writes all that npm needs to put the set together: what is wanted, tarballs, the versions chosen before. Throws PLUGIN_CHANGED for a kept tarball that is not what it was. */
export async function writeSet(set: string, { old, kept, fresh, dropped }: Ingredients): Promise<void> {
  await mkdir(join(set, 'tarballs'), { recursive: true, mode: 0o700 })
  for (const plugin of kept) await keepTarball(old!, set, plugin)
  for (const { name, version, tarball } of fresh) await copyFile(tarball!, join(set, 'tarballs', tarballName(name, version)))
  await writeFile(join(set, 'package.json'), packageJson([...kept, ...fresh]))
  await writeHostStub(set)
  const lock = old === undefined ? undefined : await readNpmLock(old)
  if (lock) await writeNpmLock(set, lock, dropped)
}

async function keepTarball(old: string, set: string, { name, version, integrity }: LockedPlugin): Promise<void> {
  const path = join('tarballs', tarballName(name, version))
  const now = existsSync(join(old, path)) ? await readTarball(join(old, path), name) : undefined
  if (now?.integrity !== integrity) throw changedFiles(name, ['its tarball'])
  await copyFile(join(old, path), join(set, path))
}

function packageJson(plugins: readonly { readonly name: string; readonly version: string }[]): string {
  const own = plugins.map(({ name, version }) => [name, `file:tarballs/${tarballName(name, version)}`] as const)
  const dependencies = Object.fromEntries([['@svc/core', 'file:host/core'] as const, ...own].sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${JSON.stringify({ name: 'svc-plugins', private: true, dependencies }, null, 2)}\n`
}

const hostCore = () => dirname(findPackageJSON('@svc/core', import.meta.url)!)

/** A package with the core's name and version only: npm checks against it what plugins ask of the core, and touches nothing of the core itself. */
async function writeHostStub(set: string): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(hostCore(), 'package.json'), 'utf8')) as { version: string }
  await rm(join(set, 'host'), { recursive: true, force: true })
  await mkdir(join(set, 'host', 'core'), { recursive: true })
  await writeFile(join(set, 'host', 'core', 'package.json'), `${JSON.stringify({ name: '@svc/core', version })}\n`)
}

/** Once npm is done, the core in the set is the very one that loads it. */
export async function linkHost(set: string): Promise<void> {
  await rm(join(set, 'host'), { recursive: true, force: true })
  await mkdir(join(set, 'host'))
  await symlink(hostCore(), join(set, 'host', 'core'), 'dir')
}

/** Takes over what is installed: then npm changes only what differs, and needs no network to take something away. */
async function copyModules(old: string, set: string, dropped: readonly string[]): Promise<void> {
  const from = join(old, 'node_modules')
  const out = new Set(dropped)
  await cp(from, join(set, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
    filter: path => !out.has(relative(from, path).replaceAll(sep, '/')),
  })
}
