import { existsSync, statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { packagesAround, pathsOfCode } from '@svc/core'
import type { Server } from './servers.ts'

/**
 * The files that servers of this machine are started from, as far as their command lines name them: svc runs them with its own rights, so whoever writes
 * them runs code. A script brings what it imports, and the folder it lies in unless the working folder of svc lies in that. Servers in the sandbox are left out.
 */
export function programFiles(servers: readonly Server[], cwd: string = process.cwd()): string[] {
  const open = servers.filter(({ entry }) => entry.command !== undefined && entry.sandbox !== true)
  return [...new Set(open.flatMap(({ entry: { command = '', args = [] } }) => filesOf(command, args, cwd)))]
}

/** They look for programs in the working folder first. */
const STARTERS = /(^|\/)(npx|npm|pnpm|yarn|bunx)$/
/** They can be started with a folder. */
const INTERPRETERS = /(^|\/)(node|bun|deno|tsx|python[\d.]*)$/

function filesOf(command: string, args: readonly string[], cwd: string): string[] {
  const started = STARTERS.test(command) ? ['node_modules', 'package.json', '.npmrc'].map(name => join(cwd, name)) : []
  const program = INTERPRETERS.test(command) ? args.find(arg => !arg.startsWith('-')) : undefined
  const folder = program === undefined ? [] : folderAt(resolve(cwd, program), cwd)
  return [...started, ...folder, ...[command, ...args].flatMap(word => pathsOf(word, cwd))]
}

const folderAt = (path: string, cwd: string) =>
  existsSync(path) && statSync(path).isDirectory() && !isWithin(cwd, path) ? [path] : []

function pathsOf(word: string, cwd: string): string[] {
  // `--import=./hook.mjs` names a file as well
  const path = resolve(cwd, /^-[^=]*=(.+)$/.exec(word)?.[1] ?? word)
  if (!existsSync(path) || !statSync(path).isFile()) return []
  const packages = packagesAround(path)
  if (packages !== undefined) return [packages]
  return [path, ...pathsOfCode(CODE.test(path) ? [path] : []), ...(isWithin(cwd, dirname(path)) ? [] : [dirname(path)])]
}

const CODE = /\.[cm]?[jt]s$/

const isWithin = (path: string, folder: string) => `${path}${sep}`.startsWith(`${folder}${sep}`)
