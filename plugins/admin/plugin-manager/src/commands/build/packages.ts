import { execFile } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { chmod, constants, copyFile, lutimes, mkdir, readdir, readlink, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join, matchesGlob, relative } from 'node:path'
import { promisify } from 'node:util'
import { PACKAGE_FOLDER, RUNS_SOURCES } from '@svc/cli/program'
import { dependencyMissing } from '../errors.ts'

/** A package that is part of a build. */
export interface BuildPackage {
  readonly name: string
  readonly version: string
  /** Its present location, to which a repository links it. */
  readonly folder: string
  /** Its location in the build: `node_modules/@svc/core`, or within another package. */
  readonly path: string
  /** The published files, from its package.json; undefined if it is unpacked from a tarball. */
  readonly files: readonly string[] | undefined
}

interface PackageJson {
  readonly name?: string
  readonly version?: string
  readonly files?: readonly string[]
  readonly svc?: unknown
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

const CLI = '@svc/cli'
/** Plugins that svc itself needs, to read the lock. */
const NEEDED = ['@svc/plugin-manager']
const MODULES = 'node_modules'

/** The folder with the node_modules of this command line. */
export function rootOf(): string {
  for (let folder = PACKAGE_FOLDER; dirname(folder) !== folder; folder = dirname(folder)) {
    const found = join(folder, MODULES, CLI)
    if (existsSync(found) && realpathSync(found) === realpathSync(PACKAGE_FOLDER)) return folder
  }
  throw dependencyMissing(CLI, 'svc')
}

/**
 * The command line, these plugins and all their dependencies, resolved as at run time. Leaves out other plugins that come with
 * svc.
 */
export function packagesFor(plugins: readonly string[]): BuildPackage[] {
  const root = rootOf()
  const cli = join(root, MODULES, CLI)
  const found = new Map<string, BuildPackage>()
  const open = [cli, ...plugins.map(name => near(name, cli, root) ?? missing(name, CLI))]
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    if (found.has(folder)) continue
    const pkg = readPackage(folder)
    found.set(folder, packageOf(pkg, folder, root))
    const isWanted = (name: string) =>
      folder !== cli || plugins.includes(name) || NEEDED.includes(name) || !isPlugin(near(name, cli, root))
    const wanted = needsOf(pkg).filter(({ name }) => isWanted(name))
    for (const { name, optional } of wanted) {
      const next = near(name, folder, root)
      if (next !== undefined) open.push(next)
      else if (!optional) missing(name, pkg.name ?? folder)
    }
  }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

function missing(name: string, by: string): never {
  throw dependencyMissing(name, by)
}

const readPackage = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson

const isPlugin = (folder: string | undefined) => folder !== undefined && readPackage(folder).svc !== undefined

const packageOf = ({ name = '', version = '', files }: PackageJson, folder: string, root: string): BuildPackage => ({
  name,
  version,
  folder,
  path: relative(root, folder),
  files: realpathSync(folder).includes(`/${MODULES}/`) ? undefined : files,
})

function needsOf({ dependencies = {}, optionalDependencies = {}, peerDependencies = {} }: PackageJson) {
  const must = Object.keys(dependencies).filter(name => !Object.hasOwn(optionalDependencies, name))
  // npm skipped a missing optional peer
  const may = [...Object.keys(optionalDependencies), ...Object.keys(peerDependencies)]
  return [...must.map(name => ({ name, optional: false })), ...may.map(name => ({ name, optional: true }))]
}

/** The package that Node finds from a folder, within the root. */
function near(name: string, from: string, root: string): string | undefined {
  for (let folder = from; folder.startsWith(root); folder = dirname(folder)) {
    const candidate = join(folder, MODULES, name)
    if (basename(folder) !== MODULES && existsSync(join(candidate, 'package.json'))) return candidate
  }
  return undefined
}

const run = promisify(execFile)
const ASIDE = new Set(['node_modules', 'dist', 'test'])

/** Bundles packages of a repository as for publication, in a separate folder. Returns installed bundles unchanged. */
export async function bundled(packages: readonly BuildPackage[], work: string, signal: AbortSignal): Promise<BuildPackage[]> {
  const own = packages.filter(item => item.files !== undefined)
  if (!RUNS_SOURCES || own.length === 0) return [...packages]
  await mkdir(work, { recursive: true })
  await Promise.all(own.map(item => copyTree(item.folder, join(work, shortOf(item)), () => true, ASIDE)))
  await run(process.execPath, [join(rootOf(), 'scripts', 'bundle.ts'), ...own.map(shortOf)], { cwd: work, signal })
  return packages.map(item => (item.files === undefined ? item : { ...item, folder: join(work, shortOf(item)) }))
}

const shortOf = ({ name }: BuildPackage) => name.replace(/^@[^/]*\//, '')

/** A fixed time: the same in every build. */
const WRITTEN = new Date('2000-01-01T00:00:00Z')

/** npm publishes these files in any case. */
const ALWAYS = /^(package\.json|readme(\..*)?|licen[cs]e(\..*)?)$/i

/** Whether npm publishes a file, by its path and the entries of `files`. */
function isPublished(path: string, words: readonly string[]): boolean {
  if (ALWAYS.test(path)) return true
  const matches = (word: string) => matchesGlob(path, word) || matchesGlob(path, `${word}/**`)
  const out = words.filter(word => word.startsWith('!')).map(word => word.slice(1))
  return words.some(word => !word.startsWith('!') && matches(word)) && !out.some(matches)
}

/** Files for a compiler. */
const TYPES = /\.d\.[cm]?ts(\.map)?$/

/** Copies a package without its node_modules; from a repository only its published files. */
export async function copyPackage(from: string, to: string, files: readonly string[] | undefined): Promise<void> {
  const takes = (path: string) => files === undefined || (isPublished(path, files) && !TYPES.test(path))
  await copyTree(from, to, takes, new Set(['node_modules']))
}

/** Copies files and links as they are, except the folders `aside`. */
export async function copyTree(
  from: string,
  to: string,
  takes: (path: string) => boolean = () => true,
  aside: ReadonlySet<string> = new Set()
): Promise<void> {
  const files = (await filesIn(from, '', aside)).filter(file => takes(file.path))
  for (const folder of new Set(files.map(file => dirname(join(to, file.path))))) await mkdir(folder, { recursive: true })
  const copy = ({ path, isLink }: FileFound) =>
    isLink ? copyLink(join(from, path), join(to, path)) : copyOne(join(from, path), join(to, path))
  await Promise.all(files.map(copy))
}

interface FileFound {
  readonly path: string
  readonly isLink: boolean
}

async function filesIn(root: string, folder: string, aside: ReadonlySet<string>): Promise<FileFound[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true })
  const found = await Promise.all(
    entries.map(async (entry): Promise<FileFound[]> => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory()) return aside.has(path) ? [] : filesIn(root, path, aside)
      return [{ path, isLink: entry.isSymbolicLink() }]
    })
  )
  return found.flat()
}

const copyLink = async (from: string, to: string) => symlink(await readlink(from), to)

/** Makes files readable for all users, because another user can run the build. Executables stay executable. */
export async function copyOne(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE)
  await chmod(to, ((await stat(from)).mode & 0o100) === 0 ? 0o644 : 0o755)
}

/** Gives everything in a folder the same times, and folders the same mode. */
export async function level(folder: string): Promise<void> {
  for (const item of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, item.name)
    await (item.isDirectory() ? level(path) : lutimes(path, WRITTEN, WRITTEN))
  }
  await chmod(folder, 0o755)
  await lutimes(folder, WRITTEN, WRITTEN)
}
