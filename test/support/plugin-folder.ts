import { realpathSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'

const PACKAGES = new URL('../../node_modules/@svc/', import.meta.url)

/** The folder of a plugin of this repository by the name of its package without `@svc/plugin-`, with a slash at its end. */
export const pluginFolder = (name: string): URL =>
  pathToFileURL(`${realpathSync(fileURLToPath(new URL(`plugin-${name}`, PACKAGES)))}/`)

/** What a chat needs beside a provider, with agents by name. */
export const CHAT_PLUGINS = [
  'store-memory',
  'conversations',
  'selection',
  'modes',
  'models',
  'model-calls',
  'chat',
  'named-models',
]
