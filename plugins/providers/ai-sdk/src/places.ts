import { findPackageJSON } from 'node:module'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packagesAround, svcHome } from '@svc/core'

/** Where packages are looked up: from this folder upward, in the svc home, among what was installed into it, and beside svc itself. */
export const packagePlaces = (): readonly string[] => {
  const home = svcHome()
  return [...[process.cwd(), home, join(home, 'plugins')].map(folder => pathToFileURL(folder + sep).href), import.meta.url]
}

/** The folders of packages that decide what a package of the configuration is: the one it lies in, and the one that is looked into first. */
export function packageFolders(name: string): string[] {
  const found = packagePlaces().flatMap(place => packagesAround(manifestAt(name, place) ?? '') ?? [])
  return [...new Set([join(process.cwd(), 'node_modules'), ...found])]
}

function manifestAt(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}
