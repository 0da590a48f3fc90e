import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, posix, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isTree } from '@svc/core'
import { entryOf } from '../../set.ts'
import { cloneToBuild } from './development-specs.ts'
import type { PackageJson } from './plugin-folder.ts'

// A package in TypeScript has a source, which `svc plugins test` and `dev` run, and a build, which `install` and `serve` run.

/** The result of a type check. */
export interface TypeCheck {
  /** Why there was no check. */
  readonly skipped?: string
  /** The errors of the compiler. */
  readonly error?: string
  readonly ms: number
}

const CHECK_MS = 60_000
const MOST_LINES = 20

/** Checks the types of a package with its own compiler. Resolves with undefined for a package without a tsconfig.json. */
export async function checkTypes(folder: string): Promise<TypeCheck | undefined> {
  if (!existsSync(join(folder, 'tsconfig.json'))) return undefined
  const clone = cloneToBuild()
  if (clone !== undefined) return { skipped: `svc itself is not built (cd ${clone} && npm run build)`, ms: 0 }
  const compiler = compilerOf(folder)
  if (compiler === undefined) return { skipped: 'the package typescript is not installed (npm install)', ms: 0 }
  const began = performance.now()
  const error = await compile(compiler, folder)
  return { ms: Math.round(performance.now() - began), ...(error === undefined ? {} : { error }) }
}

function compilerOf(folder: string): string | undefined {
  try {
    const file = findPackageJSON('typescript', pathToFileURL(join(folder, 'package.json')))
    const { bin } = JSON.parse(readFileSync(file!, 'utf8')) as { readonly bin: { readonly tsc: string } }
    return join(dirname(file!), bin.tsc)
  } catch {
    return undefined
  }
}

const compile = (compiler: string, cwd: string): Promise<string | undefined> =>
  new Promise(resolve => {
    const args = [compiler, '--noEmit', '--pretty', 'false', '-p', 'tsconfig.json']
    execFile(process.execPath, args, { cwd, timeout: CHECK_MS }, (error, stdout, stderr) => {
      if (error === null) return resolve(undefined)
      const lines = `${stdout}${stderr}`.trim().split('\n')
      const more = lines.length > MOST_LINES ? [`and ${lines.length - MOST_LINES} more lines`] : []
      const said = [...lines.slice(0, MOST_LINES), ...more].join('\n')
      resolve(error.killed === true ? `the compiler did not end within ${CHECK_MS / 1000} s` : said || error.message)
    })
  })

/** A build that does not contain the source. */
export interface StaleBuild {
  readonly isMissing: boolean
  /** What is wrong, and what to do. */
  readonly text: string
}

/** Finds a build that is missing, or older than the source. Undefined for a package without a separate source. */
export function staleBuild(folder: string): StaleBuild | undefined {
  const { exports, main } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson
  const [source, build] = [inside(developmentOf(exports)), inside(entryOf(main, exports))]
  if (source === undefined || build === undefined || !existsSync(join(folder, source))) return undefined
  const todo = 'run `npm run build` before you install it'
  if (!existsSync(join(folder, build))) return { isMissing: true, text: `its build ${build} does not exist: ${todo}` }
  const output = join(folder, dirname(build))
  const [code, built] = [newestBelow(join(folder, dirname(source)), output), newestBelow(output)]
  if (code.ms <= built.ms) return undefined
  const path = relative(folder, code.path).split(sep).join('/')
  return { isMissing: false, text: `its build is older than ${path}: ${todo}` }
}

function developmentOf(exports: unknown): string | undefined {
  const main = isTree(exports) && isTree(exports['.']) ? exports['.'].development : undefined
  return typeof main === 'string' ? main : undefined
}

/** A path in the package; undefined for one that leads out of it. */
function inside(path: string | undefined): string | undefined {
  const normal = path === undefined ? undefined : posix.normalize(path)
  return normal === undefined || normal.startsWith('../') || posix.isAbsolute(normal) ? undefined : normal
}

interface Newest {
  readonly path: string
  readonly ms: number
}

const CODE = /\.[mc]?[jt]s$|\.json$/

/** The file of code that was changed last, without those of packages and of a folder `aside`. */
function newestBelow(folder: string, aside?: string): Newest {
  let newest = { path: folder, ms: 0 }
  for (const item of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, item.name)
    if (item.name === 'node_modules' || item.name.startsWith('.') || path === aside) continue
    const found = item.isDirectory()
      ? newestBelow(path, aside)
      : { path, ms: item.isFile() && CODE.test(item.name) ? statSync(path).mtimeMs : 0 }
    if (found.ms > newest.ms) newest = found
  }
  return newest
}
