import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { svcHome } from '@svc/core'

/** Where packages are looked up: from this folder upward, in the svc home, among what was installed into it, and beside svc itself. */
export const packagePlaces = (): readonly string[] => {
  const home = svcHome()
  return [...[process.cwd(), home, join(home, 'plugins')].map(folder => pathToFileURL(folder + sep).href), import.meta.url]
}
