import { existsSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { COMMANDS_MODULE, commandsOf } from '@svc/core'
import { HOST_PACKAGES, hostPackageFolder, undeclaredImports } from '@svc/core/config'
import { strayDependencies } from '../../set.ts'
import { TEMPLATES } from '../../templates-folder.ts'
import type { LintFinding, LintedPackage, PackageJson } from './plugin-folder.ts'
import { nameProblem } from './new-plugin.ts'

const error = (code: string, message: string, hint: string): LintFinding => ({
  level: 'error',
  code,
  message,
  hint,
  where: 'package.json',
})
const warning = (code: string, message: string, hint: string): LintFinding => ({
  ...error(code, message, hint),
  level: 'warning',
})

/** Problems of the package for npm and Node. */
export const packageFindings = (linted: LintedPackage): LintFinding[] => [
  ...nameFindings(linted.json),
  ...aboutFindings(linted),
  ...fileFindings(linted),
  ...hostFindings(linted),
  ...strayFindings(linted),
  ...scriptFindings(linted),
]

function nameFindings({ name, private: isPrivate }: PackageJson): LintFinding[] {
  const problem = typeof name === 'string' ? nameProblem(name) : 'package.json has no "name"'
  return [
    ...(problem === undefined ? [] : [error('NAME_INVALID', problem, 'Choose another name')]),
    ...(isPrivate === true ? [error('PRIVATE', '"private": true keeps npm from publishing it', 'Remove "private"')] : []),
  ]
}

function aboutFindings({ folder, json }: LintedPackage): LintFinding[] {
  const has = (name: RegExp) =>
    ['README.md', 'README', 'readme.md', 'LICENSE', 'LICENSE.md', 'LICENCE'].some(
      item => name.test(item) && existsSync(join(folder, item))
    )
  const keywords = Array.isArray(json.keywords) ? json.keywords : []
  return [
    ...(has(/readme/i)
      ? []
      : [error('README_MISSING', 'there is no README.md', 'Describe what it adds and how to configure it')]),
    ...(typeof json.license === 'string'
      ? []
      : [error('LICENSE_MISSING', 'it has no license, so others cannot use it', 'Add "license": "MIT", or another license')]),
    ...(has(/licen[sc]e/i) ? [] : [warning('LICENSE_FILE_MISSING', 'there is no file LICENSE', 'Add the text of the license')]),
    ...(keywords.includes('svc-plugin')
      ? []
      : [error('KEYWORD_MISSING', '`svc plugins search` does not find it', 'Add "keywords": ["svc-plugin"]')]),
    ...(typeof json.description === 'string' && json.description !== ''
      ? []
      : [warning('DESCRIPTION_MISSING', 'it has no "description"', 'Describe in one line what it adds')]),
    ...(Array.isArray(json.files)
      ? []
      : [warning('FILES_MISSING', 'without "files", npm publishes the whole folder', 'Add "files": ["dist"], or ["src"]')]),
    ...(json.engines === undefined
      ? [warning('ENGINES_MISSING', 'it does not declare its version of Node', 'Add "engines": { "node": ">=24" }')]
      : []),
  ]
}

/** The entry files of an installed package. */
function fileFindings({ folder, json, info }: LintedPackage): LintFinding[] {
  const entries =
    json.exports === undefined ? [typeof json.main === 'string' ? json.main : 'index.js'] : installedOf(json.exports)
  const all = [...new Set(entries)]
  const hasCommands = info !== undefined && commandsOf(info.manifest).length > 0
  return [
    ...all.flatMap(file => (existsSync(join(folder, file)) ? [] : [missing(file, json)])),
    ...all.flatMap(file => (/^\.[mc]?ts$/.test(extname(file)) && !file.endsWith('.d.ts') ? [stripped(file)] : [])),
    ...(isKey(json.exports, '.') || json.exports === undefined
      ? []
      : [error('ENTRY_MISSING', '"exports" has no "."', 'Let "." name the module of the plugin')]),
    ...(hasCommands && (typeof json.exports === 'string' || !isKey(json.exports, COMMANDS_MODULE)) ? [commandsMissing] : []),
    ...(json.type === 'module' || info?.manifest.runtime !== undefined || all.every(file => file.endsWith('.mjs'))
      ? []
      : [error('TYPE_MISSING', 'Node would load its modules as CommonJS', 'Add "type": "module"')]),
  ]
}

const isKey = (exports: unknown, key: string) =>
  typeof exports === 'string' ||
  (typeof exports === 'object' &&
    exports !== null &&
    (Object.hasOwn(exports, key) || (key === '.' && !Object.keys(exports).some(item => item.startsWith('.')))))

/** The targets of `exports` for users of the package, without the condition for its development. */
function installedOf(exports: unknown): string[] {
  if (typeof exports === 'string') return [exports]
  if (typeof exports !== 'object' || exports === null) return []
  return Object.entries(exports)
    .filter(([key]) => key !== 'development' && !key.includes('*'))
    .flatMap(([, value]) => installedOf(value))
}

const commandsMissing = error(
  'COMMANDS_MISSING',
  `it declares commands, and "exports" has no "${COMMANDS_MODULE}"`,
  'Let it name the module that exports COMMANDS, the classes by their names'
)

const missing = (file: string, { scripts = {} }: PackageJson) =>
  error(
    'FILE_MISSING',
    `${file} does not exist`,
    scripts.build === undefined ? 'Fix "exports", or add the file' : 'Run npm run build, which writes it'
  )

const stripped = (file: string) =>
  error(
    'TYPES_NOT_STRIPPED',
    `${file} is TypeScript, and Node strips no types inside node_modules`,
    'Build it to JavaScript, and let "exports" name the build'
  )

/** The packages that svc gives to plugins: peers, whose ranges include the version of this svc. */
function hostFindings({ folder, json }: LintedPackage): LintFinding[] {
  const { peerDependencies = {} } = json
  const hint = `Add "peerDependencies": { "@svc/core": "^${versionOf('@svc/core')}" }`
  const missing = peerDependencies['@svc/core'] === undefined
  return [
    ...(missing ? [error('CORE_MISSING', 'it does not declare a range of @svc/core', hint)] : []),
    ...HOST_PACKAGES.flatMap(one => (one.only === 'tests' ? testFindings(json, one.name) : givenFindings(json, one.name))),
    ...(json.name === undefined ? [] : undeclaredImports(folder).map(importFinding)),
  ]
}

/** npm would install such a package a second time as a dependency. */
function givenFindings(json: PackageJson, name: string): LintFinding[] {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = json
  const [range, own] = [peerDependencies[name], versionOf(name)]
  const kind = name === '@svc/core' ? 'CORE' : 'HOST_PACKAGE'
  const hint = `Add "peerDependencies": { "${name}": "^${own}" }`
  const isOwn = dependencies[name] !== undefined || optionalDependencies[name] !== undefined
  return [
    ...(isOwn ? [error(`${kind}_TWICE`, `npm would install ${name} a second time as a dependency`, hint)] : []),
    ...(range === undefined || takes(range, own)
      ? []
      : [error(`${kind}_RANGE`, `its range "${range}" of ${name} excludes ${own}, the version of this svc`, hint)]),
    ...(range === '*' || range === 'latest' ? [warning(`${kind}_OPEN`, `a later ${name} can break it`, hint)] : []),
  ]
}

const testFindings = ({ dependencies = {}, peerDependencies = {} }: PackageJson, name: string): LintFinding[] =>
  dependencies[name] === undefined && peerDependencies[name] === undefined
    ? []
    : [error('TESTING_SHIPPED', `users of the plugin would need ${name}`, `Move ${name} to "devDependencies"`)]

const importFinding = (message: string) =>
  error('IMPORT_UNDECLARED', message, 'Declare each package that the code imports: an installed plugin sees no other')

const versionOf = (name: string): string => {
  const folder = hostPackageFolder(name)
  const file = folder === undefined ? new URL('../package.json', TEMPLATES) : join(folder, 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

/** Whether a plain range includes a version. Leaves composed ranges to npm. */
function takes(range: string, version: string): boolean {
  const [, sign = '', ...wanted] = /^([\^~]?|>=)(\d+)\.(\d+)\.(\d+)$/.exec(range) ?? []
  if (wanted.length === 0) return true
  const [a, b] = [wanted.map(Number), version.split('.').map(Number)] as [number[], number[]]
  const at = a.findIndex((part, index) => part !== b[index])
  if (at === -1) return true
  const fixed = sign === '' ? 3 : sign === '>=' ? 0 : sign === '~' ? 2 : a.findIndex(part => part > 0) + 1
  return at >= fixed && b[at]! > a[at]!
}

/** Uses the same function as `svc plugins install`. */
const strayFindings = ({ folder, json }: LintedPackage): LintFinding[] =>
  [json, ...installed(folder, json)].flatMap(item =>
    strayDependencies(item).map(what =>
      error(
        'PLUGIN_DEPENDENCY_STRAY',
        `${item.name ?? 'it'} ${what}: svc plugins install rejects it`,
        'Depend only on packages of the registry, by name and version'
      )
    )
  )

const INSTALL = ['preinstall', 'install', 'postinstall']

/** Scripts that npm would run at the installation. svc runs them only with the operator's permission. */
function scriptFindings({ folder, json }: LintedPackage): LintFinding[] {
  const found = [
    ...new Set(
      [json, ...installed(folder, json)].flatMap(item =>
        INSTALL.some(name => item.scripts?.[name] !== undefined) ? [item.name ?? ''] : []
      )
    ),
  ]
  return found.map(name =>
    warning(
      'INSTALL_SCRIPTS',
      `${name} has install scripts, which do not run unless the operator allows them`,
      'Remove the install scripts: without them, parts of the plugin are missing after the installation'
    )
  )
}

/** Its installed dependencies, and theirs. */
function installed(folder: string, json: PackageJson, seen = new Set<string>()): PackageJson[] {
  return Object.keys(json.dependencies ?? {}).flatMap(name => {
    const file = packageOf(name, folder)
    if (file === undefined || seen.has(file)) return []
    seen.add(file)
    const next = JSON.parse(readFileSync(file, 'utf8')) as PackageJson
    return [next, ...installed(join(file, '..'), next, seen)]
  })
}

function packageOf(name: string, folder: string): string | undefined {
  try {
    return findPackageJSON(name, pathToFileURL(join(folder, 'package.json')))
  } catch {
    return undefined
  }
}
