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

/** What is mounted in folders that a sandbox may write, so that what is protected in them stays as it is. */
export interface Protection {
  /** Bound over themselves, for reading only. */
  readonly read: readonly string[]
  /** Folders around these, bound over themselves: a mount point cannot be renamed, so nothing else can take its place. */
  readonly anchors: readonly string[]
  /** Nothing is there: an empty folder that cannot be written takes the place meanwhile. */
  readonly absent: readonly string[]
}

/** How far repositories within a writable folder are looked for. A program could make folders until one is not found: so more are refused, not left out. */
const [DEEPEST, MOST_FOLDERS, MOST_REPOSITORIES] = [3, 20_000, 150]

/** What decides how protected paths are kept. */
export interface ProtectOptions {
  readonly view: ProtectedView | undefined
  /** Whether the process runs for long: then an empty folder takes the place of a missing `.git` alone, and nothing rests on the mount over a file. */
  readonly lasting: boolean
  readonly isMountPoint: (path: string) => boolean
}

/** What keeps the protected paths in `write`, folders without links. Throws SANDBOX_PATH where that cannot be held. */
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
  // what lies in a folder that is bound for reading only needs nothing more
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

/** Of git a lasting process may write nothing: a person's `git config` puts another file in the place of the one that is mounted over, and so takes the mount away. */
async function placesByName(allowed: readonly string[], lasting: boolean): Promise<readonly ProtectedEntry[]> {
  const kinds = await Promise.all(allowed.map(path => lstat(path)))
  const write = allowed.filter((_, at) => kinds[at]!.isDirectory())
  const within = await Promise.all(write.map(folder => gitFoldersIn(folder)))
  const folders = [...write.map(folder => join(folder, '.git')), ...within.flat()]
  const git = [...new Set(folders)].flatMap(folder => (lasting ? [folder] : GIT_NAMES.map(name => join(folder, name))))
  const own = write.flatMap(folder => PROTECTED_NAMES.map(name => join(folder, name)))
  return resolveProtectedPaths([
    { paths: own, owner: 'the configuration of svc' },
    { paths: git, owner: 'git itself' },
  ])
}

/** The `.git` of repositories within a folder, and git folders of any other name. Throws SANDBOX_PATH where there is too much to look through. */
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
      const inner = entries.filter(one => one.isDirectory() && one.name !== '.git' && one.name !== 'node_modules')
      if (isGitFolder(names)) found.push(folder)
      else next.push(...inner.map(({ name }) => join(folder, name)))
    }
    if (found.length > MOST_REPOSITORIES) throw ofTooMany(top, `more than ${MOST_REPOSITORIES} repositories`)
    folders = next
  }
  return found
}

/** The git folder that a `.git` file leads to, and the one that this shares with others. */
async function behindFile(file: string): Promise<string[]> {
  const line = async (path: string) => (await readFile(path, 'utf8').catch(() => '')).trim()
  if (!(await lstat(file).catch(() => undefined))?.isFile()) return []
  const [, target] = /^gitdir: (.+)$/.exec(await line(file)) ?? []
  if (target === undefined) return []
  const folder = resolve(dirname(file), target)
  const common = await line(join(folder, 'commondir'))
  return common === '' ? [folder] : [folder, resolve(folder, common)]
}

type Found = { readonly [Key in keyof Protection]: Set<string> }

async function keep(
  folder: string,
  { place, owner, isLink }: ProtectedEntry,
  options: ProtectOptions,
  found: Found,
  refuse: () => void
): Promise<void> {
  if (isWithin(folder, place)) throw ofProtected(folder, owner)
  if (!isWithin(place, folder)) return
  if (isLink) throw linkOfProtected(place, owner)
  await keepBelow(folder, place, options, found, refuse)
}

/** Looks at each step on the way from a folder down to a place in it. */
async function keepBelow(
  folder: string,
  place: string,
  { lasting, isMountPoint }: ProtectOptions,
  found: Found,
  refuse: () => void
): Promise<void> {
  const around: string[] = []
  let at = folder
  for (const step of relative(folder, place).split(sep)) {
    if (at !== folder) around.push(at)
    at = join(at, step)
    const stats = isMountPoint(at) ? undefined : await lstat(at).catch(() => undefined)
    // git takes an empty `.git` for none
    const mustStay = lasting && step !== '.git'
    if (stats === undefined) {
      if (!(await isWritable(dirname(at)))) return
      if (mustStay) return refuse()
      found.absent.add(at)
      break
    }
    // an editor puts another file in its place, which ends the mount
    if (mustStay && at === place && stats.isFile()) refuse()
    // a file on the way, such as the .git of a worktree: nothing can lie below it as long as it stays
    if (at === place || !stats.isDirectory()) found.read.add(at)
    if (!stats.isDirectory()) break
  }
  for (const one of around) found.anchors.add(one)
}

/** Where this process cannot make anything, no process in the sandbox can: it is the same user. The owner of a folder may change its mode, though. */
const isWritable = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => true,
    async (error: unknown) => codeOf(error) === 'EACCES' && (await lstat(folder)).uid === process.getuid?.()
  )
