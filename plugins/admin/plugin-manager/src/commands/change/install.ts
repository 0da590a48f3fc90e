import { open } from 'node:fs/promises'
import { constants, gunzipSync } from 'node:zlib'
import { dottedFromCaller, setHome } from '@svc/cli/program'
import { type LockedPlugin, planChange, planRestore, readLock } from '../../set.ts'
import { type Asked, runChange, tell } from './change.ts'
import { notInstalled, severalWithBundle } from '../errors.ts'

export interface InstallAsked extends Pick<Asked, 'isolation' | 'trust' | 'yes' | 'dryRun' | 'json' | 'config'> {
  readonly specs: readonly string[]
  readonly offline: boolean
  readonly scripts: boolean
}

/** `svc plugins install`: plugins from anywhere, or the whole set of a bundle; resolves with the exit code. */
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

/** `svc plugins link`: a folder that is used where it lies. */
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
/** The first entry of a bundle; that of a package's tarball lies in a folder. */
const FIRST = 'bundle.json\0'
const HEAD_BYTES = 4096

/** Whether a file is a bundle of `svc plugins pack`, by its first name; an unreadable file is not a bundle, and its reader reports why. */
async function isBundle(file: string): Promise<boolean> {
  if (!TARBALL.test(file)) return false
  try {
    // the rest of it is not looked at, and need not be there
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

export interface UpdateAsked extends Pick<Asked, 'isolation' | 'trust' | 'yes' | 'dryRun' | 'json' | 'config'> {
  /** None: all. */
  readonly names: readonly string[]
  readonly offline: boolean
}

/** `svc plugins update`: each is asked for again as it was installed. */
export async function updatePlugins({ names, offline, ...asked }: UpdateAsked): Promise<number> {
  const { plugins } = await readLock(setHome())
  for (const name of names) named(plugins, name)
  if (plugins.length === 0) return tell(asked, { text: 'no plugin is installed', facts: { plugins: [], removed: [] } })
  return runChange((home, options) => planChange(home, { update: names.length > 0 ? names : 'all', offline }, options), {
    ...asked,
    verb: 'update',
    done: 'updated',
    nothing: 'nothing newer than what is installed',
  })
}

/** An installed plugin. Throws PLUGIN_NOT_INSTALLED. */
export function named(plugins: readonly LockedPlugin[], name: string): LockedPlugin {
  const found = plugins.find(one => one.name === name)
  if (found) return found
  throw notInstalled(
    name,
    plugins.map(one => one.name)
  )
}
