import { constants } from 'node:fs'
import { access, lstat, readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { codeOf } from '@svc/core'
import {
  GIT_NAMES,
  isGitFolder,
  resolveProtectedPaths,
  PROTECTED_NAMES,
  type ProtectedEntry,
  protectedEntries,
  type ProtectedView,
} from '@svc/safe-fs'
import { linkOfProtected, ofMissing, ofProtected, ofTooMany } from './errors.ts'
import { isWithin } from './paths.ts'

/** Mounts in writable folders of a sandbox that keep the protected paths unchanged. */
export interface Protection {
  /** Paths bound over themselves, read-only. */
  readonly read: readonly string[]
  /** Folders around these, bound over themselves: a mount point cannot be renamed or replaced. */
  readonly anchors: readonly string[]
  /** Paths that do not exist: an empty read-only folder takes their place meanwhile. */
  readonly absent: readonly string[]
}

/** Bounds of the search for repositories in a writable folder. A folder beyond them is refused: a program could otherwise hide a repository. */
const [DEEPEST, MOST_FOLDERS, MOST_REPOSITORIES] = [3, 20_000, 150]

/** Options of the protection. */
export interface ProtectOptions {
  readonly view: ProtectedView | undefined
  /** True for a long-running process. Then an empty folder stands in only for a missing `.git`, and no protection relies on a mount over a file. */
  readonly lasting: boolean
  readonly isMountPoint: (path: string) => boolean
}

/** Returns the mounts that protect paths in `write`, folders without links. Throws SANDBOX_PATH if that is not possible. */
export async function protect(write: readonly string[], options: ProtectOptions): Promise<Protection> {
  const found = { read: new Set<string>(), anchors: new Set<string>(), absent: new Set<string>() }
  if (write.length > 0) {
    const own = await protectedEntries(options.view)
    const named = await placesByName(write, options.lasting)
    for (const folder of write) {
      for (const place of own) await keep(folder, place, options, found, () => refuseLasting(folder, place))
      for (const place of named) await keep(folder, place, options, found, () => {})
    }
  }
  const read = [...found.read]
  // a read-only folder protects all that it holds
  const isFree = (path: string) => !read.some(folder => folder !== path && isWithin(path, folder))
  return {
    read: read.filter(isFree),
    anchors: [...found.anchors].filter(path => !found.read.has(path) && isFree(path)),
    absent: [...found.absent].filter(isFree),
  }
}

function refuseLasting(folder: string, { owner }: ProtectedEntry): never {
  throw ofMissing(folder, owner)
}

/** A long-running process must not write to `.git` at all: `git config` on this machine replaces the mounted file, which ends the mount. */
async function placesByName(allowed: readonly string[], lasting: boolean): Promise<readonly ProtectedEntry[]> {
  const kinds = await Promise.all(allowed.map(path => lstat(path)))
  const write = allowed.filter((_, at) => kinds[at]!.isDirectory())
  const within = await Promise.all(write.map(folder => gitFoldersIn(folder)))
  const folders = [...write.map(folder => join(folder, '.git')), ...within.flat()]
  const git = [...new Set(folders)].flatMap(folder => (lasting ? [folder] : GIT_NAMES.map(name => join(folder, name))))
  const own = write.flatMap(folder => PROTECTED_NAMES.map(name => join(folder, name)))
  return resolveProtectedPaths([
    { paths: own, owner: 'the configuration of svc' },
    { paths: git, owner: 'git' },
  ])
}

/** Finds the `.git` of repositories in a folder, and git folders with any other name. Throws SANDBOX_PATH if the folder is too large to search. */
async function gitFoldersIn(top: string): Promise<string[]> {
  const found: string[] = []
  let looked = 0
  for (let folders = [top], depth = 0; folders.length > 0 && depth <= DEEPEST; depth++) {
    looked += folders.length
    if (looked > MOST_FOLDERS) throw ofTooMany(top, `more than ${MOST_FOLDERS} folders`)
    const lists = await Promise.all(folders.map(folder => readdir(folder, { withFileTypes: true }).catch(() => [])))
    const next: string[] = []
    for (const [at, entries] of lists.entries()) {
      const folder = folders[at]!
      const names = entries.map(({ name }) => name)
      if (names.includes('.git')) found.push(join(folder, '.git'), ...(await behindFile(join(folder, '.git'))))
      const inner = entries.filter(entry => entry.isDirectory() && entry.name !== '.git' && entry.name !== 'node_modules')
      if (isGitFolder(names)) found.push(folder)
      else next.push(...inner.map(({ name }) => join(folder, name)))
    }
    if (found.length > MOST_REPOSITORIES) throw ofTooMany(top, `more than ${MOST_REPOSITORIES} repositories`)
    folders = next
  }
  return found
}

/** Returns the git folder that a `.git` file points to, and the common folder of its worktrees. */
async function behindFile(file: string): Promise<string[]> {
  const line = async (path: string) => (await readFile(path, 'utf8').catch(() => '')).trim()
  if (!(await lstat(file).catch(() => undefined))?.isFile()) return []
  const [, target] = /^gitdir: (.+)$/.exec(await line(file)) ?? []
  if (target === undefined) return []
  const folder = resolve(dirname(file), target)
  const common = await line(join(folder, 'commondir'))
  return common === '' ? [folder] : [folder, resolve(folder, common)]
}

type ProtectionSets = { readonly [Key in keyof Protection]: Set<string> }

async function keep(
  folder: string,
  { place, owner, isLink }: ProtectedEntry,
  options: ProtectOptions,
  found: ProtectionSets,
  refuse: () => void
): Promise<void> {
  if (isWithin(folder, place)) throw ofProtected(folder, owner)
  if (!isWithin(place, folder)) return
  if (isLink) throw linkOfProtected(place, owner)
  await keepBelow(folder, place, options, found, refuse)
}

/** Checks each step on the path from a folder down to a protected path. */
async function keepBelow(
  folder: string,
  place: string,
  { lasting, isMountPoint }: ProtectOptions,
  found: ProtectionSets,
  refuse: () => void
): Promise<void> {
  const around: string[] = []
  let at = folder
  for (const step of relative(folder, place).split(sep)) {
    if (at !== folder) around.push(at)
    at = join(at, step)
    const stats = isMountPoint(at) ? undefined : await lstat(at).catch(() => undefined)
    // git ignores an empty `.git`
    const mustStay = lasting && step !== '.git'
    if (stats === undefined) {
      if (!(await isWritable(dirname(at)))) return
      if (mustStay) return refuse()
      found.absent.add(at)
      break
    }
    // an editor replaces the file, which ends the mount
    if (mustStay && at === place && stats.isFile()) refuse()
    // a file on the path, such as the .git of a worktree: nothing can be below it while it exists
    if (at === place || !stats.isDirectory()) found.read.add(at)
    if (!stats.isDirectory()) break
  }
  for (const item of around) found.anchors.add(item)
}

/** Whether a process in the sandbox could write: it is the same user as this process. The owner of a folder can also change its mode. */
const isWritable = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => true,
    async (error: unknown) => codeOf(error) === 'EACCES' && (await lstat(folder)).uid === process.getuid?.()
  )
