import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { userHome } from './home.ts'

/** The files a folder may keep its configuration in: one of them. */
export const CONFIG_FILES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/** Those of them that a folder has. */
export const configFilesIn = (folder: string): string[] =>
  CONFIG_FILES.map(name => join(folder, name)).filter(file => existsSync(file))

/** The nearest folder upward that has configuration. The search ends with the root of a repository, the user's home folder, or the root of a file system. */
export function nearestConfig(from: string): string | undefined {
  if (configFilesIn(from).length > 0) return from
  return isLast(from) ? undefined : nearestConfig(dirname(from))
}

const isLast = (folder: string): boolean =>
  dirname(folder) === folder ||
  existsSync(join(folder, '.git')) ||
  realOf(folder) === realOf(userHome()) ||
  deviceOf(folder) !== deviceOf(dirname(folder))

const deviceOf = (folder: string) => statSync(folder, { throwIfNoEntry: false })?.dev

function realOf(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
