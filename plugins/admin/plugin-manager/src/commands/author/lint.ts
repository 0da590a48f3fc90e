import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asSvcError, messageOf, type PackageInfo, readManifest, routesOf } from '@svc/core'
import type { Finding, Linted, PackageJson } from './finding.ts'
import { folderOfPlugin } from './folder.ts'
import { packageFindings } from './lint-package.ts'
import { sourceFindings } from './lint-source.ts'
import { takenFindings } from './lint-taken.ts'
import { matchesPattern } from '@svc/runtime/isolation'

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
