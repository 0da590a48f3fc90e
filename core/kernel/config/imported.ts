import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { registerHooks, type ResolveHookSync } from 'node:module'
import { dirname, join, resolve, sep } from 'node:path'
import { codeOf } from '../src/svc-error.ts'

/** Extensions of configuration that is code. */
export const CODE = /\.[cm]?[jt]s$/

/** `from './a.ts'`, `import './a.ts'`, `import('./a.ts')`, `require('./a')`. */
const IMPORT = /\b(?:from|import|require)\s*\(?\s*["'`](\.{1,2}\/[^"'`\n]+)["'`]/g
/** What `require` may leave out. */
const ENDINGS = ['', '.js', '.cjs', '.json', '/index.js']

/** The files that a module names in relative imports. They are read, nothing runs; names that are computed at run time are not found. */
export function importedBy(file: string): string[] {
  const names = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, name = '']) => resolve(dirname(file), decoded(name)))
  return names.flatMap(name => ENDINGS.map(ending => name + ending).find(isFile) ?? [])
}

/** A module and all that it imports by relative names, one through the other, by their real paths. */
export function withImports(file: string): string[] {
  const files = new Set([realpathSync(file)])
  // a set that grows is walked to its end
  for (const one of files) if (CODE.test(one)) for (const next of importedBy(one)) files.add(realpathSync(next))
  return [...files]
}

const isFile = (path: string) => existsSync(path) && statSync(path).isFile()

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replace(/[?#].*$/, ''))
  } catch {
    return name
  }
}

/**
 * The paths that decide what modules are: the files with all that they import by relative names, each `package.json` that says how one is read, and the
 * folders in which packages are looked up. Whoever could write one of them could change what runs. Nothing runs, and not all of them need be there.
 */
export function pathsOfCode(files: readonly string[]): string[] {
  const all = files.filter(isFile).flatMap(file => withImports(file))
  const folders = new Set([...files, ...all].flatMap(file => foldersAround(file)))
  return [...new Set([...all, ...manifestsOf(all), ...[...folders].map(folder => join(folder, 'node_modules'))])]
}

/** From the folder of each file upward, as far as one is there. */
function manifestsOf(files: readonly string[]): string[] {
  return files.flatMap(file => {
    const manifests = foldersAround(file).map(folder => join(folder, 'package.json'))
    const nearest = manifests.findIndex(isFile)
    return nearest === -1 ? manifests : manifests.slice(0, nearest + 1)
  })
}

const [DEEPEST, MOST_FILES] = [6, 2_000]

/** The modules in a folder, those of packages in it aside. */
export function modulesIn(folder: string, depth = 0): string[] {
  if (depth > DEEPEST) return []
  const entries = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => name !== 'node_modules' && name !== '.git')
  const files = entries.filter(one => one.isFile() && CODE.test(one.name)).map(({ name }) => join(folder, name))
  const inner = entries.filter(one => one.isDirectory()).flatMap(({ name }) => modulesIn(join(folder, name), depth + 1))
  return [...files, ...inner].slice(0, MOST_FILES)
}

const foldersAround = (path: string): string[] => (dirname(path) === path ? [] : [dirname(path), ...foldersAround(dirname(path))])

/** The outermost `node_modules` that a file lies in: what a package imports lies there, too. */
export function packagesAround(file: string): string | undefined {
  const at = `${file}${sep}`.indexOf(`${sep}node_modules${sep}`)
  return at === -1 ? undefined : file.slice(0, at + `${sep}node_modules`.length)
}

const HOST_PACKAGE = /^@svc\/(core|cli|storage-kit|testing)(\/|$)/

/**
 * Runs an import during which `@svc/core` (and `@svc/storage-kit`, of which stores are made) is this very copy of it wherever none is installed: a plugin or a
 * configuration in a folder of its own needs nothing installed beside it.
 */
export async function withHostPackages<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if (!lacksHostPackage(error)) throw error
  }
  hooks ??= registerHooks({ resolve: resolveHere })
  loading++
  try {
    return await load()
  } finally {
    if (--loading === 0) {
      hooks?.deregister()
      hooks = undefined
    }
  }
}

// one hook for all who load at once: a hundred of them would ask each other
let hooks: ReturnType<typeof registerHooks> | undefined
let loading = 0

const resolveHere: ResolveHookSync = (specifier, context, next) => {
  if (!HOST_PACKAGE.test(specifier)) return next(specifier, context)
  try {
    return next(specifier, context)
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    return next(specifier, { ...context, parentURL: import.meta.url })
  }
}

const lacksHostPackage = (error: unknown) =>
  codeOf(error) === 'ERR_MODULE_NOT_FOUND' && /package '@svc\/(core|cli|storage-kit|testing)'/.test((error as Error).message)
