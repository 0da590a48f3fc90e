import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { codeOf } from '@svc/core'
import { fromSystem, invalidPath, missing, outside, rootUnusable } from './errors.ts'

/** A folder that may be read. */
interface Root {
  /** As it is written in paths, where there are several. */
  readonly label: string
  readonly path: string
  readonly real: string
}

/** A path that may be read, as far as can be told before it is opened. */
export interface Place {
  /** Without links, on this machine: never to be told. */
  readonly real: string
  /** As it is told: relative to the roots. */
  readonly shown: string
}

/** The folders that the tools may look into. */
export interface Roots {
  /** What a caller reads of how to write paths. */
  readonly words: string
  /** The names of the roots, where there are several: then they are the entries of ".". */
  readonly labels: readonly string[]
  /** Finds a path. Throws PATH_OUTSIDE (also where a link leads out), PATH_MISSING, PATH_INVALID, PATH_UNREADABLE. */
  find(path: string): Promise<Place>
  /** Whether a path without links lies within a root. */
  holds(real: string): boolean
}

/** Opens the roots of the configuration. Throws CONFIG_INVALID for one that is no folder. */
export async function openRoots(paths: readonly string[]): Promise<Roots> {
  const roots: Root[] = []
  for (const path of new Set(paths.map(one => resolve(one)))) roots.push(await openRoot(path, roots))
  const holds = (real: string) => roots.some(root => within(root.real, real))
  const labels = roots.length > 1 ? roots.map(root => root.label) : []
  return {
    labels,
    words:
      labels.length > 0 ? `Paths begin with one of ${labels.join(', ')}.` : 'Paths are relative to the folder that may be read.',
    holds,
    async find(path) {
      if (path.includes('\0')) throw invalidPath(path)
      const { root, target } = locate(roots, path)
      const real = await realpath(target).catch(async (error: unknown) =>
        Promise.reject(await whyNot(path, target, holds, error))
      )
      if (!holds(real)) throw outside(path)
      return { real, shown: show(root, target, labels.length > 0) }
    },
  }
}

async function openRoot(path: string, before: readonly Root[]): Promise<Root> {
  const real = await realpath(path).catch(() => Promise.reject(rootUnusable(path, 'does not exist')))
  if (!(await stat(real)).isDirectory()) throw rootUnusable(path, 'is no folder')
  const name = basename(real) || 'root'
  const same = before.filter(root => root.label === name || root.label.startsWith(`${name}-`)).length
  return { label: same > 0 ? `${name}-${same + 1}` : name, path, real }
}

const within = (root: string, path: string) => path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

/** Where a written path points, links not looked at: `..` may not leave the root. */
function locate(roots: readonly Root[], path: string): { root: Root; target: string } {
  if (isAbsolute(path)) {
    const target = resolve(path)
    const root = roots.find(one => within(one.path, target) || within(one.real, target))
    if (!root) throw outside(path)
    return { root, target }
  }
  const [label = '', ...rest] = roots.length > 1 ? path.split(sep).filter(part => part !== '.') : [roots[0]!.label, path]
  const root = roots.find(one => one.label === label)
  if (!root) throw outside(path)
  const target = resolve(root.path, ...rest.map(part => part || '.'))
  if (!within(root.path, target)) throw outside(path)
  return { root, target }
}

function show(root: Root, target: string, labelled: boolean): string {
  const inner = relative(within(root.path, target) ? root.path : root.real, target)
  return labelled ? [root.label, inner].filter(Boolean).join(sep) : inner || '.'
}

/** Why a path has no real one. What lies behind a link that leads out stays untold: whether it exists, too. */
async function whyNot(path: string, target: string, holds: (real: string) => boolean, error: unknown): Promise<Error> {
  for (let at = target; at !== dirname(at); at = dirname(at)) {
    const parent = await realpath(dirname(at)).catch(() => undefined)
    if (parent === undefined) continue
    if (!holds(parent)) return outside(path)
    const link = await lstat(at).then(
      found => found.isSymbolicLink(),
      () => false
    )
    if (link) return outside(path)
    return codeOf(error) === 'ENOENT' ? missing(path) : fromSystem(path, error)
  }
  return missing(path)
}
