import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { join } from 'node:path'
import { DEFAULTS, OURS, reservedFor } from '@svc/cli/program'
import {
  asSvcError,
  commandsOf,
  type Manifest,
  messageOf,
  type PackageInfo,
  readManifest,
  routesOf,
  slotsOf,
  matchesPattern,
} from '@svc/core'
import { type LintFinding, folderOfPlugin, type LintedPackage, type PackageJson } from './plugin-folder.ts'
import { packageFindings } from './lint-package.ts'
import { sourceFindings } from './lint-source.ts'

/** Checks the package in a folder without running its code. Throws PLUGIN_UNKNOWN. */
export async function lintPlugin(place: string): Promise<LintFinding[]> {
  const folder = folderOfPlugin(place)
  const file = join(folder, 'package.json')
  const { info, problems } = await manifestOf(file)
  const json = jsonOf(file)
  const linted: LintedPackage = { folder, json, ...(info ? { info } : {}) }
  const named = [...(await takenFindings(linted)), ...routeFindings(linted), ...grantFindings(linted)]
  return [...problems, ...packageFindings(linted), ...named, ...sourceFindings(linted)]
}

async function manifestOf(file: string): Promise<{ info?: PackageInfo; problems: LintFinding[] }> {
  try {
    return { info: await readManifest(file), problems: [] }
  } catch (error) {
    const { code, where = 'package.json', hint = 'Fix the manifest' } = asSvcError(error, 'MANIFEST_INVALID')
    return { problems: [{ level: 'error', code, message: messageOf(error), where, hint }] }
  }
}

function jsonOf(file: string): PackageJson {
  try {
    return Object(JSON.parse(readFileSync(file, 'utf8'))) as PackageJson
  } catch {
    // the manifest's finding reports it
    return {}
  }
}

/** Declared routes that a server would not serve. */
function routeFindings({ info }: LintedPackage): LintFinding[] {
  if (info === undefined) return []
  const { public_routes: open = [] } = info.manifest.permissions ?? {}
  return routesOf(info.manifest).flatMap(([name, { path, scope }]): LintFinding[] => [
    ...(scope === undefined && !open.some(word => matchesPattern(word, name)) ? [routeOpen(name, path)] : []),
    ...(/^\/\.well-known(\/|$)/.test(path) ? [routeReserved(name, path)] : []),
  ])
}

/** Single items beside the permission for all of them, which makes them meaningless. */
function grantFindings({ info }: LintedPackage): LintFinding[] {
  const { services = [], tools = [], providers = [], spaces = [] } = info?.manifest.permissions ?? {}
  const named = (
    [
      ['tools', 'tools', tools],
      ['providers', 'providers', providers],
      ['spaces', 'store', spaces],
    ] as const
  ).filter(([, , names]) => names.length > 0)
  return named.flatMap(([items, all]): LintFinding[] =>
    services.some(word => matchesPattern(word, all)) ? [grantedTwice(items, all)] : []
  )
}

const grantedTwice = (items: string, all: string): LintFinding => ({
  level: 'warning',
  code: 'PERMISSION_WIDE',
  message: `the manifest names single ${items}, but "services" asks for all ${items}`,
  hint: `Remove "${all}" from "services"`,
  where: 'package.json',
})

const routeOpen = (name: string, path: string): LintFinding => ({
  level: 'error',
  code: 'PERMISSION_MISSING',
  message: `the route "${name}" (${path}) has no scope, so it needs no credential, and the manifest does not declare the permission`,
  hint: `Give it a scope, or declare the permission: "permissions": { "public_routes": ["${name}"] }`,
  where: 'package.json',
})

const routeReserved = (name: string, path: string): LintFinding => ({
  level: 'warning',
  code: 'ROUTE_RESERVED',
  message: `an isolated plugin cannot serve the route "${name}" (${path})`,
  hint: 'Choose a path that is not below /.well-known',
  where: 'package.json',
})

/** Names that svc or one of its plugins uses: a server with this plugin would not start. */
async function takenFindings({ info }: LintedPackage): Promise<LintFinding[]> {
  if (info === undefined) return []
  const taken = await curatedNames()
  const names = slotsOf(info.manifest).flatMap(([slot, list]) =>
    list.flatMap(name => taken.get(`${slot} ${name}`)?.map(by => nameTaken(slot, name, by)) ?? [])
  )
  return [...names, ...commandsOf(info.manifest).flatMap(commandFindings), ...topicFindings(info.manifest)]
}

const nameTaken = (slot: string, name: string, by: string): LintFinding => ({
  level: 'error',
  code: 'NAME_TAKEN',
  message: `${by} already has the name "${name}" in ${slot}`,
  hint: 'Choose another name',
  where: 'package.json',
})

function commandFindings(name: string): LintFinding[] {
  const by = reservedFor(name.split(' '))
  return by === undefined ? [] : [{ ...nameTaken('commands', name, by), code: 'COMMAND_TAKEN' }]
}

/** Topics of commands without a help line. */
const topicFindings = (manifest: Manifest): LintFinding[] =>
  [...new Set(commandsOf(manifest).flatMap(name => (name.includes(' ') ? [name.split(' ')[0]!] : [])))]
    .filter(topic => manifest.topics?.[topic] === undefined)
    .map(topic => ({
      level: 'warning',
      code: 'TOPIC_UNDESCRIBED',
      message: `\`svc --help\` has no line for the topic "${topic}" and shows the description of the package`,
      hint: `Add "topics": { "${topic}": "…" } to the "svc" part`,
      where: 'package.json',
    }))

/** The names that the curated plugins declare, with the plugin: `tools read_file` → its name. */
async function curatedNames(): Promise<ReadonlyMap<string, string[]>> {
  const names = new Map<string, string[]>()
  for (const plugin of DEFAULTS.plugins as readonly string[]) {
    const { manifest } = await readManifest(findPackageJSON(plugin, OURS)!)
    for (const [slot, name] of namesIn(manifest)) names.set(`${slot} ${name}`, [...(names.get(`${slot} ${name}`) ?? []), plugin])
  }
  return names
}

/** Slot and name of all literal names in a manifest, without commands. */
export const namesIn = (manifest: Manifest): (readonly [slot: string, name: string])[] =>
  slotsOf(manifest).flatMap(([slot, list]) => list.flatMap(name => (name.includes('*') ? [] : [[slot, name] as const])))
