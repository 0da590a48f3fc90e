import { fileURLToPath } from 'node:url'

const folderOf = (name: string) => fileURLToPath(new URL(`../../plugins/${name}/`, import.meta.url))

/** Entries of `plugins` for the verticals, by their names: whether or not they are curated, they are loaded once. */
export const VERTICALS = ['verticals', 'vertical-coding', 'vertical-research', 'vertical-devops', 'vertical-data-analysis'].map(
  name => ({ name: `@svc/plugin-${name}`, use: folderOf(name) })
)
