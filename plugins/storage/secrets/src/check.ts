import type { Check, CheckReport, Secrets } from '@svc/core/contracts'
import type { CallContext } from '@svc/core'
import type { SecretsConfig } from './config.ts'
import { readSmall } from './small-file.ts'
import { isPublicFile, MAX_VALUE_BYTES, type SourceReader } from './sources.ts'

const FRESH_MS = 10_000
const MOST_NAMES = 10

/** The check `secrets`: whether all secrets can be read, and whether other users can read their files. */
export function createCheck(secrets: Pick<Secrets, 'list'>, config: SecretsConfig & SourceReader): Check {
  let report: Promise<CheckReport> | undefined
  let at = Number.NEGATIVE_INFINITY
  const examine = (ctx: CallContext) => reportOf(secrets, config, ctx)
  return {
    examine,
    async probe(ctx) {
      if (report && performance.now() - at < FRESH_MS) return report
      at = performance.now()
      report = examine(ctx).catch((error: unknown) => {
        report = undefined
        throw error
      })
      return report
    },
  }
}

async function reportOf(secrets: Pick<Secrets, 'list'>, config: SecretsConfig, ctx: CallContext): Promise<CheckReport> {
  const unread = (await secrets.list(ctx)).filter(({ state }) => state !== 'ready')
  const open = Object.entries(config.sources).flatMap(([name, source]) => (isPublicFile(name, source) ? [name] : []))
  const reasons = [
    ...(unread.length > 0 ? [`not readable: ${named(unread.map(({ name, state }) => `${name} (${WORDS[state]})`))}`] : []),
    ...(open.length > 0 ? [`all users of this machine can read the files of ${named(open)}; remove that right with chmod`] : []),
    ...(isPublicKey(config) ? ['all users of this machine can read secrets.key_file; remove that right with chmod'] : []),
  ]
  return reasons.length === 0 ? { status: 'healthy' } : { status: 'degraded', reason: reasons.join('; ') }
}

const WORDS = {
  ready: 'ready',
  missing: 'no value',
  no_key: 'no key',
  unreadable: 'sealed with another key, or changed',
} as const

const named = (names: readonly string[]) =>
  names.slice(0, MOST_NAMES).join(', ') + (names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : '')

function isPublicKey({ key_file: file }: SecretsConfig): boolean {
  try {
    return file !== undefined && readSmall(file, MAX_VALUE_BYTES).isPublic
  } catch {
    return false
  }
}
