import assert from 'node:assert/strict'
import { readFileSync, realpathSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'
import { HOST_PACKAGES, hostPackageOf, packagesImportedBy } from '@svc/core/config'
import type { KitCase } from './kit-case.ts'
import type { PackageFiles, PluginPackage } from './plugin-package.ts'

interface Declared {
  readonly name?: string
  readonly dependencies?: object
  readonly peerDependencies?: object
  readonly optionalDependencies?: object
}

/** A package that is only in a folder around the plugin, such as a workspace, is missing after the installation. */
export function importCases({ info: { folder }, modules }: PluginPackage): KitCase[] {
  if (modules.size === 0) return []
  return [
    {
      title: 'declares the packages that it imports',
      async run() {
        const words = importProblems({ folder, modules })
        assert.ok(words.length === 0, words.join('\n'))
      },
    },
  ]
}

/** Imports of packages that the package.json does not declare, each once, as a sentence. */
export function importProblems({ folder, modules }: PackageFiles): string[] {
  const { name, dependencies, peerDependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8')
  ) as Declared
  const given = { ...peerDependencies, ...dependencies, ...optionalDependencies }
  const missing = [...new Set(modules.values())]
    .flatMap(file => packagesImportedBy(file))
    .filter(one => one.name !== name && !isBuiltin(one.name) && !Object.hasOwn(given, one.name))
  return [...new Set(missing.map(one => importText(one.name, relative(realpathSync(folder), one.file))))]
}

/** Describes an import of a package that is not declared, and what to declare. */
function importText(name: string, file: string): string {
  const only = hostPackageOf(name)?.only
  if (only === 'tests') return `${file} imports ${name}, which is only for tests: import it in test files only`
  if (name.startsWith('@svc/') && hostPackageOf(name) === undefined)
    return `${file} imports ${name}, which svc does not give to plugins: use ${HOST_PACKAGES.filter(one => one.only !== 'tests')
      .map(one => one.name)
      .join(', ')}`
  const key = name.startsWith('@svc/') ? 'peerDependencies' : 'dependencies'
  return `${file} imports ${name}, which its package.json does not declare: add it to "${key}"`
}
