import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hashSet } from './build-set.ts'
import type { Bundle } from './bundle.ts'
import { candidateOf } from './candidate.ts'
import type { Candidate, SetOptions, StagedChange } from './change-types.ts'
import { bundleInvalid } from './errors.ts'
import { holdSet } from './hold.ts'
import { settledLock } from './lock.ts'
import { readNpmLock } from './lock-graph.ts'
import type { Lock, LockedPlugin } from './lock-types.ts'
import { tarballName } from './names.ts'
import { linkHost } from './new-set.ts'
import { readPluginPackage } from './package-json.ts'
import { createStagedChange, type NewSet } from './staged-change.ts'
import { createStaging, type Staging, sweep } from './staging.ts'
import { readTarball } from './tarball.ts'
import { unpackBundle } from './unpack-bundle.ts'

/**
 * Prepares to put what a bundle of `packSet` holds in the place of all that is installed, without npm and network. Each hash is checked here; the candidates are its plugins.
 * What it locks (isolation, trusted, permissions) is what was so where it was packed: it is shown and asked about like an install. Throws BUNDLE_INVALID, PLUGIN_SET_BUSY, LOCK_INVALID.
 */
export async function planRestore(
  home: string,
  file: string,
  options: Pick<SetOptions, 'signal' | 'onProgress'> = {}
): Promise<StagedChange> {
  await using undo = new AsyncDisposableStack()
  const hold = undo.use(await holdSet(home, 'restoring a bundle'))
  const before = await settledLock(home)
  await sweep(home, before)
  const staging = createStaging(home)
  undo.defer(() => staging.remove(false))
  options.onProgress?.({ step: 'unpack' })
  const bundle = await unpackBundle(file, staging.set, options.signal)
  options.onProgress?.({ step: 'hash' })
  const dependencies = checkHashes(staging.set, bundle)
  const candidates = await candidatesOf(bundle, staging, before, options.signal)
  undo.move()
  const names = new Set(candidates.map(one => one.name))
  return createStagedChange({
    home,
    before,
    candidates,
    removed: before.plugins.filter(one => !names.has(one.name)),
    isEmpty: false,
    staging,
    hold,
    make: () => settle(staging, bundle, dependencies),
    tell: step => options.onProgress?.({ step }),
  })
}

/** The files are those that the bundle says; now that these are those which its lock says. */
function checkHashes(set: string, { plugins, dependencies }: Bundle): Lock['dependencies'] {
  const names = plugins.map(one => one.name)
  const now = hashSet(set, names)
  const other = plugins.find(one => one.files === '' || now.own.get(one.name) !== one.files)
  if (other) throw bundleInvalid(`the files of ${other.name} are not those that were installed`)
  if (now.dependencies.files !== dependencies) throw bundleInvalid('the dependencies are not those that were installed')
  return now.dependencies
}

async function candidatesOf(
  { plugins }: Bundle,
  { set, work }: Staging,
  before: Lock,
  signal: AbortSignal | undefined
): Promise<Candidate[]> {
  const npmLock = await readNpmLock(set)
  const candidates: Candidate[] = []
  for (const plugin of plugins) {
    const fetched = await lookAt(plugin, set, work, signal)
    candidates.push({ ...candidateOf(fetched, before, npmLock), permissions: plugin.permissions })
  }
  return candidates
}

async function lookAt(plugin: LockedPlugin, set: string, work: string, signal: AbortSignal | undefined) {
  const { name, version, origin, scripts } = plugin
  const tarball = join(set, 'tarballs', tarballName(name, version))
  const { integrity, bytes, contents } = await readTarball(tarball, name, signal)
  if (integrity !== plugin.integrity) throw bundleInvalid(`the tarball of ${name} is not the one that was installed`)
  const text = await readFile(join(set, 'node_modules', name, 'package.json'), 'utf8')
  const found = await readPluginPackage(text, name, work, contents.has('binding.gyp'))
  if (found.name !== name || found.version !== version) throw bundleInvalid(`${name} is another plugin`)
  return { ...found, origin, scripts, tarball, integrity, bytes }
}

async function settle(staging: Staging, { plugins }: Bundle, dependencies: Lock['dependencies']): Promise<NewSet> {
  await linkHost(staging.set)
  return { folder: await staging.settle(), set: staging.id, kept: [], plugins, dependencies }
}
