import { existsSync, type FSWatcher, readdirSync, realpathSync, type Stats, statSync, watch } from 'node:fs'
import { registerHooks } from 'node:module'
import { basename, dirname, extname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createdFiles } from '@svc/runtime'

/** Sees changes of files and folders, which may be other ones after each reload. */
export interface Watching extends Disposable {
  /**
   * From now on these and no others. What of the new ones has changed after `since` (in milliseconds of the epoch), when they were read, is a change as well;
   * not what svc itself has begun meanwhile, as long as nobody else wrote it.
   */
  look(places: readonly string[], since?: number, begun?: Begun): void
}

/** Editors and compilers write in several steps. */
const CALM_MS = 200
/** So far the kernel's stamp of a change may be behind the clock: a tick of its own. */
const TICK_MS = 10
const CODE = new Set(['.ts', '.mts', '.js', '.mjs', '.cjs'])
/** No source of a plugin that runs. */
const ASIDE = /^(node_modules|test|tests|\..*)$/

/** Calls `changed` with the files of one round of changes, once there is calm (for `calmMs`, 200 by default) and the last round has been dealt with. */
export function createWatching(changed: (files: readonly string[]) => unknown, calmMs: number = CALM_MS): Watching {
  const seen = new Set<string>()
  const watchers = new Map<string, FSWatcher>()
  // whether each single file that is watched was there: a folder that comes and goes in its place, as a sandbox makes it, is no change
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
  // while one round is dealt with all that changes is one more
  const tell = async () => {
    if (busy) return
    busy = true
    // only now: of what a new worker has begun its report tells, which comes later than the change
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
    calm = ended ? undefined : setTimeout(() => void tell(), calmMs)
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
    // what stays is not watched anew: a change in between would be missed
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

/** Who writes a file may empty it first: what it says comes with the next change, and until then it must not be taken for a configuration without keys. */
const isEmpty = (file: string) => {
  const found = statSync(file, { throwIfNoEntry: false })
  return found?.isFile() === true && found.size === 0
}

const keyOf = ({ folder, names }: Sight) => JSON.stringify([folder, names === undefined, [...(names ?? [])].sort()])

/** A folder that is watched, but not those in it: for all files, or only for those of these names. */
interface Sight {
  readonly folder: string
  readonly names?: ReadonlySet<string>
}

/** A file is seen through its folder: whoever saves it may well put a new one in its place. */
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
 * A package: its own files, and its folders but those that may be large and are not its sources. Each is watched by itself: Node's recursive watch loses a file
 * in whose place a new one was put, as many an editor saves.
 */
function partsOf(folder: string): Sight[] {
  const inner = readdirSync(folder, { withFileTypes: true }).filter(one => one.isDirectory() && !ASIDE.test(one.name))
  return [{ folder }, ...inner.flatMap(one => partsOf(join(folder, one.name)))]
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** What a plugin writes for itself must not reload it. A folder that comes may be a build that was made anew. */
const isSource = (path: string) => CODE.has(extname(path)) || basename(path) === 'package.json' || isFolder(path)

/** By the time of the inode: what was moved into a place keeps the time at which it was written. */
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

/** Files that svc itself has begun, each with its stamp at that moment. */
export type Begun = Readonly<Record<string, string>>

/** Changes whenever the file is written, or another one is put in its place. */
const stampOf = ({ ino, size, ctimeMs }: Stats) => `${ino} ${size} ${ctimeMs}`

/** Those of this process. */
export const begunHere = (): Begun => Object.fromEntries([...createdFiles].map(([file, stats]) => [file, stampOf(stats)]))

/** Whether nobody has written it since. */
export function isAsBegun(file: string, begun: Begun): boolean {
  const stats = begun[file] === undefined ? undefined : statSync(file, { throwIfNoEntry: false })
  return stats !== undefined && stampOf(stats) === begun[file]
}

/** What modules bring in by relative imports, from now until it is disposed of. */
export interface Imports extends Disposable {
  /** These files and what they import, one through the other; nothing of `node_modules`. */
  withImports(files: readonly string[]): string[]
}

/** Another package is none of the project's own files; `#name` is one within the same package. */
const OWN = /^(\.{0,2}\/|\.{1,2}$|#|file:)/
const INSTALLED = `${sep}node_modules${sep}`

/** Notes each relative import, also by `require` and `import()`. */
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
      // modules are known by where they really are
      const all = new Set([...files, ...files.filter(file => existsSync(file)).map(file => realpathSync(file))])
      // what is added while it is gone through is gone through, too
      for (const file of all) for (const next of imported.get(file) ?? []) all.add(next)
      return [...all]
    },
    [Symbol.dispose]: () => hooks.deregister(),
  }
}

const fileOf = (url: string | undefined) => (url?.startsWith('file:') ? fileURLToPath(url) : undefined)
