import { existsSync, statSync } from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import { packagesAround } from '@svc/core'
import type { Server } from './servers.ts'

/**
 * The files that servers of this machine are started from, as far as their command lines name them: svc runs them with its own rights, so whoever writes
 * them runs code. A script brings the folder it lies in, unless the working folder of svc lies in that. Servers in the sandbox are left out.
 */
export function programFiles(servers: readonly Server[], cwd: string = process.cwd()): string[] {
  const open = servers.filter(({ entry }) => entry.command !== undefined && entry.sandbox !== true)
  return [...new Set(open.flatMap(({ entry }) => [entry.command!, ...(entry.args ?? [])].flatMap(word => pathsOf(word, cwd))))]
}

function pathsOf(word: string, cwd: string): string[] {
  if (!word.includes(sep) && !/\.[a-z]+$/i.test(word)) return []
  const path = resolve(cwd, word)
  if (!existsSync(path) || !statSync(path).isFile()) return []
  const packages = packagesAround(path)
  if (packages !== undefined) return [packages]
  return `${cwd}${sep}`.startsWith(`${dirname(path)}${sep}`) ? [path] : [path, dirname(path)]
}
