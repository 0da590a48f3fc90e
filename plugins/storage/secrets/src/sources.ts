import type { CallContext, Log } from '@svc/core'
import type { Check, CheckReport, Secret, SecretInfo, Secrets } from '@svc/core/contracts'
import type { SecretsConfig, Source } from './config.ts'
import { sourceMissing } from './errors.ts'
import { readSmall } from './small-file.ts'

export const MAX_VALUE_BYTES = 65_536

export interface SourceReader {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Pick<Log, 'warn'>
}

/** The source for a person. */
export const sourceWords = (source: Source): string => ('env' in source ? `the variable ${source.env}` : 'a file')

/** Removes one line break at the end, which editors and `echo` add. */
export const withoutLastBreak = (text: string): string => text.replace(/\r?\n$/, '')

/** Reads the value of a variable or file. Throws SECRET_UNREADABLE. */
export function readSource(name: string, source: Source, { env }: SourceReader): Secret {
  const found = 'env' in source ? variable(name, source.env, env) : file(name, source.file)
  if (found.value === '') throw sourceMissing(name, `${sourceWords(source)} is empty`)
  return found
}

function variable(name: string, variableName: string, env: SourceReader['env']): Secret {
  const value = Object.hasOwn(env, variableName) ? env[variableName] : undefined
  if (value === undefined) throw sourceMissing(name, `the variable ${variableName} is not set`)
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES)
    throw sourceMissing(name, `the variable ${variableName} is larger than ${MAX_VALUE_BYTES} bytes`)
  return { value, version: '1' }
}

function file(name: string, path: string): Secret & { readonly changedAt: number; readonly isPublic: boolean } {
  try {
    const { text, changedAt, isPublic } = readSmall(path, MAX_VALUE_BYTES)
    return { value: withoutLastBreak(text), version: String(changedAt), changedAt, isPublic }
  } catch (error) {
    throw sourceMissing(name, (error as Error).message)
  }
}

export function infoOf(name: string, source: Source, reader: SourceReader): SecretInfo {
  const kind = 'env' in source ? 'environment' : 'file'
  try {
    readSource(name, source, reader)
    if (!('file' in source)) return { name, source: kind, state: 'ready' }
    const { changedAt } = file(name, source.file)
    return { name, source: kind, state: 'ready', createdAt: changedAt, changedAt }
  } catch {
    return { name, source: kind, state: 'missing' }
  }
}

/** Whether all users of this machine can read the file of a secret. */
function isPublicFile(name: string, source: Source): boolean {
  try {
    return 'file' in source && file(name, source.file).isPublic
  } catch {
    return false
  }
}

// --- the check ---

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
