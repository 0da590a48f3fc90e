import { fileURLToPath } from 'node:url'
import { pluginFolder } from './plugin-folder.ts'

const folderOf = (name: string) => fileURLToPath(pluginFolder(name))

/** Entries of `plugins` for the verticals, by their names: whether or not they are curated, they are loaded once. */
export const VERTICALS = ['verticals', 'vertical-coding', 'vertical-research', 'vertical-devops', 'vertical-data-analysis'].map(
  name => ({ name: `@svc/plugin-${name}`, use: folderOf(name) })
)
