import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { svcHome } from '@svc/core/processes'

/** Makes the svc home where it is missing, for its owner alone; returns it. */
export function ensureHome(home: string = svcHome()): string {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  if ((statSync(home).mode & 0o077) !== 0) chmodSync(home, 0o700)
  return home
}
