import { existsSync, readFileSync } from 'node:fs'
import { copyFile, cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'
import { changedFiles } from './errors.ts'
import type { Fetched } from './fetch.ts'
import { readNpmLock, writeNpmLock } from './lock-graph.ts'
import type { LockedPlugin } from './lock-types.ts'
import { tarballName } from './names.ts'
import { readTarball } from './tarball.ts'

/** What a new set is made of. */
export interface Ingredients {
  /** The set in force, where there is one. */
  readonly old: string | undefined
  /** Plugins that stay as they are. */
  readonly kept: readonly LockedPlugin[]
  /** Plugins that come, with a tarball each. */
  readonly fresh: readonly Fetched[]
  /** What of the old set is not carried on. */
  readonly dropped: readonly string[]
}

/** Writes all that npm needs to put the set together: what is wanted, tarballs, the versions chosen before. Throws PLUGIN_CHANGED for a kept tarball that is not what it was. */
export async function writeSet(set: string, { old, kept, fresh, dropped }: Ingredients): Promise<void> {
  await mkdir(join(set, 'tarballs'), { recursive: true, mode: 0o700 })
  for (const plugin of kept) await keepTarball(old!, set, plugin)
  for (const { name, version, tarball } of fresh) await copyFile(tarball!, join(set, 'tarballs', tarballName(name, version)))
  await writeFile(join(set, 'package.json'), packageJson([...kept, ...fresh]))
  await writeHostStub(set)
  const lock = old === undefined ? undefined : await readNpmLock(old)
  if (lock) await writeNpmLock(set, lock, dropped)
}

async function keepTarball(old: string, set: string, { name, version, integrity }: LockedPlugin): Promise<void> {
  const path = join('tarballs', tarballName(name, version))
  const now = existsSync(join(old, path)) ? await readTarball(join(old, path), name) : undefined
  if (now?.integrity !== integrity) throw changedFiles(name, ['its tarball'])
  await copyFile(join(old, path), join(set, path))
}

function packageJson(plugins: readonly { readonly name: string; readonly version: string }[]): string {
  const own = plugins.map(({ name, version }) => [name, `file:tarballs/${tarballName(name, version)}`] as const)
  const dependencies = Object.fromEntries([['@svc/core', 'file:host/core'] as const, ...own].sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${JSON.stringify({ name: 'svc-plugins', private: true, dependencies }, null, 2)}\n`
}

const hostCore = () => dirname(findPackageJSON('@svc/core', import.meta.url)!)

/** A package with the core's name and version only: npm checks against it what plugins ask of the core, and touches nothing of the core itself. */
async function writeHostStub(set: string): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(hostCore(), 'package.json'), 'utf8')) as { version: string }
  await rm(join(set, 'host'), { recursive: true, force: true })
  await mkdir(join(set, 'host', 'core'), { recursive: true })
  await writeFile(join(set, 'host', 'core', 'package.json'), `${JSON.stringify({ name: '@svc/core', version })}\n`)
}

/** Once npm is done, the core in the set is the very one that loads it. */
export async function linkHost(set: string): Promise<void> {
  await rm(join(set, 'host'), { recursive: true, force: true })
  await mkdir(join(set, 'host'))
  await symlink(hostCore(), join(set, 'host', 'core'), 'dir')
}

/** Takes over what is installed: then npm changes only what differs, and needs no network to take something away. */
export async function copyModules(old: string, set: string, dropped: readonly string[]): Promise<void> {
  const from = join(old, 'node_modules')
  const out = new Set(dropped)
  await cp(from, join(set, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
    filter: path => !out.has(relative(from, path).replaceAll(sep, '/')),
  })
}
