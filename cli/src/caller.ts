import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

/** Where the person stands: npm runs a script in the folder of its package, so that `npm run svc` from another folder would take a path for one of the repository. */
export function callerFolder(): string {
  const { npm_lifecycle_event: script, INIT_CWD: called } = process.env
  return script === 'svc' && called !== undefined && existsSync(called) ? called : process.cwd()
}

/** A path of the command line, whole. */
export const fromCaller = (path: string): string => resolve(callerFolder(), path)

/** A path that begins with a dot, whole; all else as it is. */
export const dottedFromCaller = (spec: string): string => (/^\.{1,2}(\/|$)/.test(spec) ? fromCaller(spec) : spec)
