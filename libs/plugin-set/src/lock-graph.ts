import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'

/** npm's lock, as far as it is read here. */
export interface NpmLock {
  readonly packages: Readonly<Record<string, NpmPackage>>
}
interface NpmPackage {
  readonly version?: string
  readonly link?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const fileIn = (set: string) => join(set, 'package-lock.json')

/** Undefined where there is none. */
export async function readNpmLock(set: string): Promise<NpmLock | undefined> {
  try {
    return JSON.parse(await readFile(fileIn(set), 'utf8')) as NpmLock
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Lets npm keep each version that it has chosen before, but for these packages: they are resolved anew. */
export async function writeNpmLock(set: string, lock: NpmLock, without: readonly string[]): Promise<void> {
  const isOut = (path: string) =>
    without.some(name => path === `node_modules/${name}` || path.startsWith(`node_modules/${name}/`))
  const packages = Object.fromEntries(Object.entries(lock.packages).filter(([path]) => !isOut(path)))
  const { '': root = {}, ...others } = packages
  const dependencies = Object.fromEntries(Object.entries(root.dependencies ?? {}).filter(([name]) => !without.includes(name)))
  await writeFile(fileIn(set), JSON.stringify({ ...lock, packages: { '': { ...root, dependencies }, ...others } }, null, 2))
}

export interface Dependency {
  readonly name: string
  readonly version: string
  readonly hasScripts: boolean
}

/** All packages that come with one, those of its dependencies included; the core of this svc is none. */
export function dependenciesOf({ packages }: NpmLock, plugin: string): Dependency[] {
  const seen = new Map<string, NpmPackage>()
  const open = [`node_modules/${plugin}`]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const one = packages[path]
    if (one === undefined || one.link || seen.has(path)) continue
    seen.set(path, one)
    const names = Object.keys({ ...one.dependencies, ...one.optionalDependencies, ...one.peerDependencies })
    open.push(...names.flatMap(name => placeOf(packages, path!, name) ?? []))
  }
  seen.delete(`node_modules/${plugin}`)
  return [...seen].map(([path, one]) => ({
    name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
    version: one.version ?? '',
    hasScripts: one.hasInstallScript ?? false,
  }))
}

/** Where Node finds `name` from a package: in its own node_modules, or the nearest above. */
function placeOf(packages: NpmLock['packages'], from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, at.lastIndexOf('/node_modules/'))) {
    const path = `${at}/node_modules/${name}`
    if (packages[path]) return path
    if (!at.includes('/node_modules/')) break
  }
  return packages[`node_modules/${name}`] && `node_modules/${name}`
}
