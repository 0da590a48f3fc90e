import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'
import { HOST_PACKAGES, hostPackageOf } from './host-packages.ts'
import { CODE, withImports } from './imported.ts'

/** The parts of a package.json that decide what its modules can import. */
interface PackageJson {
  readonly name?: string
  readonly main?: string
  readonly exports?: unknown
  readonly dependencies?: object
  readonly peerDependencies?: object
  readonly optionalDependencies?: object
}

/**
 * Lists imports of packages that the package in a folder does not declare, each once, as a sentence. Such a package is missing
 * after the installation, even if a folder around the plugin has it now. Its modules are read, not run.
 */
export function undeclaredImports(folder: string): string[] {
  const json = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson
  const { name, dependencies, peerDependencies, optionalDependencies } = json
  const given = { ...peerDependencies, ...dependencies, ...optionalDependencies }
  const missing = modulesOf(folder, json)
    .flatMap(file => packagesImportedBy(file))
    .filter(one => one.name !== name && !isBuiltin(one.name) && (!Object.hasOwn(given, one.name) || isForTests(one.name)))
  return [...new Set(missing.map(one => importText(one.name, relative(realpathSync(folder), one.file))))]
}

const isForTests = (name: string) => hostPackageOf(name)?.only === 'tests'

/** What is wrong with an import, and what to declare. */
function importText(name: string, file: string): string {
  if (isForTests(name)) return `${file} imports ${name}, which is only for tests: import it in test files only`
  if (!name.startsWith('@svc/'))
    return `${file} imports ${name}, which its package.json does not declare: add it to "dependencies"`
  if (hostPackageOf(name)) return `${file} imports ${name}, which its package.json does not declare: add it to "peerDependencies"`
  const given = HOST_PACKAGES.filter(one => one.only !== 'tests').map(one => one.name)
  return `${file} imports ${name}, which svc does not give to plugins: use ${given.join(', ')}`
}

/** The files that `exports` or `main` name and that exist: the source for development and the build. */
function modulesOf(folder: string, { main = 'index.js', exports = main }: PackageJson): string[] {
  const files = targetsOf(exports).map(target => join(folder, target))
  return [...new Set(files)].filter(file => CODE.test(file) && !/\.d\.[mc]?ts$/.test(file) && existsSync(file))
}

function targetsOf(target: unknown): string[] {
  if (typeof target === 'string') return target.includes('*') ? [] : [target]
  return typeof target === 'object' && target !== null ? Object.values(target).flatMap(targetsOf) : []
}

interface PackageImport {
  /** `pg`, `@svc/core`. */
  readonly name: string
  readonly file: string
}

/** `import … from 'pg'`, `export … from`, `import 'pg'`, `import('pg')`, `require('pg')`. `import type` is no import at run time. */
const PACKAGE_IMPORT =
  /(?:^|[;\n])\s*(?:import|export)\s+(?!type\s+[\w{*])(?:[\w$\s{},*]+?\s+from\s*)?["']([^"'\n]+)["']|\b(?:import|require)\s*\(\s*["'`]([^"'`\n$]+)["'`]\s*\)/g
const COMMENTS = /(['"`])(?:\\[^]|(?!\1)[^])*?\1|\/\/.*|\/\*[^]*?\*\//g

/** Lists the packages that a module and the modules of its relative imports name. The files are read, not run. */
const packagesImportedBy = (file: string): PackageImport[] =>
  withImports(file).flatMap(one => (CODE.test(one) ? packagesIn(one) : []))

function packagesIn(file: string): PackageImport[] {
  const code = readFileSync(file, 'utf8').replaceAll(COMMENTS, (found, quote: string | undefined) =>
    quote === undefined ? '' : found
  )
  const names = [...code.matchAll(PACKAGE_IMPORT)].map(([, from, call]) => from ?? call ?? '')
  const packages = names.flatMap(name => /^(?![./#])(?!\w+:)(?:@[\w.~-]+\/)?[\w.~-]+/.exec(name)?.[0] ?? [])
  return [...new Set(packages)].map(name => ({ name, file }))
}
