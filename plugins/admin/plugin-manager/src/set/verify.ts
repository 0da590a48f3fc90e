import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { SvcError } from '@svc/core'
import { changedDependencies, changedFiles, filesMissing } from './errors.ts'
import { contentsOf, dependencyFiles, type FileBelow, hashOf, ownFiles, stampOf } from './files.ts'
import { needsSet, setFolder } from './lock.ts'
import type { Lock, LockedPlugin } from './lock-types.ts'
import { tarballName } from './names.ts'
import { contentsIn } from './tarball.ts'

/** How many changed files are named. */
const NAMED = 5

/**
 * Whether everything that is installed is as it was: each enabled plugin's own files by hash; the dependencies by size and times, by hash where these differ. Returns what is wrong,
 * nothing thrown: PLUGIN_CHANGED, PLUGIN_FILES_MISSING, each with the plugin (dependencies: without) and the hint.
 */
export async function verifySet(home: string, lock: Lock): Promise<SvcError[]> {
  return problemsOf(home, lock, { enabledOnly: true })
}

/** As `verifySet`; of disabled plugins too where these are carried on. */
export async function problemsOf(home: string, lock: Lock, { enabledOnly = false } = {}): Promise<SvcError[]> {
  const wanted = lock.plugins.filter(one => one.enabled || !enabledOnly)
  const gone = wanted.filter(one => !needsSet(one) && !existsSync(join(one.origin.spec, 'package.json'))).map(goneLink)
  const folder = setFolder(home, lock)
  if (folder === undefined) return gone
  if (!existsSync(folder)) return [...gone, filesMissing(undefined, 'the folder of the installed plugins is gone')]
  const own = await Promise.all(wanted.filter(needsSet).map(one => pluginProblem(folder, one)))
  const dependencies = dependencyProblem(join(folder, 'node_modules'), lock)
  return [...gone, ...own, dependencies].filter(problem => problem !== undefined)
}

const goneLink = ({ name }: LockedPlugin) => filesMissing(name, 'the folder that it is linked to is gone')

async function pluginProblem(set: string, plugin: LockedPlugin): Promise<SvcError | undefined> {
  const folder = join(set, 'node_modules', plugin.name)
  if (!existsSync(join(folder, 'package.json'))) return filesMissing(plugin.name, 'its files are gone')
  const contents = contentsOf(folder, ownFiles(folder))
  if (hashOf(contents) === plugin.files) return undefined
  return changedFiles(plugin.name, await changedNames(set, plugin, contents))
}

/** Changes with every write to the files of a plugin. */
export const stampOfPlugin = (folder: string): string => stampOf(folder, ownFiles(folder))

/** Compares the files of a plugin with the hash that the lock has; returns their stamp. Throws PLUGIN_CHANGED. */
export function verifyFiles(name: string, folder: string, hash: string): string {
  const files = ownFiles(folder)
  const stamp = stampOf(folder, files)
  if (hashOf(contentsOf(folder, files)) !== hash) throw changedFiles(name, [])
  return stamp
}

/** Which files differ from the tarball, which still lies in the set. Where its install scripts ran, they may have made more. */
async function changedNames(set: string, { name, version, scripts }: LockedPlugin, now: ReadonlyMap<string, string>) {
  const then = await contentsIn(join(set, 'tarballs', tarballName(name, version))).catch(() => undefined)
  if (then === undefined) return []
  const names = [...new Set([...then.keys(), ...(scripts ? [] : now.keys())])].sort()
  return names.filter(path => then.get(path) !== now.get(path)).slice(0, NAMED)
}

function dependencyProblem(modules: string, { plugins, dependencies }: Lock): SvcError | undefined {
  const names = plugins.filter(needsSet).map(one => one.name)
  const files: FileBelow[] = dependencyFiles(modules, names)
  if (stampOf(modules, files) === dependencies.stamp) return undefined
  return hashOf(contentsOf(modules, files)) === dependencies.files ? undefined : changedDependencies()
}
