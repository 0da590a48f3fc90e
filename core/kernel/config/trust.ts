import type { Hash } from 'node:crypto'
import { mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { withImported } from './imported.ts'
import { foreignReason } from './owner.ts'

/** Configuration that is code: its file and what it and its relative imports contain. */
export interface ConfigCode {
  readonly file: string
  readonly hash: string
}

/** The folder of the svc home that keeps which code may run: a file for each configuration. */
export const TRUSTED = 'trusted-config'

/** Reads what a configuration in code contains. Nothing of it runs. */
export function configCode(file: string): ConfigCode {
  const hash = sha256()
  for (const one of withImported(file)) {
    const bytes = readFileSync(one)
    hash.update(`${one}\0${bytes.length}\0`).update(bytes)
  }
  return { file: realpathSync(file), hash: hash.digest('hex') }
}

/** Whether the user has allowed this very code to run. */
export function isTrusted(home: string, { file, hash }: ConfigCode): boolean {
  return hashBefore(home, file) === hash
}

/** The hash that the user has allowed for a file; `undefined` for none. */
export function hashBefore(home: string, file: string): string | undefined {
  const entry = entryOf(home, file)
  try {
    return foreignReason(entry) === undefined ? readFileSync(entry, 'utf8').trim() : undefined
  } catch {
    return undefined // there is none, so the code is not trusted
  }
}

/** Remembers that this code may run, in place of what the file contained before. */
export function trustCode(home: string, { file, hash }: ConfigCode): void {
  const entry = entryOf(home, file)
  mkdirSync(dirname(entry), { recursive: true, mode: 0o700 })
  const next = `${entry}.${process.pid}`
  writeFileSync(next, `${hash}\n`, { mode: 0o600 })
  renameSync(next, entry)
}

const entryOf = (home: string, file: string) => join(home, TRUSTED, sha256().update(file).digest('hex'))

/** Loaded where it is used: most starts have no configuration in code. */
const sha256 = (): Hash => process.getBuiltinModule('node:crypto').createHash('sha256')
