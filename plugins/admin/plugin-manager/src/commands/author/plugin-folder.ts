import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { styleText } from 'node:util'
import { fromCaller } from '@svc/cli/program'
import type { PackageInfo } from '@svc/core'
import { noPluginHere } from '../errors.ts'

/** A problem that breaks the installed plugin (`error`), or that its users should know (`warning`). */
export interface LintFinding {
  readonly level: 'error' | 'warning'
  readonly code: string
  readonly message: string
  readonly hint: string
  readonly where?: string
}

/** The unchecked parts of a package.json that the commands read. */
export interface PackageJson {
  readonly [key: string]: unknown
  readonly name?: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** A plugin to check. */
export interface LintedPackage {
  readonly folder: string
  readonly json: PackageJson
  /** Absent if the manifest is invalid. */
  readonly info?: PackageInfo
}

export const hasErrors = (findings: readonly LintFinding[]): boolean => findings.some(({ level }) => level === 'error')

/** Findings for a person, errors first. */
export function findingsText(findings: readonly LintFinding[]): string {
  const errors = findings.filter(({ level }) => level === 'error')
  const lines = [...errors, ...findings.filter(({ level }) => level !== 'error')].map(lineOf)
  return [...lines, `${errors.length} errors, ${findings.length - errors.length} warnings`].join('\n')
}

function lineOf({ level, code, message, hint, where }: LintFinding): string {
  const head = styleText(level === 'error' ? 'red' : 'yellow', level, { stream: process.stdout })
  return `${head} ${code}\n  ${message.replaceAll('\n', '\n  ')}${where === undefined ? '' : `   (${where})`}\n  ${hint}`
}

/** The absolute path of a plugin's folder. Throws PLUGIN_UNKNOWN if it has no package.json. */
export function folderOfPlugin(place: string): string {
  const folder = fromCaller(place)
  if (!existsSync(join(folder, 'package.json'))) throw noPluginHere(place)
  return folder
}
