import { lstatSync, realpathSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'

const WORLD_WRITABLE = 0o002
const GROUP_WRITABLE = 0o020
const STICKY = 0o1000
const ROOT = 0

/**
 * Says why a user other than this one and root may have written a file: its owner, its mode, or those of the folder that holds it. Of a symbolic link the link
 * and its target count. `undefined` where nobody else can. Systems without user ids have no such reason.
 */
export function foreignReason(file: string): string | undefined {
  const real = realpathSync(file)
  const link = lstatSync(file)
  // the mode of a link means nothing: its folder decides who replaces it
  const reasons = [
    link.isSymbolicLink() ? ownerReason(link, 'the link') : undefined,
    reasonOf(lstatSync(real), 'it'),
    ...[...new Set([dirname(file), dirname(real)])].map(folder => reasonOf(lstatSync(realpathSync(folder)), 'its folder')),
  ]
  return reasons.find(reason => reason !== undefined)
}

/** The same of one file or folder alone, by what the system says of it. */
export const reasonOf = (stats: Stats, what: string): string | undefined => ownerReason(stats, what) ?? modeReason(stats, what)

function ownerReason({ uid }: Stats, what: string): string | undefined {
  const own = process.getuid?.()
  return own === undefined || uid === own || uid === ROOT ? undefined : `${what} belongs to another user (uid ${uid})`
}

function modeReason(stats: Stats, what: string): string | undefined {
  // in a folder like /tmp only the owner of a file can replace it
  if (process.getgid === undefined || (stats.isDirectory() && (stats.mode & STICKY) !== 0)) return undefined
  if ((stats.mode & WORLD_WRITABLE) !== 0) return `every user of this machine can write ${what}`
  const isForeignGroup = (stats.mode & GROUP_WRITABLE) !== 0 && stats.gid !== process.getgid()
  return isForeignGroup ? `the group ${stats.gid} can write ${what}` : undefined
}
