import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { asSvcError, type Layer, type PluginEntry, type SvcError, svcError } from '@svc/core'
import {
  type Lock,
  type LockedPlugin,
  pluginFolder,
  readLock,
  stampOfPlugin,
  verifyFiles,
  verifySet,
} from '@svc/plugin-manager/installed'
import { filesChanging, matchesPattern } from '@svc/runtime/isolation'
import { LOCK_LAYER } from './plugin-places.ts'

/** What is installed, as configuration, and what is wrong with it. */
export interface Installed {
  readonly layer: Layer
  readonly problems: readonly SvcError[]
}

/** The installed plugins that are in force, verified; of `lock` where it is given. None where nothing was installed. */
export async function readInstalled(home: string, lock?: Lock): Promise<Installed> {
  try {
    const inForce = lock ?? (await readLock(home))
    return { layer: layerOf(home, inForce), problems: await verified(home, inForce) }
  } catch (error) {
    return { layer: { name: LOCK_LAYER, value: {} }, problems: [asSvcError(error, 'LOCK_INVALID')] }
  }
}

/** What `verifySet` finds, with a hint that fits: in a build nothing can be put together anew. */
export async function verified(home: string, lock: Lock): Promise<SvcError[]> {
  const problems = await verifySet(home, lock)
  return process.env.SVC_PLUGINS ? problems.map(ofBuild) : problems
}

const ofBuild = ({ code, message, plugin, where, details }: SvcError) =>
  svcError(code, message, {
    details,
    ...(plugin === undefined ? {} : { plugin }),
    ...(where === undefined ? {} : { where }),
    hint: 'this is a build: put a new one (svc build) in its place, or copy it again from where it is as it was',
  })

function layerOf(home: string, lock: Lock): Layer {
  const plugins = lock.plugins.filter(one => one.enabled).map(one => entryOf(one, pluginFolder(home, lock, one)))
  return { name: LOCK_LAYER, value: plugins.length === 0 ? {} : { plugins } }
}

/** By its folder, not by its name: a package of that name next to the configuration is another one. */
export function entryOf({ name, isolation, permissions, declares, commands, files }: LockedPlugin, folder: string): PluginEntry {
  return {
    name,
    use: pathToFileURL(join(folder, '/')).href,
    ...(isolation === 'quickjs' || isolation === 'data' ? {} : { isolation }),
    ...(isolation === 'process' ? { permissions } : {}),
    // a link has none: it is what lies there
    ...(files === '' ? {} : { files }),
    ...(isolation === 'process' && declares !== undefined ? { declares } : {}),
    ...(commands === undefined ? {} : { commands }),
  }
}

/** Watches the files of installed plugins while they are loaded: the function it returns says which are not as the lock has them, or were written meanwhile. */
export function watchFiles(entries: readonly PluginEntry[]): () => readonly SvcError[] {
  const held = entries.flatMap(({ name = '', use, files }) =>
    files === undefined ? [] : [{ name, files, folder: fileURLToPath(use as string) }]
  )
  const before = held.map(({ folder }) => stampOfPlugin(folder))
  return () => held.flatMap((one, at) => changeOf(one, before[at]!))
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

/** Whether the files of a worker's configuration are still those that were verified: a successor of a dead worker gets that configuration, not the lock. */
export async function changedSince(home: string, layers: readonly Layer[]): Promise<readonly SvcError[]> {
  const layer = layers.find(one => one.name === LOCK_LAYER)
  if (layer === undefined || !existsSync(join(home, LOCK_LAYER))) return []
  const now = await readInstalled(home)
  // where another set is in force by now, its hashes say nothing of the former one's files
  return JSON.stringify(now.layer.value) === JSON.stringify(layer.value) ? now.problems : []
}

/** Variables that a plugin declares and that are not there, as its manifest has them; a pattern that none fits is one, too. What the configuration names (`<providers[].api_key_env>`) is not looked up. */
export function unsetIn({ env = [] }: { readonly env?: readonly string[] }, all: NodeJS.ProcessEnv = process.env): string[] {
  const set = Object.keys(all)
  return env.filter(one => !one.startsWith('<') && !set.some(name => matchesPattern(one, name)))
}

/** What to do about it. A server keeps the variables that it was started with: a reload brings no others. */
export const UNSET_HINT = 'where the plugin needs it, export it before svc serve is started, and start a server that runs anew'

/** `TIDES_KEY is not set here`. */
export const unsetText = (names: readonly string[]): string =>
  `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} not set here`
