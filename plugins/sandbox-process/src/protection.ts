import { constants } from 'node:fs'
import { access, lstat, readdir } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { placesOfAll, PROTECTED_NAMES, type ProtectedPlace, protectedPlaces, type ProtectedView } from '@svc/roots'
import { linkOfProtected, ofMissing, ofProtected } from './errors.ts'
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

/** What git runs, or takes as settings, of a repository; what lies in `modules` and `worktrees` has settings of its own. */
const GIT = ['hooks', 'config', 'config.worktree', 'commondir', 'modules', 'worktrees']
/** How far repositories within a writable folder are looked for. */
const [DEEPEST, MOST_FOLDERS] = [3, 300]

/** What decides how protected paths are kept. */
export interface ProtectOptions {
  readonly view: ProtectedView | undefined
  /** Whether the process runs for long: then an empty folder takes the place of a missing `.git` alone. */
  readonly lasting: boolean
  readonly isMountPoint: (path: string) => boolean
}

/** What keeps the protected paths in `write`, folders without links. Throws SANDBOX_PATH where that cannot be held. */
export async function protect(write: readonly string[], options: ProtectOptions): Promise<Protection> {
  const found = { read: new Set<string>(), anchors: new Set<string>(), absent: new Set<string>() }
  if (write.length > 0) {
    const own = await protectedPlaces(options.view)
    const named = await placesByName(write)
    for (const folder of write) {
      for (const place of own) await keep(folder, place, options, found, () => refuseLasting(folder, place))
      for (const place of named) await keep(folder, place, options, found, () => {})
    }
  }
  return { read: [...found.read], anchors: [...found.anchors], absent: [...found.absent] }
}

function refuseLasting(folder: string, { owner }: ProtectedPlace): never {
  throw ofMissing(folder, owner)
}

async function placesByName(allowed: readonly string[]): Promise<readonly ProtectedPlace[]> {
  const kinds = await Promise.all(allowed.map(path => lstat(path)))
  const write = allowed.filter((_, at) => kinds[at]!.isDirectory())
  const repositories = await Promise.all(write.map(folder => repositoriesIn(folder)))
  const git = [...write, ...repositories.flat()].flatMap(folder => GIT.map(name => join(folder, '.git', name)))
  const own = write.flatMap(folder => PROTECTED_NAMES.map(name => join(folder, name)))
  return placesOfAll([
    { paths: own, owner: 'the configuration of svc' },
    { paths: git, owner: 'git itself' },
  ])
}

/** Folders within a folder that have a `.git`; the largest trees are not looked through to their end. */
async function repositoriesIn(top: string): Promise<string[]> {
  const found: string[] = []
  let looked = 0
  for (let folders = [top], depth = 0; folders.length > 0 && depth <= DEEPEST; depth++) {
    const next: string[] = []
    for (const folder of folders) {
      if (++looked > MOST_FOLDERS) return found
      const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
      if (depth > 0 && entries.some(({ name }) => name === '.git')) found.push(folder)
      for (const one of entries)
        if (one.isDirectory() && one.name !== '.git' && one.name !== 'node_modules') next.push(join(folder, one.name))
    }
    folders = next
  }
  return found
}

type Found = { readonly [Key in keyof Protection]: Set<string> }

async function keep(
  folder: string,
  { place, owner, isLink }: ProtectedPlace,
  { lasting, isMountPoint }: ProtectOptions,
  found: Found,
  missing: (at: string) => void
): Promise<void> {
  if (isWithin(folder, place)) throw ofProtected(folder, owner)
  if (!isWithin(place, folder)) return
  if (isLink) throw linkOfProtected(place, owner)
  const around: string[] = []
  let at = folder
  for (const step of relative(folder, place).split(sep)) {
    if (at !== folder) around.push(at)
    at = join(at, step)
    const stats = isMountPoint(at) ? undefined : await lstat(at).catch(() => undefined)
    if (stats === undefined) {
      if (!(await isWritable(dirname(at)))) return
      // git takes an empty `.git` for none
      if (lasting && step !== '.git') return missing(at)
      found.absent.add(at)
      break
    }
    // a file on the way, such as the .git of a worktree: nothing can lie below it as long as it stays
    if (at === place || !stats.isDirectory()) found.read.add(at)
    if (!stats.isDirectory()) break
  }
  for (const one of around) found.anchors.add(one)
}

/** Where this process cannot make anything, no process in the sandbox can: it is the same user. */
const isWritable = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => true,
    () => false
  )
