import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { codeOf, type SvcError } from '@svc/core'
import { changedDependencies, changedFiles, filesMissing } from './errors.ts'
import { givenPath } from './given-packages.ts'
import { type Lock, type LockedPlugin, needsSet, setFolder, tarballName } from './lock.ts'
import { contentsIn } from './tarball.ts'

/** How many changed files an error names. */
const NAMED = 5

/**
 * Verifies all installed plugins: the own files of enabled plugins by hash; dependencies by size and times, and by hash if
 * these differ. Returns the problems: PLUGIN_CHANGED, PLUGIN_FILES_MISSING, each with the plugin (without for dependencies) and
 * a hint.
 */
export async function verifySet(home: string, lock: Lock): Promise<SvcError[]> {
  return problemsOf(home, lock, { enabledOnly: true })
}

/** As `verifySet`, including disabled plugins that a change keeps. */
export async function problemsOf(home: string, lock: Lock, { enabledOnly = false } = {}): Promise<SvcError[]> {
  const wanted = lock.plugins.filter(plugin => plugin.enabled || !enabledOnly)
  const gone = wanted.filter(plugin => !needsSet(plugin) && !existsSync(join(plugin.origin.spec, 'package.json'))).map(goneLink)
  const folder = setFolder(home, lock)
  if (folder === undefined) return gone
  if (!existsSync(folder)) return [...gone, filesMissing(undefined, 'the folder of the installed plugins does not exist')]
  const own = await Promise.all(wanted.filter(needsSet).map(plugin => pluginProblem(folder, plugin)))
  const dependencies = await dependencyProblem(join(folder, 'node_modules'), lock)
  return [...gone, ...own, dependencies].filter(problem => problem !== undefined)
}

const goneLink = ({ name }: LockedPlugin) => filesMissing(name, 'the linked folder does not exist')

async function pluginProblem(set: string, plugin: LockedPlugin): Promise<SvcError | undefined> {
  const folder = join(set, 'node_modules', plugin.name)
  if (!existsSync(join(folder, 'package.json'))) return filesMissing(plugin.name, 'its files do not exist')
  const contents = await contentsOf(folder, ownFiles(folder))
  if (hashOf(contents) === plugin.files) return undefined
  return changedFiles(plugin.name, await changedNames(set, plugin, contents))
}

/** A stamp that changes with every write to the files of a plugin. */
export const stampOfPlugin = (folder: string): string => stampOf(folder, ownFiles(folder))

/** Compares the files of a plugin with their hash in the lock; returns their stamp. Throws PLUGIN_CHANGED. */
export function verifyFiles(name: string, folder: string, hash: string): string {
  const files = ownFiles(folder)
  const stamp = stampOf(folder, files)
  if (hashOf(new Map(files.map(file => [file.path, contentOf(folder, file)]))) !== hash) throw changedFiles(name, [])
  return stamp
}

/** The files that differ from the tarball in the set. Install scripts may have added others. */
async function changedNames(set: string, { name, version, scripts }: LockedPlugin, now: ReadonlyMap<string, string>) {
  const then = await contentsIn(join(set, 'tarballs', tarballName(name, version))).catch(() => undefined)
  if (then === undefined) return []
  const names = [...new Set([...then.keys(), ...(scripts ? [] : now.keys())])].sort()
  return names.filter(path => then.get(path) !== now.get(path)).slice(0, NAMED)
}

async function dependencyProblem(modules: string, { plugins, dependencies }: Lock): Promise<SvcError | undefined> {
  const names = plugins.filter(needsSet).map(plugin => plugin.name)
  const files: FileBelow[] = dependencyFiles(modules, names)
  if (stampOf(modules, files) === dependencies.stamp) return undefined
  return hashOf(await contentsOf(modules, files)) === dependencies.files ? undefined : changedDependencies()
}

/** A file or link below a folder; `path` is relative, with `/`. */
export interface FileBelow {
  readonly path: string
  readonly isLink: boolean
  /** A pipe, socket or device, whose reader could wait for ever. */
  readonly isOdd: boolean
}

type Skip = (path: string) => boolean

/**
 * All files and links below a folder in a fixed order. `skip` leaves out a path and everything below it. Empty if the folder
 * does not exist.
 */
export function filesBelow(root: string, skip: Skip = () => false): FileBelow[] {
  const found: FileBelow[] = []
  walk(root, '', skip, found)
  return found
}

// one list sorted per folder takes half the time, and a start waits for it
function walk(root: string, prefix: string, skip: Skip, found: FileBelow[]): void {
  for (const entry of entriesOf(root + prefix)) {
    const path = prefix.slice(1) + (prefix === '' ? '' : '/') + entry.name
    if (skip(path)) continue
    if (entry.isDirectory()) walk(root, `/${path}`, skip, found)
    else found.push({ path, isLink: entry.isSymbolicLink(), isOdd: !entry.isFile() && !entry.isSymbolicLink() })
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => inOrder(a.name, b.name))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** The entries of node_modules that belong to no plugin's own files. The packages of svc are outside of the set: only links lead to them. */
export function dependencyFiles(modules: string, plugins: readonly string[]): FileBelow[] {
  const own = new Set(plugins)
  const shared = filesBelow(modules, path => own.has(path) || givenPath(path) !== undefined)
  const nested = [...plugins].sort(inOrder).flatMap(name => {
    const folder = `${name}/node_modules`
    return filesBelow(`${modules}/${folder}`).map(file => ({ ...file, path: `${folder}/${file.path}` }))
  })
  return [...shared, ...nested]
}

const inOrder = (a: string, b: string) => (a < b ? -1 : 1)

/** The own files of a package, without its dependencies. */
export const ownFiles = (folder: string): FileBelow[] => filesBelow(folder, path => path === 'node_modules')

const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

/** The hash of a file, or the target of a link; undefined otherwise. */
export function contentOf(root: string, { path, isLink, isOdd }: FileBelow): string {
  if (isOdd) return 'no file'
  return isLink ? `link ${readlinkSync(join(root, path))}` : sha256(readFileSync(join(root, path)))
}

/** Milliseconds of hashing after which other work has its turn: a worker of a server hashes too. */
const TURN_MS = 20

/** Path → hash, in the order of the files. */
export async function contentsOf(root: string, files: readonly FileBelow[]): Promise<Map<string, string>> {
  const contents = new Map<string, string>()
  let began = performance.now()
  for (const file of files) {
    contents.set(file.path, contentOf(root, file))
    if (performance.now() - began < TURN_MS) continue
    await setImmediate()
    began = performance.now()
  }
  return contents
}

/** One hash over all of them; '' for none. */
export const hashOf = (contents: ReadonlyMap<string, string>): string =>
  contents.size === 0 ? '' : sha256([...contents].map(([path, content]) => `${path}\0${content}\n`).join(''))

/**
 * A hash that changes with every write to any of the files, without reading them. It includes the time of change (ctime), which
 * no program can set back.
 */
export function stampOf(root: string, files: readonly FileBelow[]): string {
  if (files.length === 0) return ''
  return sha256(files.map(file => stampLine(root, file)).join(''))
}

function stampLine(root: string, { path }: FileBelow): string {
  const { size, mtimeMs, ctimeMs } = lstatSync(`${root}/${path}`)
  return `${path}\0${size}\0${mtimeMs}\0${ctimeMs}\n`
}
