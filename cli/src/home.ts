import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

/** The svc home: `SVC_HOME`, else `~/.svc`. */
export function svcHome(env: NodeJS.ProcessEnv = process.env): string {
  return env.SVC_HOME ? resolve(env.SVC_HOME) : join(homedir(), '.svc')
}

/** Makes the svc home where it is missing, for its owner alone; returns it. */
export function ensureHome(home: string = svcHome()): string {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  if ((statSync(home).mode & 0o077) !== 0) chmodSync(home, 0o700)
  return home
}
