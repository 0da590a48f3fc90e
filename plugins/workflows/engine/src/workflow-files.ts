import { statSync } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, extname, join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { codeOf, foreignReason, messageOf, pathsOfCode, withImports } from '@svc/core'
import type { ProtectedPaths } from '@svc/core/contracts'
import { pathRefused } from './errors.ts'
import type { WorkflowsConfig } from './settings.ts'

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

/** A change this young may be followed by one that the clock of the file system does not tell from it. */
const FRESH_MS = 50
let fresh = 0

/**
 * What differs after any change of a file, or of the names in a folder; empty where there is none. What was changed just now has another stamp each time.
 * Not asynchronous: it takes two microseconds, the way to Node's thread pool and back twenty times that, at each start of a run.
 */
function fingerprintOf(path: string): string {
  const found = statOf(path)
  if (!found) return ''
  const { dev, ino, size, ctimeNs, ctimeMs } = found
  return Date.now() - Number(ctimeMs) < FRESH_MS ? `fresh ${++fresh}` : `${dev}/${ino}/${size}/${ctimeNs}`
}

function statOf(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return undefined // what may not be looked at is not there
  }
}

/** A folder of workflow files, or one such file. */
interface Source {
  readonly root: string
  /** Whether files of code are imported from it. */
  readonly code: boolean
}

/** A file, and the source it is, or lies below. */
interface Place extends Source {
  readonly path: string
}

/** What lies below some folders. */
interface Listing {
  readonly places: readonly Place[]
  /** By name without ending; of two the first. */
  readonly byName: ReadonlyMap<string, Place>
  /** Folders that were looked into, as they were. */
  readonly stamps: ReadonlyMap<string, string>
}

const DEEPEST = 5

/** Lists the files of sources, each once; looks into folders again only when one has changed. */
function openListing(sources: readonly Source[], isWanted: (path: string) => boolean): () => Promise<Listing> {
  let kept: Listing | undefined
  return async () => {
    if (kept && isSame(kept)) return kept
    const stamps = new Map<string, string>()
    const found = await Promise.all(
      sources.map(async source => (await below(source.root, stamps)).map(path => ({ ...source, path })))
    )
    const wanted = found.flat().filter(({ path }) => isWanted(path))
    const places = [...new Map(wanted.toReversed().map(place => [place.path, place])).values()].toReversed()
    const byName = new Map(places.toReversed().map(place => [basename(place.path, extname(place.path)), place]))
    return (kept = { places, byName, stamps })
  }
}

function isSame({ stamps }: Listing): boolean {
  for (const [folder, stamp] of stamps) if (fingerprintOf(folder) !== stamp) return false
  return true
}

/** The files below a folder, or the file itself. `stamps` are taken before it is read: a change meanwhile is seen the next time. */
async function below(folder: string, stamps: Map<string, string>, depth = 0): Promise<string[]> {
  stamps.set(folder, fingerprintOf(folder))
  const entries = await readdir(folder, { withFileTypes: true }).catch(error => (codeOf(error) === 'ENOTDIR' ? undefined : []))
  if (entries === undefined) return [folder]
  const lists = await Promise.all(
    entries
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(async one => {
        const path = join(folder, one.name)
        if (!one.isDirectory()) return [path]
        return one.name.startsWith('.') || depth >= DEEPEST ? [] : below(path, stamps, depth + 1)
      })
  )
  return lists.flat()
}

/** What tools must not change. What code imports is read, so that it is known before any of it runs. */
export async function protectedPathsOf(
  { code, writable_by_tools }: WorkflowsConfig,
  folders: readonly string[],
  roots: Roots
): Promise<ProtectedPaths> {
  const paths = [...(writable_by_tools ? [] : folders), ...code, ...pathsOfCode(await roots.codeFiles())]
  const hint = writable_by_tools ? {} : { hint: 'set workflows.writable_by_tools to true to let tools write definitions' }
  return { paths: paths.map(path => resolve(path)), owner: 'the workflows of this server', ...hint }
}
