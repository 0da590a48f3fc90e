import type { Secret, SecretInfo } from '@svc/core/contracts'
import type { Log } from '@svc/core'
import type { Source } from './config.ts'
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
export function isPublicFile(name: string, source: Source): boolean {
  try {
    return 'file' in source && file(name, source.file).isPublic
  } catch {
    return false
  }
}
