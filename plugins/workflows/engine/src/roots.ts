import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, extname, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { foreignReason, messageOf, withImports } from '@svc/core'
import { pathRefused } from './errors.ts'
import { openListing, type Place, type Source } from './listing.ts'
import { fingerprintOf } from './file-fingerprint.ts'

/** A workflow file below a root; the same object as long as the file is the same. */
export interface Found {
  /** As it is told: relative to its root. */
  readonly source: string
  /** Its path. */
  readonly file: string
  readonly text: string
  /** What a file of code exports, or why it cannot be had; its `text` is empty. */
  readonly code?: { readonly definition: unknown } | { readonly failure: string }
}

/** The folders in which workflows lie as files. */
export interface Roots {
  /** All files below the roots, in a fixed order; those that cannot be read are left out. */
  files(): Promise<readonly Found[]>
  /** Names of all files, without their endings; another set after any change. */
  names(): Promise<ReadonlyMap<string, unknown>>
  /** The file whose name, without its ending, is this. */
  named(name: string): Promise<Found | undefined>
  /** The file at a path; a relative one is looked for from each root, and from the working directory. Throws INVALID_VALUE, without saying whether it exists. */
  file(path: string): Promise<Found>
  /** The files that may be imported; nothing runs. */
  codeFiles(): Promise<readonly string[]>
}

const CODE = new Set(['.ts', '.mts', '.js', '.mjs'])
const ENDINGS = new Set(['.yaml', '.yml', '.json', ...CODE])
const [LARGEST, MOST] = [1_048_576, 2_000]

/** Folders that do not exist are empty. Code is imported from `code` alone, paths of folders and files. */
export function openRoots(folders: readonly string[], code: readonly string[]): Roots {
  const sourcesOf = (paths: readonly string[], isCode: boolean) =>
    [...new Set(paths.map(path => resolve(path)))].map((root): Source => ({ root, code: isCode }))
  // what may be imported comes first: it may lie in a folder of definitions
  const sources = [...sourcesOf(code, true), ...sourcesOf(folders, false)]
  const listing = openListing(sources, path => ENDINGS.has(extname(path)))
  const read = createReader()
  return {
    async files() {
      const { places } = await listing()
      const found = await Promise.all(places.slice(0, MOST).map(place => read(place).catch(() => undefined)))
      return found.filter(one => one !== undefined)
    },
    names: async () => (await listing()).byName,
    async named(name) {
      const place = (await listing()).byName.get(name)
      return place && read(place).catch(() => undefined)
    },
    async file(path) {
      const places = sources.flatMap(one => [resolve(one.root, path), resolve(path)].map(at => ({ ...one, path: at })))
      for (const place of places) {
        const found = await read(place).catch(() => undefined)
        if (found) return found
      }
      throw pathRefused(path)
    },
    async codeFiles() {
      const { places } = await listing()
      return places.filter(({ path, code }) => code && CODE.has(extname(path))).map(({ path }) => path)
    },
  }
}

/** Reads a file again only when it has changed. */
function createReader(): (place: Place) => Promise<Found | undefined> {
  const kept = new Map<string, { readonly stamp: string; readonly found: Found | undefined }>()
  return async place => {
    const key = `${place.code}\n${place.root}\n${place.path}`
    const stamp = fingerprintOf(place.path)
    const there = kept.get(key)
    if (there?.stamp === stamp) return there.found
    const found = await readPlace(place)
    if (kept.size >= MOST) kept.clear()
    kept.set(key, { stamp, found })
    return found
  }
}

async function readPlace({ root, path, code }: Place): Promise<Found | undefined> {
  const real = await realpath(path).catch(() => undefined)
  const base = await realpath(root).catch(() => undefined)
  if (!real || !base || !(real === base || real.startsWith(base + sep)) || !ENDINGS.has(extname(real))) return undefined
  const found = await stat(real)
  if (!found.isFile() || found.size > LARGEST) return undefined
  const source = relative(base, real) || basename(real)
  if (!CODE.has(extname(real))) return { source, file: path, text: await readFile(real, 'utf8') }
  return { source, file: path, text: '', code: code ? await exported(real) : NOT_IMPORTED }
}

/** A file that a tool or a model could have written must not run. */
const NOT_IMPORTED = { failure: 'it is code, and workflows.code does not name it; add its path there' } as const

/** What a file of code exports as its default. Code of a running process does not change: a changed file is taken up by the next worker (`svc reload`). */
async function exported(file: string): Promise<NonNullable<Found['code']>> {
  const reason = withImports(file).flatMap(one => foreignReason(one) ?? [])[0]
  if (reason !== undefined) return { failure: `${reason}: make yourself its owner and take the write permission from others` }
  try {
    const { default: definition } = (await import(pathToFileURL(file).href)) as { default?: unknown }
    return { definition }
  } catch (error) {
    return { failure: messageOf(error).split('\n')[0]! }
  }
}
