import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'

/** Sees changes of files and folders, which may be other ones after each reload. */
export interface Watching extends Disposable {
  /** From now on these and no others. */
  look(places: readonly string[]): void
}

/** Editors and compilers write in several steps. */
const CALM_MS = 200
const CODE = new Set(['.ts', '.mts', '.js', '.mjs', '.cjs'])
/** No source of a plugin that runs. */
const ASIDE = /^(node_modules|test|tests|\..*)$/

/** Calls `changed` with the files of one round of changes, once there is calm and the last round has been dealt with. */
export function createWatching(changed: (files: readonly string[]) => unknown): Watching {
  const seen = new Set<string>()
  const watchers = new Map<string, FSWatcher>()
  let calm: NodeJS.Timeout | undefined
  let ended = false
  let busy = false
  // while one round is dealt with all that changes is one more
  const tell = async () => {
    if (busy) return
    busy = true
    const files = [...seen].sort()
    seen.clear()
    try {
      await changed(files)
    } finally {
      busy = false
      if (seen.size > 0) calmDown()
    }
  }
  const calmDown = () => {
    clearTimeout(calm)
    calm = ended ? undefined : setTimeout(() => void tell(), CALM_MS)
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
    look(places) {
      const sights = new Map(sightsOf(places).map(sight => [keyOf(sight), sight]))
      for (const [key, sight] of sights) {
        const watcher = watchers.has(key) ? undefined : open(sight, note, () => shut(key))
        if (watcher) watchers.set(key, watcher)
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

const keyOf = ({ folder, deep, names }: Sight) => JSON.stringify([folder, deep, [...(names ?? [])].sort()])

/** A folder that is watched: wholly, or only for the files of these names in it. */
interface Sight {
  readonly folder: string
  readonly deep: boolean
  readonly names?: ReadonlySet<string>
}

/** A file is seen through its folder: whoever saves it may well put a new one in its place. */
function sightsOf(places: readonly string[]): Sight[] {
  const folders = places.filter(isFolder)
  const files = places.filter(place => !folders.includes(place))
  const parents = [...new Set(files.map(file => dirname(file)))].filter(isFolder)
  const named = parents.map(folder => ({
    folder,
    deep: false,
    names: new Set(files.filter(file => dirname(file) === folder).map(file => basename(file))),
  }))
  return [...named, ...folders.flatMap(partsOf)]
}

/** A package: its own files, and its folders but those that may be large and are not its sources. */
function partsOf(folder: string): Sight[] {
  const inner = readdirSync(folder, { withFileTypes: true }).filter(one => one.isDirectory() && !ASIDE.test(one.name))
  return [{ folder, deep: false }, ...inner.map(one => ({ folder: join(folder, one.name), deep: true }))]
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** What a plugin writes for itself must not reload it. A folder that comes may be a build that was made anew. */
const isSource = (path: string) => CODE.has(extname(path)) || basename(path) === 'package.json' || isFolder(path)

function open({ folder, deep, names }: Sight, note: (file: string) => void, lost: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { recursive: deep, persistent: false }, (_event, name) => {
      if (!isFolder(folder)) lost()
      else if (name !== null && (names ? names.has(name) : isSource(join(folder, name)))) note(join(folder, name))
    })
    return watcher.on('error', lost)
  } catch {
    return undefined
  }
}
