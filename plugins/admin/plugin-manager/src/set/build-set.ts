import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { draftOf } from './candidate.ts'
import type { Candidate, SetOptions } from './change-types.ts'
import type { Fetched } from './fetch.ts'
import { contentsOf, dependencyFiles, hashOf, ownFiles, stampOf } from './files.ts'
import { EMPTY, needsSet } from './lock.ts'
import type { Lock, LockedPlugin } from './lock-types.ts'
import { copyModules, type Ingredients, linkHost, writeSet } from './new-set.ts'
import { runNpm } from './npm.ts'
import type { NewSet } from './staged-change.ts'
import type { Staging } from './staging.ts'
import { problemsOf } from './verify.ts'
import { changedFiles, unpackedOtherwise } from './errors.ts'
import { tarballName } from './names.ts'
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
