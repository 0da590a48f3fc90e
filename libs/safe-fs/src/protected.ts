import { readdir, readlink } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { CONFIG_FILES, type SlotView } from '@svc/core'
import type { ProtectedPaths } from '@svc/core/contracts'
import { isProtected } from './errors.ts'

/** The current protected paths of a host. */
export type ProtectedView = SlotView<ProtectedPaths>

/**
 * Paths of configuration files relative to any folder, for sandboxes that cannot match names. svc reads the configuration of its
 * working directory.
 */
export const PROTECTED_NAMES: readonly string[] = [
  ...CONFIG_FILES,
  ...['ts', 'mts', 'js', 'mjs', 'cjs', 'json', 'yaml', 'yml'].map(end => `.config/config.${end}`),
]

const CONFIGURATION = /(^|\/)(svc\.config\.([cm]?[jt]s|json|ya?ml)|\.config\/config\.([cm]?[jt]s|json|ya?ml)|svc-plugins\.lock)$/i
const GIT = /(^|\/)(\.git(config)?|\.config\/git)(\/|$)/i

/** Entries of a git folder that git runs or reads as settings. Those in `modules` and `worktrees` have their own settings. */
export const GIT_NAMES: readonly string[] = ['hooks', 'config', 'config.worktree', 'commondir', 'modules', 'worktrees']

/** Whether git treats a folder with these entries as a repository, whatever its name: bare repositories, and targets of a `.git` file. */
export const isGitFolder = (names: readonly string[]): boolean => ['HEAD', 'objects', 'refs'].every(name => names.includes(name))

/** Refuses paths in a git folder with another name than `.git`. Throws PATH_PROTECTED. */
async function refuseInGitFolder(real: string, shown: string): Promise<void> {
  for (let at = dirname(real); at !== dirname(at); at = dirname(at))
    if (isGitFolder(await readdir(at).catch(() => []))) throw ofGit(shown)
}

/**
 * Refuses to move a folder with entries that are protected by name, before or after the move. Otherwise a repository could be
 * replaced. `folder` is its current path, `from` and `to` are displayed paths. Throws PATH_PROTECTED.
 */
export async function refuseMoveOf(folder: string, from: string, to: string, signal: AbortSignal): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true })
  if (isGitFolder(entries.map(({ name }) => name))) throw ofGit(from)
  for (const entry of entries) {
    signal.throwIfAborted()
    const [before, after] = [`${from}/${entry.name}`, `${to}/${entry.name}`]
    refuseName(before, before)
    refuseName(after, after)
    if (entry.isDirectory()) await refuseMoveOf(`${folder}/${entry.name}`, before, after, signal)
  }
}

const ofGit = (shown: string) => isProtected(shown, 'belongs to git and is read-only')

/** Refuses names that programs execute or read as settings: the configuration of svc, and hooks and settings of git. Throws PATH_PROTECTED. */
export function refuseName(path: string, shown: string): void {
  if (CONFIGURATION.test(path)) throw isProtected(shown, 'is the configuration of svc and is read-only')
  if (GIT.test(path)) throw ofGit(shown)
}

/**
 * Refuses to change a path without links that is protected, inside a protected path, or contains one. Throws PATH_PROTECTED.
 * Resolves links at each call, because a sandboxed program can change them.
 */
export async function refuseChange(view: ProtectedView | undefined, real: string, shown: string): Promise<void> {
  refuseName(real, shown)
  await refuseInGitFolder(real, shown)
  const changed = folded(real)
  for (const { place, owner, hint } of await protectedEntries(view)) {
    const kept = folded(place)
    const rule = `${owner}, and is read-only for tools${hint === undefined ? '' : ` (operator: ${hint})`}`
    if (isIn(changed, kept)) throw isProtected(shown, `belongs to ${rule}`)
    if (isIn(kept, changed)) throw isProtected(shown, `contains a path that belongs to ${rule}`)
  }
}

/** The owner of the protected path that contains a path without links; `undefined` if there is none. */
export async function ownerOf(view: ProtectedView | undefined, real: string): Promise<string | undefined> {
  return (await protectedEntries(view)).find(({ place }) => isIn(folded(real), folded(place)))?.owner
}

/** A protected path without links. */
export interface ProtectedEntry {
  readonly place: string
  readonly owner: string
  readonly hint?: string
  /** Whether it is a link on the path to a protected path. Replacing the link would change the target. */
  readonly isLink: boolean
}

/** The current locations of all protected paths. */
export async function protectedEntries(view: ProtectedView | undefined): Promise<readonly ProtectedEntry[]> {
  return resolveProtectedPaths([...(view?.entries() ?? [])].map(([, entry]) => entry))
}

/** The same for given paths. */
export async function resolveProtectedPaths(given: readonly ProtectedPaths[]): Promise<readonly ProtectedEntry[]> {
  const known = new Map<string, Promise<string | undefined>>()
  const look = (path: string) => {
    const target = known.get(path) ?? readlink(path).catch(() => undefined)
    known.set(path, target)
    return target
  }
  const all = given.flatMap(({ paths, ...about }) => paths.map(path => ({ path, about })))
  const found = await Promise.all(
    all.map(async ({ path, about }) => (await placesOf(path, look)).map(place => ({ ...place, ...about })))
  )
  return found.flat()
}

/** The link limit of Linux. */
const MOST_LINKS = 40

/** The links on a path, and its final target, which need not exist. */
async function placesOf(
  path: string,
  look: (path: string) => Promise<string | undefined>
): Promise<Pick<ProtectedEntry, 'place' | 'isLink'>[]> {
  const links: string[] = []
  const steps = stepsOf(path)
  let at = '/'
  for (let step = steps.shift(); step !== undefined && links.length < MOST_LINKS; step = steps.shift()) {
    const next = step === '..' ? dirname(at) : join(at, step)
    const target = step === '..' ? undefined : await look(next)
    if (target !== undefined) {
      links.push(next)
      steps.unshift(...stepsOf(target))
    }
    if (target === undefined) at = next
    else if (isAbsolute(target)) at = '/'
  }
  return [...links.map(place => ({ place, isLink: true })), { place: at, isLink: false }]
}

const stepsOf = (path: string) => path.split('/').filter(step => step !== '' && step !== '.')

/** Normalises a path, because file systems can ignore case and Unicode forms. */
const folded = (path: string) => path.normalize('NFC').toLowerCase()

const isIn = (path: string, folder: string) => path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
