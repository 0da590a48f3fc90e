import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fromCaller } from '@svc/cli/program'
import { noPluginHere } from './errors.ts'

/** The whole path of a plugin's folder. Throws PLUGIN_UNKNOWN where it has no package.json. */
export function folderOfPlugin(place: string): string {
  const folder = fromCaller(place)
  if (!existsSync(join(folder, 'package.json'))) throw noPluginHere(place)
  return folder
}
