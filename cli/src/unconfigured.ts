import { join } from 'node:path'
import { get, isTree, readManifest } from '@svc/core'
import type { UnconfiguredPlugin } from '@svc/core/contracts'
import { pluginFolder, readLock } from '@svc/plugin-manager/installed'
import { findSettings, here, setHome } from './settings.ts'

/** Installed plugins that make instances of `section` and have no entry there. What comes with svc is not looked at: its documents name it. */
export async function unconfiguredIn(section: string, config?: string): Promise<UnconfiguredPlugin[]> {
  const home = setHome()
  const lock = await readLock(home)
  const enabled = lock.plugins.filter(one => one.enabled)
  if (enabled.length === 0) return []
  const { value } = await findSettings(config === undefined ? {} : { config }, here())
  const entries = get(value, section.split('.'))
  const types = new Set(
    Object.entries(isTree(entries) ? entries : {}).map(([name, entry]) => (isTree(entry) && entry.type) || name)
  )
  const found = await Promise.all(enabled.map(one => typeIn(section, pluginFolder(home, lock, one))))
  return enabled.flatMap(({ name }, at) => {
    const type = found[at]
    return type === undefined || types.has(type)
      ? []
      : [{ plugin: name, type, hint: `write ${section}: { ${type}: {} } into svc.config.*` }]
  })
}

/** The type of the instances that a plugin makes; of files that are gone or changed `svc plugins info` tells. */
const typeIn = (section: string, folder: string): Promise<string | undefined> =>
  readManifest(join(folder, 'package.json')).then(
    ({ manifest: { instances } }) => (instances?.section === section ? instances.type : undefined),
    () => undefined
  )
