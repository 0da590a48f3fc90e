import type { Hash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, type Stats, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { withImports } from './imported.ts'

/** Configuration that is code: its file, and the hash of it and its relative imports. */
export interface ConfigCode {
  readonly file: string
  readonly hash: string
}

/** The folder of the svc home that records the allowed code: one file per configuration. */
export const TRUSTED = 'trusted-config'

/** Hashes a configuration in code. Nothing of it runs. */
export function configCode(file: string): ConfigCode {
  const hash = sha256()
  for (const withImport of withImports(file)) {
    const bytes = readFileSync(withImport)
    hash.update(`${withImport}\0${bytes.length}\0`).update(bytes)
  }
  return { file: realpathSync(file), hash: hash.digest('hex') }
}

/** Whether the user has allowed exactly this code to run. */
export function isTrusted(home: string, { file, hash }: ConfigCode): boolean {
  return trustedHash(home, file) === hash
}

/** The hash that the user has allowed for a file, if any. */
export function trustedHash(home: string, file: string): string | undefined {
  const entry = entryOf(home, file)
  try {
    return foreignReason(entry) === undefined ? readFileSync(entry, 'utf8').trim() : undefined
  } catch {
    return undefined // no record: the code is not trusted
  }
}

/** Allows this code to run, in place of an earlier version of the file. */
export function trustCode(home: string, { file, hash }: ConfigCode): void {
  const entry = entryOf(home, file)
  mkdirSync(dirname(entry), { recursive: true, mode: 0o700 })
  const next = `${entry}.${process.pid}`
  writeFileSync(next, `${hash}\n`, { mode: 0o600 })
  renameSync(next, entry)
}

const entryOf = (home: string, file: string) => join(home, TRUSTED, sha256().update(file).digest('hex'))

/** Loaded on first use: most starts have no configuration in code. */
const sha256 = (): Hash => process.getBuiltinModule('node:crypto').createHash('sha256')

const WORLD_WRITABLE = 0o002
const GROUP_WRITABLE = 0o020
const STICKY = 0o1000
const ROOT = 0

/**
 * Returns why a user other than this one and root can have written a file: its owner, its mode, or those of the folder that
 * contains it. For a symbolic link, the link and its target are checked. Returns `undefined` when no other user can, and on
 * systems without user ids.
 */
export function foreignReason(file: string): string | undefined {
  const real = realpathSync(file)
  const link = lstatSync(file)
  // The mode of a link has no meaning: its folder decides who can replace it.
  const reasons = [
    link.isSymbolicLink() ? ownerReason(link, 'the link') : undefined,
    reasonOf(lstatSync(real), 'the file'),
    ...[...new Set([dirname(file), dirname(real)])].map(folder => reasonOf(lstatSync(realpathSync(folder)), 'its folder')),
  ]
  return reasons.find(reason => reason !== undefined)
}

/** The same for one file or folder alone, by its stats. */
export const reasonOf = (stats: Stats, what: string): string | undefined => ownerReason(stats, what) ?? modeReason(stats, what)

function ownerReason({ uid }: Stats, what: string): string | undefined {
  const own = process.getuid?.()
  return own === undefined || uid === own || uid === ROOT ? undefined : `${what} belongs to another user (uid ${uid})`
}

function modeReason(stats: Stats, what: string): string | undefined {
  // In a folder with the sticky bit, such as /tmp, only the owner can replace a file.
  if (process.getgid === undefined || (stats.isDirectory() && (stats.mode & STICKY) !== 0)) return undefined
  if ((stats.mode & WORLD_WRITABLE) !== 0) return `all users of this machine can write ${what}`
  const isForeignGroup = (stats.mode & GROUP_WRITABLE) !== 0 && stats.gid !== process.getgid()
  return isForeignGroup ? `the group ${stats.gid} can write ${what}` : undefined
}
