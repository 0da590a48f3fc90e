import { readdir, readFile, readlink, realpath, stat } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dependencyInvalid } from './errors.ts'

/**
 * Returns the folders that a package needs: its own, each `node_modules` around it, and the folders of packages that these link to (a workspace, a linked
 * plugin, the host's core). Throws ISOLATION_DEPENDENCY if a package.json has a dependency whose name is not valid.
 */
export async function foldersOf(folders: readonly string[]): Promise<string[]> {
  const found = new Set<string>()
  const todo = [...folders]
  for (let folder = todo.pop(); folder !== undefined; folder = todo.pop()) {
    const real = await realpath(folder)
    if (covered(real, found)) continue
    found.add(real)
    for (const item of await modulesAround(real)) found.add(item)
    todo.push(...(await linkedFrom(real)))
  }
  const all = [...found]
  return all.filter(item => !all.some(other => other !== item && item.startsWith(other + sep)))
}

const covered = (path: string, found: ReadonlySet<string>) =>
  [...found].some(item => path === item || path.startsWith(item + sep))

async function modulesAround(folder: string): Promise<string[]> {
  const found: string[] = []
  for (let at = folder; at !== dirname(at); at = dirname(at)) {
    const modules = join(at, 'node_modules')
    const is = await stat(modules).catch(() => undefined)
    if (is?.isDirectory()) found.push(await realpath(modules), ...(await linksToCore(modules)))
  }
  return found
}

/**
 * The link to the host's core in a plugin set points to another link (`host/core`). The plugin must see that folder, or the first link does not resolve.
 * Only a folder of nothing but links is shown: the plugin does not see their targets.
 */
async function linksToCore(modules: string): Promise<string[]> {
  const scope = join(modules, '@svc')
  const target = await readlink(join(scope, 'core')).catch(() => undefined)
  if (target === undefined) return []
  const folder = dirname(resolve(scope, target))
  const beside = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return beside.length > 0 && beside.every(item => item.isSymbolicLink()) ? [folder] : []
}

interface Package {
  readonly dependencies?: object
  readonly peerDependencies?: object
  readonly optionalDependencies?: object
}

/** Every name that npm ever accepted. A package.json can hold any text, and the sandbox shows what it resolves to: `file:tmp` would be a folder of the machine. */
const PACKAGE = /^(?:@[\w.~!*'()-]+\/)?[\w~!*'()-][\w.~!*'()-]*$/

/** Returns the real folders of the installed dependencies of a package. */
async function linkedFrom(folder: string): Promise<string[]> {
  const file = join(folder, 'package.json')
  const text = await readFile(file, 'utf8').catch(() => '{}')
  const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(text) as Package
  const names = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies })
  const stray = names.find(name => !PACKAGE.test(name))
  if (stray !== undefined) throw dependencyInvalid(stray, file)
  return names.flatMap(name => folderOf(name, pathToFileURL(file).href) ?? [])
}

function folderOf(name: string, from: string): string | undefined {
  try {
    const file = findPackageJSON(name, from)
    return file && dirname(file)
  } catch {
    return undefined
  }
}
