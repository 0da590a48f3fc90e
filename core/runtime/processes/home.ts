import { mkdirSync, type Stats, statSync } from 'node:fs'
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

/** Files that this process has begun for a person to go on with, by path, each as it was then: one that is so still was changed by nobody. */
export const createdFiles = new Map<string, Stats>()
