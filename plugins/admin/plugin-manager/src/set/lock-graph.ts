import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import { strayAddress, type DependencyLists, dependencySpecs } from './package-json.ts'

/** The parts of npm's lock that svc reads. */
export interface NpmLock {
  readonly packages: Readonly<Record<string, NpmPackage>>
}
interface NpmPackage extends DependencyLists {
  /** Present if its folder has another name. */
  readonly name?: string
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly hasInstallScript?: boolean
  /** The platforms that it supports: names, or excluded ones as `!win32`. */
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
}

const fileIn = (set: string) => join(set, 'package-lock.json')

/** Undefined if there is none. */
export async function readNpmLock(set: string): Promise<NpmLock | undefined> {
  try {
    return JSON.parse(await readFile(fileIn(set), 'utf8')) as NpmLock
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Makes npm keep all chosen versions except those of these packages. */
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
  /** `sha512-…`; '' if the registry gives none. */
  readonly integrity: string
  readonly hasScripts: boolean
}

/** All direct and indirect dependencies of a package, without the core of svc. */
export function dependenciesOf({ packages }: NpmLock, plugin: string): Dependency[] {
  const seen = new Map<string, NpmPackage>()
  const open = [`node_modules/${plugin}`]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const found = packages[path]
    if (found === undefined || found.link || seen.has(path)) continue
    seen.set(path, found)
    open.push(...Object.keys(dependencySpecs(found)).flatMap(name => placeOf(packages, path!, name) ?? []))
  }
  seen.delete(`node_modules/${plugin}`)
  return [...seen].map(([path, npmPackage]) => ({
    name: path.slice(path.lastIndexOf(MODULES) + MODULES.length),
    version: npmPackage.version ?? '',
    integrity: npmPackage.integrity ?? '',
    hasScripts: npmPackage.hasInstallScript ?? false,
  }))
}

/**
 * Describes a dependency that is not a package of the registry under its own name. npm would link a local folder into the set;
 * and a package under another's name would run in each package that imports that name. Undefined if there is none.
 */
export function strayDependency({ packages }: NpmLock): { readonly of: string; readonly what: string } | undefined {
  const specs = Object.entries(packages).flatMap(([path, item]) =>
    !path.startsWith(MODULES) ? [] : Object.entries(dependencySpecs(item)).map(([name, spec]) => ({ path, name, spec }))
  )
  for (const { path, name, spec } of specs) {
    const what = strayWords(packages, path, name, spec)
    if (what !== undefined) return { of: path.slice(path.lastIndexOf(MODULES) + MODULES.length), what }
  }
  return undefined
}

const MODULES = 'node_modules/'

function strayWords(packages: NpmLock['packages'], path: string, name: string, spec: string): string | undefined {
  if (spec.startsWith('npm:')) return undefined
  const address = strayAddress(name, spec)
  if (address !== undefined) return address
  const place = placeOf(packages, path, name)
  const there = place && packages[place]?.name
  return there === undefined || there === name
    ? undefined
    : `would get ${there} as ${name}, because another plugin uses that name for it`
}

/** The folder in which Node finds `name` from a package: its own node_modules, or the nearest one above. */
function placeOf(packages: NpmLock['packages'], from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, at.lastIndexOf('/node_modules/'))) {
    const path = `${at}/node_modules/${name}`
    if (packages[path]) return path
    if (!at.includes('/node_modules/')) break
  }
  return packages[`node_modules/${name}`] && `node_modules/${name}`
}
