import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { styleText } from 'node:util'
import { asSvcError, messageOf, type PackageInfo, readManifest, routesOf } from '@svc/core'
import { folderOfPlugin } from './folder.ts'
import { packageFindings } from './lint-package.ts'
import { sourceFindings } from './lint-source.ts'
import { takenFindings } from './lint-taken.ts'
import { matchesPattern } from '@svc/runtime/isolation'

/** A problem that breaks the installed plugin (`error`), or that its users should know (`warning`). */
export interface Finding {
  readonly level: 'error' | 'warning'
  readonly code: string
  readonly message: string
  readonly hint: string
  readonly where?: string
}

/** A package.json as far as it is looked at here; nothing in it has been checked. */
export interface PackageJson {
  readonly [key: string]: unknown
  readonly name?: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** What is looked at. */
export interface Linted {
  readonly folder: string
  readonly json: PackageJson
  /** Absent where the manifest has faults. */
  readonly info?: PackageInfo
}

/** Looks at the package in a folder; nothing of it runs. Throws PLUGIN_UNKNOWN. */
export async function lintPlugin(place: string): Promise<Finding[]> {
  const folder = folderOfPlugin(place)
  const file = join(folder, 'package.json')
  const { info, faults } = await manifestOf(file)
  const json = jsonOf(file)
  const linted: Linted = { folder, json, ...(info ? { info } : {}) }
  const named = [...(await takenFindings(linted)), ...routeFindings(linted)]
  return [...faults, ...packageFindings(linted), ...named, ...sourceFindings(linted)]
}

async function manifestOf(file: string): Promise<{ info?: PackageInfo; faults: Finding[] }> {
  try {
    return { info: await readManifest(file), faults: [] }
  } catch (error) {
    const { code, where = 'package.json', hint = 'fix the manifest' } = asSvcError(error, 'MANIFEST_INVALID')
    return { faults: [{ level: 'error', code, message: messageOf(error), where, hint }] }
  }
}

function jsonOf(file: string): PackageJson {
  try {
    return Object(JSON.parse(readFileSync(file, 'utf8'))) as PackageJson
  } catch {
    // the manifest's finding says so
    return {}
  }
}

export const hasErrors = (findings: readonly Finding[]): boolean => findings.some(({ level }) => level === 'error')

/** Findings as a person reads them, the errors first. */
export function findingsText(findings: readonly Finding[]): string {
  const errors = findings.filter(({ level }) => level === 'error')
  const lines = [...errors, ...findings.filter(({ level }) => level !== 'error')].map(lineOf)
  return [...lines, `${errors.length} errors, ${findings.length - errors.length} warnings`].join('\n')
}

function lineOf({ level, code, message, hint, where }: Finding): string {
  const head = styleText(level === 'error' ? 'red' : 'yellow', level, { stream: process.stdout })
  return `${head} ${code}\n  ${message.replaceAll('\n', '\n  ')}${where === undefined ? '' : `   (${where})`}\n  ${hint}`
}

/** Routes that the manifest declares and a server would not serve. */
function routeFindings({ info }: Linted): Finding[] {
  if (info === undefined) return []
  const { public_routes: open = [] } = info.manifest.permissions ?? {}
  return routesOf(info.manifest).flatMap(([name, { path, scope }]): Finding[] => [
    ...(scope === undefined && !open.some(word => matchesPattern(word, name)) ? [routeOpen(name, path)] : []),
    ...(/^\/\.well-known(\/|$)/.test(path) ? [routeReserved(name, path)] : []),
  ])
}

const routeOpen = (name: string, path: string): Finding => ({
  level: 'error',
  code: 'PERMISSION_MISSING',
  message: `the route "${name}" (${path}) has no scope, so it needs no credential, and the manifest does not ask for the permission`,
  hint: `give it a scope, or ask for the permission: "permissions": { "public_routes": ["${name}"] }`,
  where: 'package.json',
})

const routeReserved = (name: string, path: string): Finding => ({
  level: 'warning',
  code: 'ROUTE_RESERVED',
  message: `the route "${name}" (${path}) is not served where the plugin runs in a process of its own`,
  hint: 'choose a path that is not below /.well-known',
  where: 'package.json',
})
