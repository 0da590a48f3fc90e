import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, extname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { pathRefused } from './errors.ts'

/** A workflow file below a root. */
export interface Found {
  /** As it is told: relative to its root. */
  readonly source: string
  readonly text: string
}

/** The folders in which workflows lie as files. */
export interface Roots {
  /** All files below the roots, in a fixed order; those that cannot be read are left out. */
  files(): Promise<readonly Found[]>
  /** The file whose name, without its ending, is this. */
  named(name: string): Promise<Found | undefined>
  /** The file at a path; a relative one is looked for below each root. Throws INVALID_VALUE, without saying whether it exists. */
  file(path: string): Promise<Found>
}

const ENDINGS = new Set(['.yaml', '.yml', '.json'])
const [LARGEST, MOST, DEEPEST] = [1_048_576, 2_000, 5]

/** `folders` that do not exist are empty. */
export function openRoots(folders: readonly string[]): Roots {
  const roots = folders.map(folder => resolve(folder))
  const read = async (root: string, path: string): Promise<Found | undefined> => {
    const real = await realpath(path).catch(() => undefined)
    const base = await realpath(root).catch(() => undefined)
    if (!real || !base || !real.startsWith(base + sep) || !ENDINGS.has(extname(real))) return undefined
    const found = await stat(real)
    if (!found.isFile() || found.size > LARGEST) return undefined
    return { source: relative(base, real), text: await readFile(real, 'utf8') }
  }
  const paths = async () => (await Promise.all(roots.map(async root => (await below(root)).map(path => ({ root, path }))))).flat()
  return {
    async files() {
      const found = await Promise.all(
        (await paths()).slice(0, MOST).map(({ root, path }) => read(root, path).catch(() => undefined))
      )
      return found.filter(one => one !== undefined)
    },
    async named(name) {
      for (const { root, path } of await paths())
        if (basename(path, extname(path)) === name) return read(root, path).catch(() => undefined)
      return undefined
    },
    async file(path) {
      for (const root of roots) {
        const found = await read(root, isAbsolute(path) ? path : join(root, path)).catch(() => undefined)
        if (found) return found
      }
      throw pathRefused(path)
    },
  }
}

async function below(folder: string, depth = 0): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const lists = await Promise.all(
    entries
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(async one => {
        const path = join(folder, one.name)
        if (one.isDirectory() && !one.name.startsWith('.') && depth < DEEPEST) return below(path, depth + 1)
        return ENDINGS.has(extname(one.name)) ? [path] : []
      })
  )
  return lists.flat()
}
