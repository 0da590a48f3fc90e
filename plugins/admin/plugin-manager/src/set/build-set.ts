import { existsSync, readFileSync } from 'node:fs'
import { copyFile, cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { type PluginCandidate, type SetOptions } from './change-types.ts'
import { draftOf, type Fetched } from './fetch.ts'
import { givenPackages } from './given-packages.ts'
import { changedFiles, unpackedOtherwise } from './errors.ts'
import { contentsOf, dependencyFiles, hashOf, ownFiles, problemsOf, stampOf } from './verify.ts'
import { readNpmLock, writeNpmLock } from './lock-graph.ts'
import { EMPTY, type Lock, type LockedPlugin, needsSet, tarballName } from './lock.ts'
import { runNpm } from './npm.ts'
import type { NewSet, Staging } from './staging.ts'
import { readTarball } from './tarball.ts'

/** The result of a plan. */
export interface SetPlan {
  readonly home: string
  readonly before: Lock
  readonly fetched: readonly Fetched[]
  readonly removed: readonly LockedPlugin[]
  readonly ingredients: Ingredients
  readonly staging: Staging
  readonly offline: boolean
  readonly options: SetOptions
}

/** Builds the new set in its place. If only links change, the set in effect stays. */
export async function buildSet(plan: SetPlan, candidates: readonly PluginCandidate[]): Promise<NewSet> {
  const { before, removed, ingredients } = plan
  const spoken = new Set([...candidates, ...removed].map(candidate => candidate.name))
  const { own, ...made } = await makeSet(plan)
  return {
    ...made,
    kept: before.plugins.filter(plugin => !spoken.has(plugin.name)).map(plugin => rehashed(plugin, own)),
    plugins: candidates.map(candidate =>
      draftOf(
        candidate,
        own.get(candidate.name) ?? '',
        ingredients.kept.find(same(candidate)) ?? before.plugins.find(same(candidate))
      )
    ),
  }
}

const same = (item: { readonly name: string }) => (other: { readonly name: string }) => item.name === other.name

interface MadeSet extends Pick<NewSet, 'folder' | 'set' | 'dependencies'> {
  /** Hashes of the own files of each plugin. */
  readonly own: ReadonlyMap<string, string>
}

async function makeSet(plan: SetPlan): Promise<MadeSet> {
  const { before, ingredients, staging, options } = plan
  const { kept, fresh, dropped, old } = ingredients
  if (kept.length + fresh.length === 0) return { folder: '', set: '', dependencies: EMPTY.dependencies, own: new Map() }
  if (dropped.length === 0) {
    const own = new Map(kept.map(item => [item.name, item.files]))
    return { folder: old!, set: before.set, dependencies: before.dependencies, own }
  }
  await install(plan)
  options.onProgress?.({ step: 'hash' })
  const hashed = await hashSet(
    staging.set,
    [...kept, ...fresh].map(item => item.name)
  )
  options.signal?.throwIfAborted()
  return { folder: await staging.settle(), set: staging.id, ...hashed }
}

async function install(plan: SetPlan): Promise<void> {
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
  const packages = Object.keys((await readNpmLock(set))?.packages ?? {}).filter(path => path.startsWith('node_modules/')).length
  options.onProgress?.({ step: 'install', ...(packages > 1 ? { packages: packages - 1 } : {}) })
  await runNpm(['install', '--prefer-offline'], { ...options, cwd: set, offline })
  const unpacked = [...ingredients.fresh, ...(isWhole ? [] : ingredients.kept)]
  for (const plugin of unpacked) await checkUnpacked(set, plugin)
  // kept plugins have already run their scripts
  const scripted = unpacked.filter(plugin => plugin.scripts)
  for (const [at, plugin] of scripted.entries()) {
    options.onProgress?.({ step: 'scripts', plugin: plugin.name, at: at + 1, of: scripted.length })
    await runScripts(plugin, set, options)
  }
  await linkHost(set)
}

/**
 * Runs the install scripts of one package, without those of its dependencies. npm's own allow list would name the package by
 * the location of its tarball.
 */
async function runScripts(
  { name, version }: Pick<LockedPlugin, 'name' | 'version'>,
  set: string,
  options: SetOptions
): Promise<void> {
  const args = ['rebuild', '--foreground-scripts', '--dangerously-allow-all-scripts', '--', `${name}@${version}`]
  await runNpm(args, { ...options, cwd: set, runsScripts: true, plugin: name })
}

/** Hashes the set that npm has installed, for the lock. */
export async function hashSet(set: string, plugins: readonly string[]): Promise<Pick<MadeSet, 'own' | 'dependencies'>> {
  const modules = join(set, 'node_modules')
  const own = new Map<string, string>()
  for (const name of plugins) own.set(name, hashOf(await contentsOf(join(modules, name), ownFiles(join(modules, name)))))
  const shared = dependencyFiles(modules, plugins)
  return { own, dependencies: { files: hashOf(await contentsOf(modules, shared)), stamp: stampOf(modules, shared) } }
}

/** Removes the descriptions of a plugin whose files changed. */
function rehashed(plugin: LockedPlugin, own: ReadonlyMap<string, string>): LockedPlugin {
  const files = own.get(plugin.name) ?? plugin.files
  if (files === plugin.files) return plugin
  const { declares: _learnt, commands: _described, ...rest } = plugin
  return { ...rest, files }
}

/** How many files an error names. */
const NAMED = 5
/** npm names the first script after the second. */
const RENAMED = /(^|\/)\.(gitignore|npmignore)$/

type Unpacked = Pick<LockedPlugin, 'name' | 'version' | 'integrity'>

/**
 * Compares the files that npm unpacked with those that svc found in the same tarball. npm has its own archive parser and can
 * read an archive differently. Throws PLUGIN_TARBALL_UNSAFE, and PLUGIN_CHANGED if the tarball has changed.
 */
async function checkUnpacked(set: string, { name, version, integrity }: Unpacked): Promise<void> {
  const tarball = await readTarball(join(set, 'tarballs', tarballName(name, version)), name)
  if (tarball.integrity !== integrity) throw changedFiles(name, ['its tarball'])
  const folder = join(set, 'node_modules', name)
  const found = await contentsOf(folder, ownFiles(folder))
  const paths = new Set([...tarball.contents.keys(), ...found.keys()])
  const other = [...paths].filter(path => tarball.contents.get(path) !== found.get(path) && !RENAMED.test(path))
  if (other.length > 0) throw unpackedOtherwise(name, other.sort().slice(0, NAMED))
}

/** The parts of a new set. */
export interface Ingredients {
  /** The set in effect, if any. */
  readonly old: string | undefined
  /** Plugins that stay unchanged. */
  readonly kept: readonly LockedPlugin[]
  /** New plugins, each with a tarball. */
  readonly fresh: readonly Fetched[]
  /** Packages of the old set to leave out. */
  readonly dropped: readonly string[]
}

/**
 * Writes the files that npm needs: package.json, tarballs, and the former lock. Throws PLUGIN_CHANGED if a kept tarball has
 * changed.
 */
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
  const host = givenPackages().map(({ name, path }) => [name, `file:${path}`] as const)
  const dependencies = Object.fromEntries([...host, ...own].sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${JSON.stringify({ name: 'svc-plugins', private: true, dependencies }, null, 2)}\n`
}

/**
 * Stand-ins with the names and versions of the packages that svc gives to plugins: npm checks the ranges of peers against them,
 * and cannot touch the packages.
 */
async function writeHostStub(set: string): Promise<void> {
  await rm(join(set, 'host'), { recursive: true, force: true })
  for (const { name, path, folder } of givenPackages()) {
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
    await mkdir(join(set, path), { recursive: true })
    await writeFile(join(set, path, 'package.json'), `${JSON.stringify({ name, version })}\n`)
  }
}

/** After npm, these packages in the set are links to those of this svc. */
export async function linkHost(set: string): Promise<void> {
  await rm(join(set, 'host'), { recursive: true, force: true })
  await mkdir(join(set, 'host'))
  for (const { path, folder } of givenPackages()) await symlink(folder, join(set, path), 'dir')
}

/** Copies the installed packages. npm then changes only the differences, and needs no network to remove one. */
async function copyModules(old: string, set: string, dropped: readonly string[]): Promise<void> {
  const from = join(old, 'node_modules')
  const out = new Set(dropped)
  await cp(from, join(set, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
    filter: path => !out.has(relative(from, path).replaceAll(sep, '/')),
  })
}
