import { existsSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { COMMANDS_MODULE, commandsOf } from '@svc/core'
import { strayDependencies } from '../../set.ts'
import { TEMPLATES } from '../../templates-folder.ts'
import type { Finding, Linted, PackageJson } from './plugin-folder.ts'
import { faultOf } from './new-plugin.ts'

const error = (code: string, message: string, hint: string): Finding => ({
  level: 'error',
  code,
  message,
  hint,
  where: 'package.json',
})
const warning = (code: string, message: string, hint: string): Finding => ({ ...error(code, message, hint), level: 'warning' })

/** What is wrong with the package as npm and Node see it. */
export const packageFindings = (linted: Linted): Finding[] => [
  ...nameFindings(linted.json),
  ...aboutFindings(linted),
  ...fileFindings(linted),
  ...coreFindings(linted.json),
  ...strayFindings(linted),
  ...scriptFindings(linted),
]

function nameFindings({ name, private: isPrivate }: PackageJson): Finding[] {
  const fault = typeof name === 'string' ? faultOf(name) : 'package.json has no "name"'
  return [
    ...(fault === undefined ? [] : [error('NAME_INVALID', fault, 'choose another name')]),
    ...(isPrivate === true ? [error('PRIVATE', '"private": true keeps npm from publishing it', 'take "private" out')] : []),
  ]
}

function aboutFindings({ folder, json }: Linted): Finding[] {
  const has = (name: RegExp) =>
    ['README.md', 'README', 'readme.md', 'LICENSE', 'LICENSE.md', 'LICENCE'].some(
      one => name.test(one) && existsSync(join(folder, one))
    )
  const keywords = Array.isArray(json.keywords) ? json.keywords : []
  return [
    ...(has(/readme/i) ? [] : [error('README_MISSING', 'there is no README.md', 'say what it adds, and how it is configured')]),
    ...(typeof json.license === 'string'
      ? []
      : [error('LICENSE_MISSING', 'it has no license, so others must not use it', 'add "license": "MIT", or another')]),
    ...(has(/licen[sc]e/i) ? [] : [warning('LICENSE_FILE_MISSING', 'there is no file LICENSE', 'add the text of the licence')]),
    ...(keywords.includes('svc-plugin')
      ? []
      : [error('KEYWORD_MISSING', '`svc plugins search` does not find it', 'add "keywords": ["svc-plugin"]')]),
    ...(typeof json.description === 'string' && json.description !== ''
      ? []
      : [warning('DESCRIPTION_MISSING', 'it has no "description"', 'say in one line what it adds')]),
    ...(Array.isArray(json.files)
      ? []
      : [warning('FILES_MISSING', 'without "files" all of the folder is published', 'add "files": ["dist"], or ["src"]')]),
    ...(json.engines === undefined
      ? [warning('ENGINES_MISSING', 'it does not say which Node it needs', 'add "engines": { "node": ">=24" }')]
      : []),
  ]
}

/** The files that an installed package is entered by. */
function fileFindings({ folder, json, info }: Linted): Finding[] {
  const entries =
    json.exports === undefined ? [typeof json.main === 'string' ? json.main : 'index.js'] : installedOf(json.exports)
  const all = [...new Set(entries)]
  const hasCommands = info !== undefined && commandsOf(info.manifest).length > 0
  return [
    ...all.flatMap(file => (existsSync(join(folder, file)) ? [] : [missing(file, json)])),
    ...all.flatMap(file => (/^\.[mc]?ts$/.test(extname(file)) && !file.endsWith('.d.ts') ? [stripped(file)] : [])),
    ...(isKey(json.exports, '.') || json.exports === undefined
      ? []
      : [error('ENTRY_MISSING', '"exports" has no "."', 'let "." name the module of the plugin')]),
    ...(hasCommands && (typeof json.exports === 'string' || !isKey(json.exports, COMMANDS_MODULE)) ? [commandsMissing] : []),
    ...(json.type === 'module' || info?.manifest.runtime !== undefined || all.every(file => file.endsWith('.mjs'))
      ? []
      : [error('TYPE_MISSING', 'its modules would be read as CommonJS', 'add "type": "module"')]),
  ]
}

const isKey = (exports: unknown, key: string) =>
  typeof exports === 'string' ||
  (typeof exports === 'object' &&
    exports !== null &&
    (Object.hasOwn(exports, key) || (key === '.' && !Object.keys(exports).some(one => one.startsWith('.')))))

/** What `exports` leads to for who has the package installed: not what is for its development. */
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
    `${file} is not there`,
    scripts.build === undefined ? 'fix "exports", or add the file' : 'npm run build writes it'
  )

const stripped = (file: string) =>
  error(
    'TYPES_NOT_STRIPPED',
    `${file} is TypeScript, of which Node strips no types inside node_modules`,
    'publish JavaScript: build it, and let "exports" name the build'
  )

function coreFindings({ dependencies = {}, peerDependencies = {} }: PackageJson): Finding[] {
  const range = peerDependencies['@svc/core']
  const own = (
    JSON.parse(readFileSync(new URL('../package.json', TEMPLATES), 'utf8')) as { peerDependencies: Record<string, string> }
  ).peerDependencies['@svc/core']!
  const hint = `add "peerDependencies": { "@svc/core": "^${own}" }`
  return [
    ...(dependencies['@svc/core'] === undefined
      ? []
      : [error('CORE_TWICE', '@svc/core as a dependency would be installed a second time', hint)]),
    ...(range === undefined ? [error('CORE_MISSING', 'it does not say which @svc/core it works with', hint)] : []),
    ...(range === undefined || takes(range, own)
      ? []
      : [error('CORE_RANGE', `its range "${range}" of @svc/core does not take ${own}, the one of this svc`, hint)]),
    ...(range === '*' || range === 'latest' ? [warning('CORE_OPEN', 'a later @svc/core may break it', hint)] : []),
  ]
}

/** Whether a plain range takes a version; a range of several parts is npm's to judge. */
function takes(range: string, version: string): boolean {
  const [, sign = '', ...wanted] = /^([\^~]?|>=)(\d+)\.(\d+)\.(\d+)$/.exec(range) ?? []
  if (wanted.length === 0) return true
  const [a, b] = [wanted.map(Number), version.split('.').map(Number)] as [number[], number[]]
  const at = a.findIndex((part, index) => part !== b[index])
  if (at === -1) return true
  const fixed = sign === '' ? 3 : sign === '>=' ? 0 : sign === '~' ? 2 : a.findIndex(part => part > 0) + 1
  return at >= fixed && b[at]! > a[at]!
}

/** What `svc plugins install` refuses, and by the same function. */
const strayFindings = ({ folder, json }: Linted): Finding[] =>
  [json, ...installed(folder, json)].flatMap(one =>
    strayDependencies(one).map(what =>
      error(
        'PLUGIN_DEPENDENCY_STRAY',
        `${one.name ?? 'it'} ${what}: svc plugins install refuses it`,
        'let it depend on packages of the registry, by their names and versions'
      )
    )
  )

const INSTALL = ['preinstall', 'install', 'postinstall']

/** Scripts that npm would run where the plugin is installed: they run only where the operator allows them. */
function scriptFindings({ folder, json }: Linted): Finding[] {
  const found = [
    ...new Set(
      [json, ...installed(folder, json)].flatMap(one =>
        INSTALL.some(name => one.scripts?.[name] !== undefined) ? [one.name ?? ''] : []
      )
    ),
  ]
  return found.map(name =>
    warning(
      'INSTALL_SCRIPTS',
      `${name} has install scripts, which do not run unless the operator allows them`,
      'do without: a plugin whose parts are missing fails where it is installed'
    )
  )
}

/** Its dependencies that are installed, and theirs. */
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
