import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Config,
  foreignReason,
  modulesIn,
  packagesAround,
  type PluginEntry,
  shownPath,
  type SvcError,
  withImports,
} from '@svc/core'
import { pluginForeign } from './errors.ts'
import { pathOfPlugin } from './plugin-paths.ts'
import { placed } from './plugin-places.ts'

/**
 * Returns a problem for each plugin in a folder or file of the project that another user can write: its code would run as this
 * user.
 */
export function foreignPlugins(config: Config, home: string): SvcError[] {
  return placed(config.plugins, home).flatMap(entry => {
    const path = ownPath(entry)
    const [first] = path === undefined ? [] : modulesOf(path).flatMap(file => foreignReason(file) ?? [])
    return first === undefined ? [] : [pluginForeign(shownPath(path!), first)]
  })
}

/** The user who installs a package is responsible for its owner. */
function ownPath(entry: PluginEntry): string | undefined {
  const isPath = entry.use instanceof URL || (typeof entry.use === 'string' && /^(\.{0,2}\/|\.{1,2}$|file:)/.test(entry.use))
  const path = isPath ? pathOfPlugin(entry) : undefined
  return path === undefined || !existsSync(path) || packagesAround(path) !== undefined ? undefined : path
}

function modulesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return withImports(path)
  return [join(path, 'package.json'), ...modulesIn(path)].filter(file => existsSync(file))
}
