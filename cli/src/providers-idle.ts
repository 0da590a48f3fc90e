import { join } from 'node:path'
import { get, isTree, readManifest } from '@svc/core'
import { readLock } from '@svc/plugin-set'
import { folderOf } from './plugins/installed.ts'
import { findSettings, here, setHome } from './settings.ts'

/** A provider that is installed and that no entry of the configuration makes. */
export interface IdleProvider {
  readonly plugin: string
  readonly type: string
  /** What makes it one. */
  readonly mend: string
}

/** Installed plugins of providers without an entry in `providers`. What comes with svc is not looked at: whoever wants it knows it from its documents. */
export async function idleProviders(config?: string): Promise<IdleProvider[]> {
  const home = setHome()
  const lock = await readLock(home)
  const enabled = lock.plugins.filter(one => one.enabled)
  if (enabled.length === 0) return []
  const { value } = await findSettings(config === undefined ? {} : { config }, here())
  const entries = get(value, ['providers'])
  const types = new Set(
    Object.entries(isTree(entries) ? entries : {}).map(([name, entry]) => (isTree(entry) && entry.type) || name)
  )
  const found = await Promise.all(enabled.map(one => typeIn(folderOf(home, lock, one))))
  return enabled.flatMap(({ name }, at) => {
    const type = found[at]
    return type === undefined || types.has(type)
      ? []
      : [{ plugin: name, type, mend: `write providers: { ${type}: {} } into svc.config.*` }]
  })
}

/** The type of the provider that a plugin makes; of files that are gone or changed `svc plugins info` tells. */
const typeIn = (folder: string): Promise<string | undefined> =>
  readManifest(join(folder, 'package.json')).then(
    ({ manifest: { instances } }) => (instances?.section === 'providers' ? instances.type : undefined),
    () => undefined
  )
