import type { Candidate, PermissionChange } from './change-types.ts'
import type { Fetched } from './fetch.ts'
import { dependenciesOf, type NpmLock } from './lock-graph.ts'
import type { IsolationMode, Lock, LockedPlugin, Permissions } from './lock-types.ts'

/** What a person is shown of a plugin that would come; `npmLock` tells what it brings with it. */
export function candidateOf(plugin: Fetched, { plugins }: Lock, npmLock: NpmLock | undefined): Candidate {
  const { name, version, origin, manifest, description, installScripts, scripts, integrity, bytes, registry } = plugin
  const old = plugins.find(one => one.name === name)
  const permissions = manifest.permissions ?? {}
  const change = permissionChange(old?.permissions ?? {}, permissions)
  const dependencies =
    plugin.tarball === undefined || !plugin.hasDependencies || npmLock === undefined ? [] : dependenciesOf(npmLock, name)
  return {
    name,
    ...(old ? { from: old.version } : {}),
    version,
    origin,
    manifest,
    description,
    permissions,
    permissionChange: change,
    installScripts,
    dependencyScripts: dependencies.filter(one => one.hasScripts).map(one => `${one.name}@${one.version}`),
    scripts,
    dependencies: dependencies.length,
    ...(registry ? { registry } : {}),
    integrity,
    bytes,
    same: old !== undefined && isSame(plugin, old, [...change.added, ...change.removed]),
  }
}

function isSame({ origin, version, integrity, scripts }: Fetched, old: LockedPlugin, changes: readonly string[]): boolean {
  if (origin.kind === 'link')
    return old.origin.kind === 'link' && old.origin.spec === origin.spec && old.version === version && changes.length === 0
  return old.integrity === integrity && old.scripts === scripts
}

/** What the lock would say of it: what was chosen before stays. */
export function draftOf(
  { name, version, origin, integrity, permissions, scripts, manifest }: Candidate,
  files: string,
  old: LockedPlugin | undefined
): LockedPlugin {
  const { declares, commands } = old !== undefined && files !== '' && old.files === files ? old : {}
  return {
    name,
    version,
    origin,
    integrity,
    files,
    isolation: isolationOf(manifest.runtime, old?.isolation),
    enabled: old?.enabled ?? true,
    permissions,
    scripts,
    trusted: old?.trusted ?? false,
    ...(declares === undefined ? {} : { declares }),
    ...(commands === undefined ? {} : { commands }),
  }
}

/** Code for the JavaScript sandbox runs nowhere else, and no other code there. */
function isolationOf(runtime: string | undefined, before: IsolationMode | undefined): IsolationMode {
  if (runtime !== undefined) return runtime === 'quickjs' ? 'quickjs' : 'data'
  return before === undefined || before === 'quickjs' || before === 'data' ? 'process' : before
}

const wordsOf = (permissions: Permissions): string[] =>
  Object.entries(permissions).flatMap(([kind, names]) => (names as readonly string[]).map(name => `${kind} ${name}`))

function permissionChange(before: Permissions, after: Permissions): PermissionChange {
  const [had, has] = [new Set(wordsOf(before)), new Set(wordsOf(after))]
  return { added: [...has.difference(had)], removed: [...had.difference(has)] }
}
