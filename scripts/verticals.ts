// Writes vertical.json of each curated vertical from its vertical.yaml: node scripts/verticals.ts (then biome check --write).
// Parsing YAML would add a fifth of a second to each start.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'

const PLUGINS = new URL('../plugins/workflows/', import.meta.url)

/** The curated verticals, as written and as read. */
export const VERTICALS = readdirSync(PLUGINS)
  .filter(name => name.startsWith('vertical-'))
  .map(name => ({ yaml: new URL(`${name}/vertical.yaml`, PLUGINS), json: new URL(`${name}/vertical.json`, PLUGINS) }))

export const valueOf = (yaml: URL): unknown => parse(readFileSync(yaml, 'utf8'))

if (import.meta.main) for (const { yaml, json } of VERTICALS) writeFileSync(json, `${JSON.stringify(valueOf(yaml), null, 2)}\n`)
