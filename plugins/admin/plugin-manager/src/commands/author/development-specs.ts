import { existsSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PACKAGE_FOLDER, RUNS_SOURCES } from '@svc/cli/program'
import { hostPackageFolder } from '@svc/core/config'

/**
 * What a new plugin writes into `devDependencies` for packages of svc: their versions, or links to those of this svc where it
 * does not come from a registry. So `npm install` works with a clone and with packages that are not published yet.
 */
export function developmentSpecs(names: readonly string[], version: string): Record<string, string> {
  const spec = (name: string) => {
    const folder = isLinked() ? folderOf(name) : undefined
    return folder === undefined ? `^${version}` : `file:${folder}`
  }
  return Object.fromEntries(names.map(name => [name, spec(name)]))
}

/** Whether this svc is a clone, or was installed from files. npm notes where each installed package comes from. */
export function isLinked(): boolean {
  if (RUNS_SOURCES) return true
  const at = PACKAGE_FOLDER.lastIndexOf(`${sep}node_modules${sep}`)
  if (at === -1) return true
  const file = join(PACKAGE_FOLDER.slice(0, at), 'node_modules', '.package-lock.json')
  if (!existsSync(file)) return false
  const { packages = {} } = JSON.parse(readFileSync(file, 'utf8')) as { packages?: Record<string, { resolved?: string }> }
  return !/^https?:/.test(packages['node_modules/@svc/cli']?.resolved ?? 'https:')
}

/** The kits and the plugins of svc are not next to the core in every installation. */
function folderOf(name: string): string | undefined {
  try {
    const file = findPackageJSON(name, pathToFileURL(join(PACKAGE_FOLDER, 'x')))
    return file === undefined ? hostPackageFolder(name) : dirname(file)
  } catch {
    return hostPackageFolder(name)
  }
}

/** The clone of svc whose packages a new plugin links to, if it is not built. */
export function cloneToBuild(): string | undefined {
  const core = RUNS_SOURCES ? hostPackageFolder('@svc/core') : undefined
  return core === undefined || existsSync(join(core, 'dist')) ? undefined : join(PACKAGE_FOLDER, '..')
}
