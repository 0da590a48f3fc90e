import { statSync } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, extname, join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { codeOf, foreignReason, messageOf, pathsOfCode, withImports } from '@svc/core'
import type { ProtectedPaths } from '@svc/core/contracts'
import { LRUCache } from 'lru-cache'
import { pathRefused } from './errors.ts'
import type { WorkflowsConfig } from './settings.ts'

/** A workflow file below a root. The object stays the same until the file changes. */
export interface WorkflowFile {
  /** The reported path, relative to its root. */
  readonly source: string
  /** The path in the file system. */
  readonly file: string
  readonly text: string
  /** The default export of a code file, or why it cannot be imported. The `text` of a code file is empty. */
  readonly code?: { readonly definition: unknown } | { readonly failure: string }
}

/** The folders with workflow files. */
export interface WorkflowRoots {
  /** All readable files below the roots, in a fixed order. */
  files(): Promise<readonly WorkflowFile[]>
  /** Names of all files without extension. Returns a new object after any change. */
  names(): Promise<ReadonlyMap<string, unknown>>
  /** The file with this name, without extension. */
  named(name: string): Promise<WorkflowFile | undefined>
  /** Where the file with this name is, whether it can be read or not. */
  place(name: string): Promise<ListedFile | undefined>
  /**
   * The file at a path. A relative path is resolved against each root and the working directory. Throws INVALID_VALUE, without
   * revealing whether it exists.
   */
  file(path: string): Promise<WorkflowFile>
  /** The code files that can be imported. This runs no code. */
  codeFiles(): Promise<readonly string[]>
}

/** Extensions of code. */
export const CODE = new Set(['.ts', '.mts', '.js', '.mjs'])
const ENDINGS = new Set(['.yaml', '.yml', '.json', ...CODE])
/** Maximum bytes of a file. */
export const LARGEST = 1_048_576
const MOST = 2_000

/** Missing folders count as empty. Code is imported only from `code`, paths of folders and files. */
export function openRoots(folders: readonly string[], code: readonly string[]): WorkflowRoots {
  const sourcesOf = (paths: readonly string[], isCode: boolean) =>
    [...new Set(paths.map(path => resolve(path)))].map((root): Source => ({ root, code: isCode }))
  // code sources come first, because they can be inside a folder of definitions
  const sources = [...sourcesOf(code, true), ...sourcesOf(folders, false)]
  const listing = openListing(sources, path => ENDINGS.has(extname(path)))
  const read = createReader()
  return {
    async files() {
      const { places } = await listing()
      const found = await Promise.all(places.slice(0, MOST).map(place => read(place).catch(() => undefined)))
      return found.filter(item => item !== undefined)
    },
    names: async () => (await listing()).byName,
    async named(name) {
      const place = (await listing()).byName.get(name)
      return place && read(place).catch(() => undefined)
    },
    place: async name => (await listing()).byName.get(name),
    async file(path) {
      const places = sources.flatMap(source => [resolve(source.root, path), resolve(path)].map(at => ({ ...source, path: at })))
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

/** Reads a file again only after a change. */
function createReader(): (place: ListedFile) => Promise<WorkflowFile | undefined> {
  const kept = new LRUCache<string, { readonly stamp: string; readonly found: WorkflowFile | undefined }>({ max: MOST })
  return async place => {
    const key = `${place.code}\n${place.root}\n${place.path}`
    const stamp = fingerprintOf(place.path)
    const there = kept.get(key)
    if (there?.stamp === stamp) return there.found
    const found = await readPlace(place)
    kept.set(key, { stamp, found })
    return found
  }
}

async function readPlace({ root, path, code }: ListedFile): Promise<WorkflowFile | undefined> {
  const real = await realpath(path).catch(() => undefined)
  const base = await realpath(root).catch(() => undefined)
  if (!real || !base || !(real === base || real.startsWith(base + sep)) || !ENDINGS.has(extname(real))) return undefined
  const found = await stat(real)
  if (!found.isFile() || found.size > LARGEST) return undefined
  const source = relative(base, real) || basename(real)
  if (!CODE.has(extname(real))) return { source, file: path, text: await readFile(real, 'utf8') }
  return { source, file: path, text: '', code: code ? await exported(real) : NOT_IMPORTED }
}

/** Code that a tool or a model wrote must not run. */
const NOT_IMPORTED = { failure: 'it is code, and workflows.code does not list it; add its path there' } as const

/** Imports the default export of a code file. A running process keeps old code; the next worker loads the new file (`svc reload`). */
async function exported(file: string): Promise<NonNullable<WorkflowFile['code']>> {
  const reason = withImports(file).flatMap(withImport => foreignReason(withImport) ?? [])[0]
  if (reason !== undefined) return { failure: `${reason}: change its owner to you and remove the write permission of others` }
  try {
    const { default: definition } = (await import(pathToFileURL(file).href)) as { default?: unknown }
    return { definition }
  } catch (error) {
    return { failure: messageOf(error).split('\n')[0]! }
  }
}

/** Within this time, a second change can have the same timestamp. */
const FRESH_MS = 50
let fresh = 0

/**
 * A value that changes with every change of a file or folder; empty if the path does not exist. A path that changed just now gets
 * a new value each time. Synchronous, because the call takes 2 µs, and a round trip through Node's thread pool takes 40 µs.
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
    return undefined // an unreadable path counts as missing
  }
}

/** A folder of workflow files, or a single file. */
interface Source {
  readonly root: string
  /** Whether code files in it are imported. */
  readonly code: boolean
}

/** A file and its source. */
export interface ListedFile extends Source {
  readonly path: string
}

/** The files below some folders. */
interface Listing {
  readonly places: readonly ListedFile[]
  /** By name without extension. The first file of a name wins. */
  readonly byName: ReadonlyMap<string, ListedFile>
  /** The fingerprints of the folders that were read. */
  readonly stamps: ReadonlyMap<string, string>
}

const DEEPEST = 5

/** Lists the files of sources, each once. Reads folders again only after a change. */
function openListing(sources: readonly Source[], isWanted: (path: string) => boolean): () => Promise<Listing> {
  let kept: Listing | undefined
  return async () => {
    if (kept && isSame(kept)) return kept
    const stamps = new Map<string, string>()
    for (const { root } of sources) stamps.set(root, fingerprintOf(root))
    const distinct = await distinctSources(sources)
    const found = await Promise.all(
      distinct.map(async source => (await below(source.root, stamps)).map(path => ({ ...source, path })))
    )
    const wanted = found.flat().filter(({ path }) => isWanted(path))
    const places = [...new Map(wanted.toReversed().map(place => [place.path, place])).values()].toReversed()
    const byName = new Map(places.toReversed().map(place => [basename(place.path, extname(place.path)), place]))
    return (kept = { places, byName, stamps })
  }
}

/** Sources of the same folder count once, the first of them: the working directory can be the svc home. */
async function distinctSources(sources: readonly Source[]): Promise<readonly Source[]> {
  const real = await Promise.all(sources.map(({ root }) => realpath(root).catch(() => root)))
  return sources.filter((_, at) => real.indexOf(real[at]!) === at)
}

function isSame({ stamps }: Listing): boolean {
  for (const [folder, stamp] of stamps) if (fingerprintOf(folder) !== stamp) return false
  return true
}

/** The files below a folder, or the file itself. Fingerprints are taken before reading, so the next call sees a change in between. */
async function below(folder: string, stamps: Map<string, string>, depth = 0): Promise<string[]> {
  stamps.set(folder, fingerprintOf(folder))
  const entries = await readdir(folder, { withFileTypes: true }).catch(error => (codeOf(error) === 'ENOTDIR' ? undefined : []))
  if (entries === undefined) return [folder]
  const lists = await Promise.all(
    entries
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(async entry => {
        const path = join(folder, entry.name)
        if (!entry.isDirectory()) return [path]
        return entry.name.startsWith('.') || depth >= DEEPEST ? [] : below(path, stamps, depth + 1)
      })
  )
  return lists.flat()
}

/** The paths that tools must not change, including files that workflow code imports. Those are found by parsing, before any code runs. */
export async function protectedPathsOf(
  { roots: folders, code, writable_by_tools }: WorkflowsConfig,
  home: string,
  roots: WorkflowRoots
): Promise<ProtectedPaths> {
  const paths = [...(writable_by_tools ? [] : [...folders, home]), ...code, ...pathsOfCode(await roots.codeFiles())]
  const hint = writable_by_tools ? {} : { hint: 'Set workflows.writable_by_tools to true to let tools write definitions' }
  return { paths: paths.map(path => resolve(path)), owner: 'the workflows of this server', ...hint }
}
