import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What an import loaded, and the files and folders whose change would change what it loads. */
export interface NotedImport<T> {
  readonly module: T
  /** Absolute paths: files, the `package.json` that says how each is read, and whole `node_modules` folders. */
  readonly paths: readonly string[]
}

/** A module is loaded once a process: what was loaded with it, by its URL. */
const noted = new Map<string, ReadonlySet<string>>()

/** Imports the module at a URL by `load`, and notes each file that is loaded with it. What other imports had loaded before is not noted. */
export async function noteImport<T>(url: string, load: () => Promise<T>): Promise<NotedImport<T>> {
  const urls = new Set(noted.get(url))
  const hooks = registerHooks({
    load(loaded, context, next) {
      urls.add(loaded)
      return next(loaded, context)
    },
  })
  try {
    return { module: await load(), paths: pathsOfModules(urls) }
  } finally {
    hooks.deregister()
    noted.set(url, urls)
  }
}

/** The paths that decide what modules are, by their URLs; what is no file is left out. */
export function pathsOfModules(urls: Iterable<string>): string[] {
  const files = [...urls].filter(url => url.startsWith('file:')).map(url => fileURLToPath(new URL(url.split('?')[0]!)))
  return [...new Set(files.flatMap(file => [packagesAround(file) ?? file, ...manifestOf(file)]))]
}

/** The outermost `node_modules` that a file lies in: what a package imports lies there, too. */
export function packagesAround(file: string): string | undefined {
  const at = `${file}${sep}`.indexOf(`${sep}node_modules${sep}`)
  return at === -1 ? undefined : file.slice(0, at + `${sep}node_modules`.length)
}

/** The package.json of a file's own package; where there is none, the one that could be put beside it. */
function manifestOf(file: string): string[] {
  if (packagesAround(file) !== undefined) return []
  const nearest = foldersAround(file).find(folder => existsSync(join(folder, 'package.json')))
  return [dirname(file), ...(nearest === undefined ? [] : [nearest])].map(folder => join(folder, 'package.json'))
}

const foldersAround = (path: string): string[] => (dirname(path) === path ? [] : [dirname(path), ...foldersAround(dirname(path))])
