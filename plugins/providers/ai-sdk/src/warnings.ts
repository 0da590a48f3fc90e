import type { Log } from '@svc/core'
import type { Warning } from './sdk.ts'

const MOST = 100

/** Tells the log what a package could not do as asked: each thing once, and no more than a hundred things. */
export function createWarn(provider: string, log: Log, hide: (text: string) => string): (warnings: readonly Warning[]) => void {
  const told = new Set<string>()
  return warnings => {
    for (const warning of warnings ?? []) {
      const what = hide(wordsOf(warning))
      if (told.has(what) || told.size >= MOST) continue
      told.add(what)
      log.warn({ provider, warning: what }, 'the package does not do all that it was asked')
    }
  }
}

const wordsOf = ({ type, feature, setting, details, message }: Warning): string =>
  [type, feature, setting, details, message].filter(one => typeof one === 'string').join(': ')
