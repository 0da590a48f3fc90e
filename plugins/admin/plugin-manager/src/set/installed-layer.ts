import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  asSvcError,
  type Config,
  get,
  isTree,
  type Layer,
  type PluginEntry,
  readManifest,
  type SvcError,
  svcError,
} from '@svc/core'
import type { UnconfiguredPlugin } from '@svc/core/contracts'
import { filesChanging } from '@svc/runtime/isolation'
import { type Lock, LOCK_NAME, type LockedPlugin, pluginFolder, readLock } from './lock.ts'
import { stampOfPlugin, verifyFiles, verifySet } from './verify.ts'

/** The installed plugins as a layer of configuration, with their problems. */
interface Installed {
  readonly layer: Layer
  readonly problems: readonly SvcError[]
}

/** Reads and verifies the installed plugins; uses `lock` instead of the file if given. */
export async function readInstalled(home: string, lock?: Lock): Promise<Installed> {
  try {
    const inForce = lock ?? (await readLock(home))
    return { layer: layerOf(home, inForce), problems: await verified(home, inForce) }
  } catch (error) {
    return { layer: { name: LOCK_NAME, value: {} }, problems: [asSvcError(error, 'LOCK_INVALID')] }
  }
}

/** Verifies the files. In a build, the hint names a new build, because a build cannot reinstall plugins. */
export async function verified(home: string, lock: Lock): Promise<SvcError[]> {
  const problems = await verifySet(home, lock)
  return process.env.SVC_PLUGINS ? problems.map(ofBuild) : problems
}

const ofBuild = ({ code, message, plugin, where, details }: SvcError) =>
  svcError(code, message, {
    details,
    ...(plugin === undefined ? {} : { plugin }),
    ...(where === undefined ? {} : { where }),
    hint: 'Replace this build with a new one (svc build), or copy it again from an intact copy',
  })

function layerOf(home: string, lock: Lock): Layer {
  const plugins = lock.plugins
    .filter(plugin => plugin.enabled)
    .map(plugin => entryOfLocked(plugin, pluginFolder(home, lock, plugin)))
  return { name: LOCK_NAME, value: plugins.length === 0 ? {} : { plugins } }
}

/** Uses the folder, not the name: another package of that name can be next to the configuration. */
export function entryOfLocked(plugin: LockedPlugin, folder: string): PluginEntry {
  const { name, isolation, permissions, values = {}, declares, commands, files } = plugin
  return {
    name,
    use: pathToFileURL(join(folder, '/')).href,
    ...(isolation === 'quickjs' || isolation === 'data' ? {} : { isolation }),
    ...(isolation === 'process' ? { permissions, ...(process.env.SVC_ACCEPT_VALUES === '1' ? {} : { values }) } : {}),
    // a link has none: svc loads the files as they are
    ...(files === '' ? {} : { files }),
    ...(isolation === 'process' && declares !== undefined ? { declares } : {}),
    ...(commands === undefined ? {} : { commands }),
  }
}

/**
 * Watches the files of installed plugins while they load. The returned function reports the files that differ from the lock or
 * were written meanwhile.
 */
export function watchFiles(entries: readonly PluginEntry[]): () => readonly SvcError[] {
  const held = entries.flatMap(({ name = '', use, files }) =>
    files === undefined ? [] : [{ name, files, folder: fileURLToPath(use as string) }]
  )
  const before = held.map(({ folder }) => stampOfPlugin(folder))
  return () => held.flatMap((item, at) => changeOf(item, before[at]!))
}

function changeOf(
  { name, folder, files }: { readonly name: string; readonly folder: string; readonly files: string },
  before: string
) {
  try {
    return verifyFiles(name, folder, files) === before ? [] : [filesChanging(name)]
  } catch (error) {
    return [asSvcError(error, 'PLUGIN_CHANGED')]
  }
}

/** Verifies the files again for a worker that replaces a dead one: it gets the former configuration, not the lock. */
export async function changedSince(home: string, layers: readonly Layer[]): Promise<readonly SvcError[]> {
  const layer = layers.find(item => item.name === LOCK_NAME)
  if (layer === undefined || !existsSync(join(home, LOCK_NAME))) return []
  const now = await readInstalled(home)
  // with another set, the hashes do not describe the former files
  return JSON.stringify(now.layer.value) === JSON.stringify(layer.value) ? now.problems : []
}

/**
 * Returns installed plugins that provide instances of `section` and have no entry in it. Skips plugins of svc, which the
 * documentation covers.
 */
export async function unconfiguredIn(
  section: string,
  { value }: Pick<Config, 'value'>,
  home: string
): Promise<UnconfiguredPlugin[]> {
  const lock = await readLock(home)
  const enabled = lock.plugins.filter(plugin => plugin.enabled)
  if (enabled.length === 0) return []
  const entries = get(value, section.split('.'))
  const types = new Set(
    Object.entries(isTree(entries) ? entries : {}).map(([name, entry]) => (isTree(entry) && entry.type) || name)
  )
  const found = await Promise.all(enabled.map(plugin => typeIn(section, pluginFolder(home, lock, plugin))))
  return enabled.flatMap(({ name }, at) => {
    const type = found[at]
    return type === undefined || types.has(type)
      ? []
      : [{ plugin: name, type, hint: `write ${section}: { ${type}: {} } into svc.config.*` }]
  })
}

/** The type of the instances of a plugin. `svc plugins info` reports missing or changed files. */
const typeIn = (section: string, folder: string): Promise<string | undefined> =>
  readManifest(join(folder, 'package.json')).then(
    ({ manifest: { instances } }) => (instances?.section === section ? instances.type : undefined),
    () => undefined
  )
