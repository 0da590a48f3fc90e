import { existsSync, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { constants, gunzipSync } from 'node:zlib'
import { visible } from '@svc/cli/command'
import { dottedFromCaller, fromCaller, setHome } from '@svc/cli/program'
import { isTree, shownPath } from '@svc/core'
import { type LockedPlugin, pathIn, planChange, planRestore, readLock } from '../../set.ts'
import { type ChangeCommand, runChange, printSuccess } from './change.ts'
import { staleBuild } from '../author/source-and-build.ts'
import { bundleOrName, notInstalled, severalWithBundle } from '../errors.ts'

export interface InstallAsked extends Pick<ChangeCommand, 'isolation' | 'trust' | 'yes' | 'dryRun' | 'json' | 'config'> {
  readonly specs: readonly string[]
  readonly offline: boolean
  readonly scripts: boolean
}

/** `svc plugins install`: installs plugins, or the whole set of a bundle; resolves with the exit code. */
export async function installPlugins({ specs: words, offline, scripts, ...asked }: InstallAsked): Promise<number> {
  const specs = words.map(dottedFromCaller)
  const bundles = await Promise.all(specs.map(async spec => isBundle(pathIn(spec))))
  const nothing = 'already installed: nothing to change'
  noteStale(specs.flatMap(spec => pathIn(spec) ?? []))
  // in a folder of another author, a file could have the name of a package
  for (const spec of specs) if (pathIn(spec) === undefined && (await isBundle(fromCaller(spec)))) throw bundleOrName(spec)
  if (!bundles.includes(true)) {
    const install = specs.map(spec => ({ spec, scripts }))
    return runChange((home, options) => planChange(home, { install, offline }, options), {
      ...asked,
      verb: 'install',
      done: 'installed',
      nothing,
    })
  }
  const [file = '', ...others] = specs
  if (others.length > 0) throw severalWithBundle()
  return runChange((home, options) => planRestore(home, pathIn(file) ?? file, options), {
    ...asked,
    verb: 'restore',
    done: 'restored',
    nothing,
    isBundle: true,
  })
}

/** `svc plugins link`: uses a plugin in its folder. */
export function linkPlugin({
  folder,
  ...asked
}: Omit<InstallAsked, 'specs' | 'offline' | 'scripts'> & { readonly folder: string }): Promise<number> {
  const spec = dottedFromCaller(folder)
  noteStale([spec])
  return runChange((home, options) => planChange(home, { link: [spec] }, options), {
    ...asked,
    verb: 'link',
    done: 'linked',
    nothing: 'already linked: nothing to change',
  })
}

/** Notes folders whose build is older than their source: svc runs the build. The change itself reports a missing build. */
function noteStale(paths: readonly string[]): void {
  for (const path of paths) {
    const stale = isPackage(path) ? staleBuild(path) : undefined
    if (stale?.isMissing === false) process.stderr.write(`note: ${visible(shownPath(path))}: ${visible(stale.text)}\n`)
  }
}

function isPackage(path: string): boolean {
  try {
    return isTree(JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')))
  } catch {
    return false
  }
}

/** The first entry of a bundle. In the tarball of a package, the first entry is in a folder. */
const FIRST = 'bundle.json\0'
const HEAD_BYTES = 4096

/**
 * Whether a path leads to a bundle of `svc plugins pack`, by its first entry, whatever its name is. An unreadable file is not a
 * bundle; its reader reports the error.
 */
async function isBundle(path: string | undefined): Promise<boolean> {
  if (path === undefined) return false
  try {
    // the rest is not read, and can be missing
    return gunzipSync(await headOf(path), { finishFlush: constants.Z_SYNC_FLUSH })
      .toString('latin1')
      .startsWith(FIRST)
  } catch {
    return false
  }
}

async function headOf(file: string): Promise<Uint8Array> {
  await using handle = await open(file)
  const head = Buffer.alloc(HEAD_BYTES)
  const { bytesRead } = await handle.read(head)
  return head.subarray(0, bytesRead)
}

export interface UpdateAsked extends Pick<ChangeCommand, 'isolation' | 'trust' | 'yes' | 'dryRun' | 'json' | 'config'> {
  /** Empty: all. */
  readonly names: readonly string[]
  readonly offline: boolean
}

/** `svc plugins update`: requests each plugin again in the way it was installed. */
export async function updatePlugins({ names, offline, ...asked }: UpdateAsked): Promise<number> {
  const { plugins } = await readLock(setHome())
  for (const name of names) named(plugins, name)
  if (plugins.length === 0) return printSuccess(asked, { text: 'no plugin is installed', facts: { plugins: [], removed: [] } })
  const gone = names.length > 0 ? [] : plugins.filter(isGone)
  for (const { name, origin } of gone)
    process.stderr.write(
      `note: ${name} stays as it is, because the ${origin.kind} ${visible(shownPath(origin.spec))} does not exist: install it from its new place (svc plugins install <path>)\n`
    )
  const update = gone.length > 0 ? plugins.filter(plugin => !gone.includes(plugin)).map(plugin => plugin.name) : 'all'
  return runChange((home, options) => planChange(home, { update: names.length > 0 ? names : update, offline }, options), {
    ...asked,
    verb: 'update',
    done: 'updated',
    nothing: 'all plugins are up to date',
  })
}

export interface RollbackAsked extends Pick<ChangeCommand, 'yes' | 'dryRun' | 'json' | 'config'> {
  readonly names: readonly string[]
  readonly offline: boolean
}

/** `svc plugins rollback`: goes back to the version that the installed one has replaced. */
export function rollBackPlugins({ names, offline, ...asked }: RollbackAsked): Promise<number> {
  return runChange((home, options) => planChange(home, { rollback: names, offline }, options), {
    ...asked,
    trust: false,
    verb: 'roll back',
    done: 'rolled back to',
    nothing: 'nothing to change',
  })
}

/** The folder or tarball of the plugin has moved. */
const isGone = ({ origin: { kind, spec } }: LockedPlugin) => (kind === 'folder' || kind === 'tarball') && !existsSync(spec)

/** Returns an installed plugin. Throws PLUGIN_NOT_INSTALLED. */
export function named(plugins: readonly LockedPlugin[], name: string): LockedPlugin {
  const found = plugins.find(plugin => plugin.name === name)
  if (found) return found
  throw notInstalled(
    name,
    plugins.map(plugin => plugin.name)
  )
}
