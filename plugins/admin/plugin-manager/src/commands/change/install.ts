import { open } from 'node:fs/promises'
import { constants, gunzipSync } from 'node:zlib'
import { dottedFromCaller, setHome } from '@svc/cli/program'
import { type LockedPlugin, planChange, planRestore, readLock } from '../../set.ts'
import { type ChangeCommand, runChange, printSuccess } from './change.ts'
import { notInstalled, severalWithBundle } from '../errors.ts'

export interface InstallAsked extends Pick<ChangeCommand, 'isolation' | 'trust' | 'yes' | 'dryRun' | 'json' | 'config'> {
  readonly specs: readonly string[]
  readonly offline: boolean
  readonly scripts: boolean
}

/** `svc plugins install`: installs plugins, or the whole set of a bundle; resolves with the exit code. */
export async function installPlugins({ specs: words, offline, scripts, ...asked }: InstallAsked): Promise<number> {
  const specs = words.map(dottedFromCaller)
  const bundles = await Promise.all(specs.map(isBundle))
  const nothing = 'already installed: nothing to change'
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
  return runChange((home, options) => planRestore(home, file, options), {
    ...asked,
    verb: 'restore',
    done: 'restored',
    nothing,
    isBundle: true,
  })
}

/** `svc plugins link`: uses a plugin in its folder. */
export const linkPlugin = ({
  folder,
  ...asked
}: Omit<InstallAsked, 'specs' | 'offline' | 'scripts'> & { readonly folder: string }) =>
  runChange((home, options) => planChange(home, { link: [dottedFromCaller(folder)] }, options), {
    ...asked,
    verb: 'link',
    done: 'linked',
    nothing: 'already linked: nothing to change',
  })

const TARBALL = /\.(tgz|tar\.gz)$/
/** The first entry of a bundle. In the tarball of a package, the first entry is in a folder. */
const FIRST = 'bundle.json\0'
const HEAD_BYTES = 4096

/**
 * Whether a file is a bundle of `svc plugins pack`, by its first entry. An unreadable file is not a bundle; its reader reports
 * the error.
 */
async function isBundle(file: string): Promise<boolean> {
  if (!TARBALL.test(file)) return false
  try {
    // the rest is not read, and can be missing
    return gunzipSync(await headOf(file), { finishFlush: constants.Z_SYNC_FLUSH })
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
  return runChange((home, options) => planChange(home, { update: names.length > 0 ? names : 'all', offline }, options), {
    ...asked,
    verb: 'update',
    done: 'updated',
    nothing: 'all plugins are up to date',
  })
}

/** Returns an installed plugin. Throws PLUGIN_NOT_INSTALLED. */
export function named(plugins: readonly LockedPlugin[], name: string): LockedPlugin {
  const found = plugins.find(plugin => plugin.name === name)
  if (found) return found
  throw notInstalled(
    name,
    plugins.map(plugin => plugin.name)
  )
}
