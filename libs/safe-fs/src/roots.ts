import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { asSvcError, codeOf, type SvcError, svcHome } from '@svc/core'
import { fromSystem, invalidPath, isNoDirectory, isProtected, missing, outside, rootUnusable } from './errors.ts'
import { ownerOf, type ProtectedView, refuseChange } from './protected.ts'

/** A folder that tools can use. */
export interface Root {
  /** Its name in paths, if there are several roots. */
  readonly label: string
  readonly path: string
  readonly real: string
}

/** An existing path within the roots. It is checked again after opening. */
export interface ResolvedPath {
  /** The path on this machine, without links. Never reveal it. */
  readonly real: string
  /** The displayed path, relative to the roots. */
  readonly shown: string
}

/** An existing or new path. A link at its end is not followed. */
export interface Target {
  /** The deepest existing folder on the path. */
  readonly folder: ResolvedPath
  /** Missing folders on the path. */
  readonly steps: readonly string[]
  readonly name: string
  readonly shown: string
}

/** The path of a target on this machine. Never reveal it. */
export const realOf = ({ folder, steps, name }: Target): string => [folder.real, ...steps, name].join('/').replace(/^\/\//, '/')

/** The folders that tools can use. */
export interface Roots {
  /** Explains to callers how to write paths. */
  readonly words: string
  /** The names of the roots, if there are several. They are the entries of ".". */
  readonly labels: readonly string[]
  readonly all: readonly Root[]
  /** Resolves an existing path. Throws PATH_OUTSIDE (also if a link leads out), PATH_MISSING, PATH_INVALID, PATH_UNUSABLE. */
  find(path: string): Promise<ResolvedPath>
  /** Resolves an existing or new path. Throws PATH_PROTECTED for a root besides. */
  target(path: string): Promise<Target>
  /** Whether a path without links is within a root, and not in the closed folder. */
  holds(real: string): boolean
  /** Whether a path without links is or contains a root or the closed folder, which cannot be moved. */
  stays(real: string): boolean
  /** The svc home, without links. It contains conversations and tokens, so tools cannot access it, except for roots inside it. */
  readonly closed: string
  /** Whether a path means all roots, if there are several. */
  isAll(path: string): boolean
  /** Refuses to create, replace, rename or remove a protected path without links. Throws PATH_PROTECTED. */
  refuseChange(real: string, shown: string): Promise<void>
  /** The owner of the protected path that contains a path without links. */
  ownerOf(real: string): Promise<string | undefined>
}

export interface RootsOptions {
  readonly home?: string
  /** Protected paths. Without them, only names are protected. */
  readonly protectedPaths?: ProtectedView
}

/** Maximum number of missing folders on the path of a target. */
const NEW_FOLDERS = 32

/** Returns the problems for which `openRoots` would throw. */
export async function rootProblems(paths: readonly string[] | undefined, where: string): Promise<SvcError[]> {
  const all = await Promise.all(
    [...new Set((paths ?? []).map(path => resolve(path)))].map(path =>
      openRoot(path, [], where).then(
        () => undefined,
        (error: unknown) => asSvcError(error, 'CONFIG_INVALID')
      )
    )
  )
  return all.filter(problem => problem !== undefined)
}

/** Opens configured folders as roots. Throws CONFIG_INVALID for missing folders; `where` is the configuration key. */
export async function openRoots(
  paths: readonly string[],
  where: string,
  { home = svcHome(), protectedPaths }: RootsOptions = {}
): Promise<Roots> {
  const all: Root[] = []
  for (const path of new Set(paths.map(item => resolve(item)))) all.push(await openRoot(path, all, where))
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
      if (target === root.path || target === root.real) throw isProtected(shown, 'is a root of the tools and cannot be changed')
      const { real, steps } = await deepest(path, dirname(target), holds)
      if (steps.length > NEW_FOLDERS) throw invalidPath(path, `more than ${NEW_FOLDERS} folders on the path are missing`)
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
  if (!(await stat(real)).isDirectory()) throw rootUnusable(path, 'is not a folder', where)
  const name = basename(real) || 'root'
  const same = before.filter(root => root.label === name || root.label.startsWith(`${name}-`)).length
  return { label: same > 0 ? `${name}-${same + 1}` : name, path, real }
}

/** Whether a path is a folder or inside it; both without links. */
export const isInside = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** Resolves a path without links. `..` must not leave the root. */
function locate(roots: readonly Root[], path: string): { root: Root; target: string } {
  if (path.includes('\0')) throw invalidPath(path, 'it contains a zero byte')
  // the file system would store another name
  if (!path.isWellFormed()) throw invalidPath(path.toWellFormed(), 'it contains an unpaired surrogate')
  if (isAbsolute(path)) {
    const target = resolve(path)
    const root = roots.find(item => isInside(item.path, target) || isInside(item.real, target))
    if (!root) throw outside(path)
    return { root, target }
  }
  const [label = '', ...rest] = roots.length > 1 ? path.split(sep).filter(part => part !== '.') : [roots[0]!.label, path]
  const root = roots.find(item => item.label === label)
  if (!root) throw outside(path)
  const target = resolve(root.path, ...rest.map(part => part || '.'))
  if (!isInside(root.path, target)) throw outside(path)
  return { root, target }
}

function show(root: Root, target: string, labelled: boolean): string {
  const inner = relative(isInside(root.path, target) ? root.path : root.real, target)
  return labelled ? [root.label, inner].filter(Boolean).join(sep) : inner || '.'
}

/** The deepest existing folder of a path, and the missing steps below it. */
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

/** Why a path cannot be resolved. Does not reveal whether a target outside the roots exists. */
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
