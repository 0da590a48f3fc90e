import { realpathSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'

const PACKAGES = new URL('../../node_modules/@svc/', import.meta.url)

/** The folder of a plugin of this repository by the name of its package without `@svc/plugin-`, with a slash at its end. */
export const pluginFolder = (name: string): URL =>
  pathToFileURL(`${realpathSync(fileURLToPath(new URL(`plugin-${name}`, PACKAGES)))}/`)
