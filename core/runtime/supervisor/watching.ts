import { existsSync, type FSWatcher, readdirSync, realpathSync, type Stats, statSync, watch } from 'node:fs'
import { registerHooks } from 'node:module'
import { basename, dirname, extname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createdFiles } from '../processes/control.ts'

/** Watches files and folders, which can be different after each reload. */
export interface Watching extends Disposable {
  /**
   * Watches exactly these paths from now on. Reports new paths that changed after `since` (Unix milliseconds), except files in
   * `begun` that only svc wrote.
   */
  look(places: readonly string[], since?: number, begun?: Begun): void
}

/** Editors and compilers write in several steps. */
const CALM_MS = 200
/** The kernel's time stamp of a change can lag behind the clock by this tick. */
const TICK_MS = 10
const CODE = new Set(['.ts', '.mts', '.js', '.mjs', '.cjs'])
/** Folders that contain no source of the running plugin. */
const ASIDE = /^(node_modules|test|tests|\..*)$/

/**
 * Calls `changed` with a batch of changed files, after `calmMs` (default 200) without changes and after the last batch is
 * handled.
 */
export function createWatching(changed: (files: readonly string[]) => unknown, calmMs: number = CALM_MS): Watching {
  const seen = new Set<string>()
  const watchers = new Map<string, FSWatcher>()
  // Whether each single watched file existed. A folder that a sandbox creates and removes in its place is no change.
  const wasThere = new Map<string, boolean>()
  let calm: NodeJS.Timeout | undefined
  let ended = false
  let busy = false
  let begun: Begun = {}
  const isChange = (file: string) => {
    const before = wasThere.get(file)
    if (before === undefined) return true
    wasThere.set(file, isFile(file))
    return before || isFile(file)
  }
  // while a batch is handled, changes collect for the next one
  const flush = async () => {
    if (busy) return
    busy = true
    // only now: the report of a new worker names the files it began, and comes later than the change
    const files = [...seen].filter(file => isChange(file) && !isAsBegun(file, begun) && !isEmpty(file)).sort()
    seen.clear()
    try {
      if (files.length > 0) await changed(files)
    } finally {
      busy = false
      if (seen.size > 0) calmDown()
    }
  }
  const calmDown = () => {
    clearTimeout(calm)
    calm = ended ? undefined : setTimeout(() => void flush(), calmMs)
  }
  const note = (file: string) => {
    seen.add(file)
    calmDown()
  }
  const shut = (key: string) => {
    watchers.get(key)?.close()
    watchers.delete(key)
  }
  return {
    // existing watchers stay: a new one would miss a change in between
    look(places, since = Number.POSITIVE_INFINITY, own = {}) {
      begun = own
      const sights = new Map(sightsOf(places).map(sight => [keyOf(sight), sight]))
      wasThere.clear()
      for (const { folder, names = [] } of sights.values())
        for (const name of names) wasThere.set(join(folder, name), isFile(join(folder, name)))
      for (const [key, sight] of sights) {
        const watcher = watchers.has(key) ? undefined : open(sight, note, () => shut(key))
        if (!watcher) continue
        watchers.set(key, watcher)
        for (const file of changedIn(sight, since - TICK_MS)) note(file)
      }
      for (const key of watchers.keys()) if (!sights.has(key)) shut(key)
    },
    [Symbol.dispose]() {
      ended = true
      clearTimeout(calm)
      for (const key of watchers.keys()) shut(key)
    },
  }
}

/** An editor can truncate a file before it writes. An empty file must not count as a configuration without keys. */
const isEmpty = (file: string) => {
  const found = statSync(file, { throwIfNoEntry: false })
  return found?.isFile() === true && found.size === 0
}

const keyOf = ({ folder, names }: Sight) => JSON.stringify([folder, names === undefined, [...(names ?? [])].sort()])

/** A watched folder without its subfolders: all files, or only those with these names. */
interface Sight {
  readonly folder: string
  readonly names?: ReadonlySet<string>
}

/** Watches files through their folder, because an editor can replace a file on save. */
function sightsOf(places: readonly string[]): Sight[] {
  const folders = places.filter(isFolder)
  const files = places.filter(place => !folders.includes(place))
  const parents = [...new Set(files.map(file => dirname(file)))].filter(isFolder)
  const named = parents.map(folder => ({
    folder,
    names: new Set(files.filter(file => dirname(file) === folder).map(file => basename(file))),
  }))
  return [...named, ...folders.flatMap(partsOf)]
}

/**
 * Watches the folders of a package one by one, except large ones that contain no sources. Node's recursive watch loses files
 * that an editor replaces.
 */
function partsOf(folder: string): Sight[] {
  const inner = readdirSync(folder, { withFileTypes: true }).filter(item => item.isDirectory() && !ASIDE.test(item.name))
  return [{ folder }, ...inner.flatMap(item => partsOf(join(folder, item.name)))]
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** Files that a plugin writes for itself must not reload it. A new folder can be a rebuilt output. */
const isSource = (path: string) => CODE.has(extname(path)) || basename(path) === 'package.json' || isFolder(path)

/** Uses the time of the inode: a moved file keeps its modification time. */
function changedIn({ folder, names }: Sight, since: number): string[] {
  const files = [...(names ?? readdirSync(folder))].map(name => join(folder, name))
  return files.filter(
    file => (names || isSource(file)) && !isFolder(file) && (statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? 0) > since
  )
}

function open({ folder, names }: Sight, note: (file: string) => void, lost: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, (_event, name) => {
      if (!isFolder(folder)) lost()
      else if (name !== null && (names ? names.has(name) : isSource(join(folder, name)))) note(join(folder, name))
    })
    return watcher.on('error', lost)
  } catch {
    return undefined
  }
}

/** Files that svc itself created, with their stamp at that time. */
export type Begun = Readonly<Record<string, string>>

/** Changes when the file is written or replaced. */
const stampOf = ({ ino, size, ctimeMs }: Stats) => `${ino} ${size} ${ctimeMs}`

/** The files that this process created. */
export const begunHere = (): Begun => Object.fromEntries([...createdFiles].map(([file, stats]) => [file, stampOf(stats)]))

/** Whether the file is unchanged since svc created it. */
function isAsBegun(file: string, begun: Begun): boolean {
  const stats = begun[file] === undefined ? undefined : statSync(file, { throwIfNoEntry: false })
  return stats !== undefined && stampOf(stats) === begun[file]
}

/** Records the relative imports of modules until disposal. */
export interface Imports extends Disposable {
  /** Returns these files and all files that they import, outside of `node_modules`. */
  withImports(files: readonly string[]): string[]
}

/** Specifiers of the project's own files; `#name` is within the same package. */
const OWN = /^(\.{0,2}\/|\.{1,2}$|#|file:)/
const INSTALLED = `${sep}node_modules${sep}`

/** Records each relative import, including `require` and `import()`. */
export function noteImports(): Imports {
  const imported = new Map<string, Set<string>>()
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context)
      const [from, to] = OWN.test(specifier) ? [fileOf(context.parentURL), fileOf(found.url)] : []
      if (from !== undefined && to !== undefined && !to.includes(INSTALLED))
        imported.set(from, (imported.get(from) ?? new Set<string>()).add(to))
      return found
    },
  })
  return {
    withImports(files) {
      // modules are recorded with their real path
      const all = new Set([...files, ...files.filter(file => existsSync(file)).map(file => realpathSync(file))])
      // the loop also visits files that it adds
      for (const file of all) for (const next of imported.get(file) ?? []) all.add(next)
      return [...all]
    },
    [Symbol.dispose]: () => hooks.deregister(),
  }
}

const fileOf = (url: string | undefined) => (url?.startsWith('file:') ? fileURLToPath(url) : undefined)
