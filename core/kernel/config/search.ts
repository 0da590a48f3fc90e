import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { userHome } from './home.ts'

/** The files a folder may keep its configuration in: one of them. */
export const CONFIG_FILES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/** Those of them that a folder has. A folder of that name is none: a sandbox puts one where no file may be made. */
export const configFilesIn = (folder: string): string[] =>
  CONFIG_FILES.map(name => join(folder, name)).filter(file => statSync(file, { throwIfNoEntry: false })?.isDirectory() === false)

/** The nearest folder upward that has configuration (load-file.ts says why cosmiconfig does not search). The search ends with the root of a repository, the user's home folder, or the root of a file system. */
export function nearestConfig(from: string): string | undefined {
  if (configFilesIn(from).length > 0) return from
  return isLast(from) ? undefined : nearestConfig(dirname(from))
}

const isLast = (folder: string): boolean =>
  dirname(folder) === folder ||
  isRepository(folder) ||
  realOf(folder) === realOf(userHome()) ||
  deviceOf(folder) !== deviceOf(dirname(folder))

/** An empty `.git` is none, for git as well: a sandbox puts one where nothing may be made. */
const isRepository = (folder: string) =>
  existsSync(join(folder, '.git', 'HEAD')) || statSync(join(folder, '.git'), { throwIfNoEntry: false })?.isFile() === true

const deviceOf = (folder: string) => statSync(folder, { throwIfNoEntry: false })?.dev

function realOf(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
