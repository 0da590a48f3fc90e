import { readdir, readlink } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { CONFIG_FILES, type SlotView } from '@svc/core'
import type { ProtectedPaths } from '@svc/core/contracts'
import { isProtected } from './errors.ts'

/** The protected paths of a host, as the slot holds them now. */
export type ProtectedView = SlotView<ProtectedPaths>

/** Paths of configuration below any folder, for those who cannot match names: svc looks for it in the folder it is started in. */
export const PROTECTED_NAMES: readonly string[] = [
  ...CONFIG_FILES,
  ...['ts', 'mts', 'js', 'mjs', 'cjs', 'json', 'yaml', 'yml'].map(end => `.config/config.${end}`),
]

const CONFIGURATION = /(^|\/)(svc\.config\.([cm]?[jt]s|json|ya?ml)|\.config\/config\.([cm]?[jt]s|json|ya?ml)|svc-plugins\.lock)$/i
const GIT = /(^|\/)(\.git(config)?|\.config\/git)(\/|$)/i

/** What git runs, or takes as settings, of a git folder; what lies in `modules` and `worktrees` has settings of its own. */
export const GIT_NAMES: readonly string[] = ['hooks', 'config', 'config.worktree', 'commondir', 'modules', 'worktrees']

/** Whether git takes a folder with these names in it for a repository, whatever it is called: bare ones, and those that a `.git` file leads to. */
export const isGitFolder = (names: readonly string[]): boolean => ['HEAD', 'objects', 'refs'].every(name => names.includes(name))

/** Refuses what lies in a git folder that is not called `.git`. Throws PATH_PROTECTED. */
async function refuseInGitFolder(real: string, shown: string): Promise<void> {
  for (let at = dirname(real); at !== dirname(at); at = dirname(at))
    if (isGitFolder(await readdir(at).catch(() => []))) throw ofGit(shown)
}

/**
 * Refuses to move a folder with something in it that its name protects, where it is or where it would be: a repository would be replaced with another one.
 * `folder` is its path now, `from` and `to` are the two as they are told. Throws PATH_PROTECTED.
 */
export async function refuseMoveOf(folder: string, from: string, to: string, signal: AbortSignal): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true })
  if (isGitFolder(entries.map(({ name }) => name))) throw ofGit(from)
  for (const one of entries) {
    signal.throwIfAborted()
    const [before, after] = [`${from}/${one.name}`, `${to}/${one.name}`]
    refuseName(before, before)
    refuseName(after, after)
    if (one.isDirectory()) await refuseMoveOf(`${folder}/${one.name}`, before, after, signal)
  }
}

const ofGit = (shown: string) => isProtected(shown, 'belongs to git itself: it may be read, not changed')

/** Refuses a path whose name alone makes a program run it: the configuration of svc, hooks and settings of git. Throws PATH_PROTECTED. */
export function refuseName(path: string, shown: string): void {
  if (CONFIGURATION.test(path)) throw isProtected(shown, 'is the configuration of svc: it may be read, not changed')
  if (GIT.test(path)) throw ofGit(shown)
}

/**
 * Refuses to change what lies at a path without links: a protected path, something in one, or a folder that holds one. Throws PATH_PROTECTED.
 * Links are looked up anew at each call, because a program in a sandbox may have changed them.
 */
export async function refuseChange(view: ProtectedView | undefined, real: string, shown: string): Promise<void> {
  refuseName(real, shown)
  await refuseInGitFolder(real, shown)
  const changed = folded(real)
  for (const { place, owner, hint } of await protectedPlaces(view)) {
    const kept = folded(place)
    const rule = `${owner}: tools may read it, not change it${hint === undefined ? '' : ` (the operator: ${hint})`}`
    if (isIn(changed, kept)) throw isProtected(shown, `belongs to ${rule}`)
    if (isIn(kept, changed)) throw isProtected(shown, `holds what belongs to ${rule}`)
  }
}

/** Whom the protected path belongs to that a path without links is, or lies in; `undefined` where it lies in none. */
export async function ownerOf(view: ProtectedView | undefined, real: string): Promise<string | undefined> {
  return (await protectedPlaces(view)).find(({ place }) => isIn(folded(real), folded(place)))?.owner
}

/** A path without links that must stay as it is. */
export interface ProtectedPlace {
  readonly place: string
  readonly owner: string
  readonly hint?: string
  /** Whether it is a link on the way to a protected path: with another one in its stead the path would mean something else. */
  readonly isLink: boolean
}

/** Where all protected paths lie now. */
export async function protectedPlaces(view: ProtectedView | undefined): Promise<readonly ProtectedPlace[]> {
  return placesOfAll([...(view?.entries() ?? [])].map(([, one]) => one))
}

/** The same for paths that are in no slot. */
export async function placesOfAll(given: readonly ProtectedPaths[]): Promise<readonly ProtectedPlace[]> {
  const known = new Map<string, Promise<string | undefined>>()
  const look = (path: string) => {
    const target = known.get(path) ?? readlink(path).catch(() => undefined)
    known.set(path, target)
    return target
  }
  const all = given.flatMap(({ paths, ...about }) => paths.map(path => ({ path, about })))
  const found = await Promise.all(
    all.map(async ({ path, about }) => (await placesOf(path, look)).map(one => ({ ...one, ...about })))
  )
  return found.flat()
}

/** As many as Linux follows. */
const MOST_LINKS = 40

/** Each link on the way of a path, and where the path leads in the end, whether there is something or not. */
async function placesOf(
  path: string,
  look: (path: string) => Promise<string | undefined>
): Promise<Pick<ProtectedPlace, 'place' | 'isLink'>[]> {
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

/** On a file system that ignores case, or the form of a letter, two spellings are one name. */
const folded = (path: string) => path.normalize('NFC').toLowerCase()

const isIn = (path: string, folder: string) => path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
