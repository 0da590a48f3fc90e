import { existsSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, parse, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { PluginEntry } from '@svc/core'
import { foreignReason } from '@svc/core/config'

/** Name of the lock file of installed plugins, and of its layer in the configuration. */
export const LOCK_LAYER = 'svc-plugins.lock'

/** The location of the plugins that come with svc: next to this package. */
export const OURS: string = import.meta.url

/**
 * Adds to each entry the location where its name is resolved. Names of svc's plugins resolve next to svc. Others resolve from
 * the file that has them, then in `<home>/plugins`, then next to svc. From the home, the search does not go above it, because
 * other users can own those folders.
 */
export const placed = (entries: readonly PluginEntry[], home: string): PluginEntry[] =>
  entries.map(entry => placedOne(entry, home))

function placedOne(entry: PluginEntry, home: string): PluginEntry {
  const { use, from } = entry
  if (typeof use !== 'string' || use.startsWith('file:')) return entry
  const inHome = join(home, 'plugins')
  if (/^(\.{0,2}\/|\.{1,2}$|[A-Za-z]:\\)/.test(use)) return { ...entry, from: from ?? pathToFileURL(join(inHome, '/')).href }
  if (use.startsWith('@svc/') && (from === undefined || isOurs(use))) return { ...entry, from: OURS }
  const folder = from === undefined ? inHome : folderOf(from)
  if (!isWithin(folder, home))
    return isFound(use, urlOf(from!)) && !isForeign(use, folder) ? entry : { ...entry, from: homePlace(use, inHome, home) }
  return { ...entry, from: upwards(use, folder, home) ?? homePlace(use, inHome, home) }
}

const homePlace = (name: string, inHome: string, home: string) => upwards(name, inHome, home) ?? OURS

/** The nearest folder up to `top` that has the package. */
function upwards(name: string, folder: string, top: string): string | undefined {
  for (let at = folder; isWithin(at, top); at = dirname(at))
    if (existsSync(join(at, 'node_modules', name, 'package.json'))) return pathToFileURL(join(at, '/')).href
  return undefined
}

/** Whether the nearest package of that name is above the folder and another user can write it. */
function isForeign(name: string, folder: string): boolean {
  const place = upwards(name, folder, parse(folder).root)
  if (place === undefined || place === pathToFileURL(join(folder, '/')).href) return false
  return foreignReason(join(fileURLToPath(place), 'node_modules', name, 'package.json')) !== undefined
}

const isWithin = (folder: string, top: string) => !/^\.\.(\/|$)/.test(relative(resolve(top), resolve(folder)))
const urlOf = (place: string) => (place.startsWith('file:') ? place : pathToFileURL(place).href)
const folderOf = (place: string) => fileURLToPath(new URL('.', urlOf(place)))
const isOurs = (name: string) => isFound(name, OURS)

function isFound(name: string, place: string): boolean {
  try {
    return findPackageJSON(name, place) !== undefined
  } catch {
    return false
  }
}

/** The folder of this package. All files of the bundle are at this depth. */
export const PACKAGE_FOLDER: string = fileURLToPath(new URL('..', import.meta.url))

/** Whether svc runs from the sources of the repository, whose packages are not built. */
export const RUNS_SOURCES: boolean = import.meta.url.endsWith('.ts')
