import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { codeOf, svcHome } from '@svc/core'
import { fromSystem, invalidPath, isNoDirectory, isProtected, missing, outside, rootUnusable } from './errors.ts'
import { ownerOf, type ProtectedView, refuseChange } from './protected.ts'

/** A folder that tools may use. */
export interface Root {
  /** As it is written in paths, where there are several. */
  readonly label: string
  readonly path: string
  readonly real: string
}

/** Something that exists within the roots, as far as can be told before it is opened. */
export interface Place {
  /** Without links, on this machine: never to be told. */
  readonly real: string
  /** As it is told: relative to the roots. */
  readonly shown: string
}

/** Where something lies, or shall lie: a link at the end of the path is the thing itself. */
export interface Target {
  /** The deepest folder on the way that exists. */
  readonly folder: Place
  /** Folders on the way that do not exist. */
  readonly steps: readonly string[]
  readonly name: string
  readonly shown: string
}

/** Where a target lies on this machine: never to be told. */
export const realOf = ({ folder, steps, name }: Target): string => [folder.real, ...steps, name].join('/').replace(/^\/\//, '/')

/** The folders that tools may use. */
export interface Roots {
  /** What a caller reads of how to write paths. */
  readonly words: string
  /** The names of the roots, where there are several: then they are the entries of ".". */
  readonly labels: readonly string[]
  readonly all: readonly Root[]
  /** Finds what exists. Throws PATH_OUTSIDE (also where a link leads out), PATH_MISSING, PATH_INVALID, PATH_UNUSABLE. */
  find(path: string): Promise<Place>
  /** Finds where something is or may be put. Throws PATH_PROTECTED for a root besides. */
  target(path: string): Promise<Target>
  /** Whether a path without links lies within a root, and not in what is closed. */
  holds(real: string): boolean
  /** Whether a path without links is a root or the closed folder, or has one in it: it stays where it is. */
  stays(real: string): boolean
  /** The svc home, without links: conversations and tokens lie there. Nothing in it is seen or changed, unless a root lies in it. */
  readonly closed: string
  /** Whether a path means all the roots, of which there are several. */
  isAll(path: string): boolean
  /** Refuses to create, replace, rename or remove what lies at a path without links. Throws PATH_PROTECTED. */
  refuseChange(real: string, shown: string): Promise<void>
  /** Whom the protected path belongs to that a path without links lies in. */
  ownerOf(real: string): Promise<string | undefined>
}

export interface RootsOptions {
  readonly home?: string
  /** What else must stay as it is; without it only names that are protected everywhere do. */
  readonly protectedPaths?: ProtectedView
}

/** The most missing folders on the way to a target. */
const NEW_FOLDERS = 32

/** Opens folders of the configuration as roots. Throws CONFIG_INVALID for one that is no folder; `where` names the key. */
export async function openRoots(
  paths: readonly string[],
  where: string,
  { home = svcHome(), protectedPaths }: RootsOptions = {}
): Promise<Roots> {
  const all: Root[] = []
  for (const path of new Set(paths.map(one => resolve(one)))) all.push(await openRoot(path, all, where))
  const closed = await realpath(home).catch(() => resolve(home))
  const isClosed = (real: string) =>
    isInside(closed, real) && !all.some(root => root.real !== closed && isInside(closed, root.real) && isInside(root.real, real))
  const holds = (real: string) => all.some(root => isInside(root.real, real)) && !isClosed(real)
  const labels = all.length > 1 ? all.map(root => root.label) : []
  return {
    labels,
    all,
    closed,
    stays: real => isInside(real, closed) || all.some(root => isInside(real, root.real) || isInside(real, root.path)),
    words: labels.length > 0 ? `Paths begin with one of ${labels.join(', ')}.` : 'Paths are relative to the folder of the tools.',
    holds,
    isAll: path => labels.length > 0 && /^(\.\/*)+$/.test(path),
    refuseChange: (real, shown) => refuseChange(protectedPaths, real, shown),
    ownerOf: real => ownerOf(protectedPaths, real),
    async find(path) {
      const { root, target } = locate(all, path)
      const real = await realpath(target).catch(async (error: unknown) =>
        Promise.reject(await whyNot(path, target, holds, error))
      )
      if (!holds(real)) throw outside(path)
      return { real, shown: show(root, target, labels.length > 0) }
    },
    async target(path) {
      const { root, target } = locate(all, path)
      const shown = show(root, target, labels.length > 0)
      if (target === root.path || target === root.real) throw isProtected(shown, 'is a root of the tools: it stays as it is')
      const { real, steps } = await deepest(path, dirname(target), holds)
      if (steps.length > NEW_FOLDERS) throw invalidPath(path, `more than ${NEW_FOLDERS} folders on the way are missing`)
      const place = {
        folder: { real, shown: show(root, dirname(target), labels.length > 0) },
        steps,
        name: basename(target),
        shown,
      }
      if (isClosed(realOf(place))) throw outside(path)
      return place
    },
  }
}

async function openRoot(path: string, before: readonly Root[], where: string): Promise<Root> {
  const real = await realpath(path).catch(() => Promise.reject(rootUnusable(path, 'does not exist', where)))
  if (!(await stat(real)).isDirectory()) throw rootUnusable(path, 'is no folder', where)
  const name = basename(real) || 'root'
  const same = before.filter(root => root.label === name || root.label.startsWith(`${name}-`)).length
  return { label: same > 0 ? `${name}-${same + 1}` : name, path, real }
}

/** Whether a path lies in a folder or is it; both without links. */
export const isInside = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** Where a written path points, links not looked at: `..` may not leave the root. */
function locate(roots: readonly Root[], path: string): { root: Root; target: string } {
  if (path.includes('\0')) throw invalidPath(path, 'it holds a zero byte')
  // Written to disk it would become another name.
  if (!path.isWellFormed()) throw invalidPath(path.toWellFormed(), 'it holds half a character')
  if (isAbsolute(path)) {
    const target = resolve(path)
    const root = roots.find(one => isInside(one.path, target) || isInside(one.real, target))
    if (!root) throw outside(path)
    return { root, target }
  }
  const [label = '', ...rest] = roots.length > 1 ? path.split(sep).filter(part => part !== '.') : [roots[0]!.label, path]
  const root = roots.find(one => one.label === label)
  if (!root) throw outside(path)
  const target = resolve(root.path, ...rest.map(part => part || '.'))
  if (!isInside(root.path, target)) throw outside(path)
  return { root, target }
}

function show(root: Root, target: string, labelled: boolean): string {
  const inner = relative(isInside(root.path, target) ? root.path : root.real, target)
  return labelled ? [root.label, inner].filter(Boolean).join(sep) : inner || '.'
}

/** The deepest folder of a path that exists, and the steps from there. */
async function deepest(
  path: string,
  folder: string,
  holds: (real: string) => boolean
): Promise<{ real: string; steps: string[] }> {
  const steps: string[] = []
  for (let at = folder; ; at = dirname(at)) {
    const real = await realpath(at).catch((error: unknown) => error as Error)
    if (typeof real === 'string') {
      if (!holds(real)) throw outside(path)
      if (!(await stat(real).catch(() => undefined))?.isDirectory()) throw isNoDirectory(path)
      return { real, steps }
    }
    if (codeOf(real) === 'ENOTDIR') throw isNoDirectory(path)
    if (codeOf(real) !== 'ENOENT' || at === dirname(at) || (await isLink(at))) throw await whyNot(path, at, holds, real)
    steps.unshift(basename(at))
  }
}

const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    found => found.isSymbolicLink(),
    () => false
  )

/** Why a path has no real one. What lies behind a link that leads out stays untold: whether it exists, too. */
async function whyNot(path: string, target: string, holds: (real: string) => boolean, error: unknown): Promise<Error> {
  for (let at = target; at !== dirname(at); at = dirname(at)) {
    const parent = await realpath(dirname(at)).catch(() => undefined)
    if (parent === undefined) continue
    if (!holds(parent)) return outside(path)
    if (await isLink(at)) return outside(path)
    return codeOf(error) === 'ENOENT' ? missing(path) : fromSystem(path, error)
  }
  return missing(path)
}
