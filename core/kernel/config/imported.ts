import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'

/** File extensions of configuration that is code. */
export const CODE = /\.[cm]?[jt]s$/

/** Matches `from './a.ts'`, `import './a.ts'`, `import('./a.ts')`, `require('./a')`. */
const IMPORT = /\b(?:from|import|require)\s*\(?\s*["'`](\.{1,2}\/[^"'`\n]+)["'`]/g
/** Endings that `require` can omit. */
const ENDINGS = ['', '.js', '.cjs', '.json', '/index.js']

/**
 * Lists the files that a module names in relative imports. The files are read, not run. Names that are computed at run time are
 * not found.
 */
export function importedBy(file: string): string[] {
  const names = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, name = '']) => resolve(dirname(file), decoded(name)))
  return names.flatMap(name => ENDINGS.map(ending => name + ending).find(isFile) ?? [])
}

/** Lists a module and all modules that it imports by relative names, directly or not, by their real paths. */
export function withImports(file: string): string[] {
  const files = new Set([realpathSync(file)])
  // The loop also visits the items that are added to the set meanwhile.
  for (const item of files) if (CODE.test(item)) for (const next of importedBy(item)) files.add(realpathSync(next))
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
 * Lists the paths that decide which code runs: the files with all their relative imports, each `package.json` that determines
 * the module format, and the folders in which packages are looked up. A user who can write one of them can change the code.
 * Nothing runs, and not all of the paths need to exist.
 */
export function pathsOfCode(files: readonly string[]): string[] {
  const all = files.filter(isFile).flatMap(file => withImports(file))
  const folders = new Set([...files, ...all].flatMap(file => foldersAround(file)))
  return [...new Set([...all, ...manifestsOf(all), ...[...folders].map(folder => join(folder, 'node_modules'))])]
}

/** From the folder of each file upward, up to the first that exists. */
function manifestsOf(files: readonly string[]): string[] {
  return files.flatMap(file => {
    const manifests = foldersAround(file).map(folder => join(folder, 'package.json'))
    const nearest = manifests.findIndex(isFile)
    return nearest === -1 ? manifests : manifests.slice(0, nearest + 1)
  })
}

const [DEEPEST, MOST_FILES] = [6, 2_000]

/** Lists the modules in a folder, without those of packages in it. */
export function modulesIn(folder: string, depth = 0): string[] {
  if (depth > DEEPEST) return []
  const entries = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => name !== 'node_modules' && name !== '.git')
  const files = entries.filter(entry => entry.isFile() && CODE.test(entry.name)).map(({ name }) => join(folder, name))
  const inner = entries.filter(entry => entry.isDirectory()).flatMap(({ name }) => modulesIn(join(folder, name), depth + 1))
  return [...files, ...inner].slice(0, MOST_FILES)
}

const foldersAround = (path: string): string[] => (dirname(path) === path ? [] : [dirname(path), ...foldersAround(dirname(path))])

/** The outermost `node_modules` folder that contains a file. The packages that it imports are there as well. */
export function packagesAround(file: string): string | undefined {
  const at = `${file}${sep}`.indexOf(`${sep}node_modules${sep}`)
  return at === -1 ? undefined : file.slice(0, at + `${sep}node_modules`.length)
}

/** Programs that search the working folder first. */
const STARTERS = /(^|\/)(npx|npm|pnpm|yarn|bunx)$/
/** Programs that accept a folder. */
const INTERPRETERS = /(^|\/)(node|bun|deno|tsx|python[\d.]*)$/

/**
 * Lists the program files of a command line, as far as it names them. A script counts with the files that it imports, and with its
 * folder unless that contains the working folder. A user who can write one of them can change what the command runs.
 */
export function filesOfCommand([command = '', ...args]: readonly string[], cwd: string): string[] {
  const started = STARTERS.test(command) ? ['node_modules', 'package.json', '.npmrc'].map(name => join(cwd, name)) : []
  const program = INTERPRETERS.test(command) ? args.find(arg => !arg.startsWith('-')) : undefined
  const folder = program === undefined ? [] : folderAt(resolve(cwd, program), cwd)
  return [...started, ...folder, ...[command, ...args].flatMap(word => pathsOfWord(word, cwd))]
}

const folderAt = (path: string, cwd: string) =>
  existsSync(path) && statSync(path).isDirectory() && !isWithin(cwd, path) ? [path] : []

function pathsOfWord(word: string, cwd: string): string[] {
  // also the file in `--import=./hook.mjs`
  const path = resolve(cwd, /^-[^=]*=(.+)$/.exec(word)?.[1] ?? word)
  if (!isFile(path)) return []
  const packages = packagesAround(path)
  if (packages !== undefined) return [packages]
  return [path, ...pathsOfCode(CODE.test(path) ? [path] : []), ...(isWithin(cwd, dirname(path)) ? [] : [dirname(path)])]
}

const isWithin = (path: string, folder: string) => `${path}${sep}`.startsWith(`${folder}${sep}`)
