import { mkdirSync, statSync } from 'node:fs'
import { svcHome } from '@svc/core'
import { homeUnusable } from './errors.ts'

/** Makes the svc home where it is missing, for its owner alone; returns it. Throws HOME_UNUSABLE. */
export function ensureHome(home: string = svcHome()): string {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    if (!statSync(home).isDirectory()) throw new Error('it is no folder')
  } catch (error) {
    throw homeUnusable(home, error)
  }
  return home
}
