// Writes vertical.json of each curated vertical from its vertical.yaml: node scripts/verticals.ts (then biome check --write).
// Reading the YAML would take a fifth of a second of each start.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'

const PLUGINS = new URL('../plugins/workflows/', import.meta.url)

/** The curated verticals, as they are written and as they are read. */
export const VERTICALS = readdirSync(PLUGINS)
  .filter(name => name.startsWith('vertical-'))
  .map(name => ({ yaml: new URL(`${name}/vertical.yaml`, PLUGINS), json: new URL(`${name}/vertical.json`, PLUGINS) }))

export const valueOf = (yaml: URL): unknown => parse(readFileSync(yaml, 'utf8'))

if (import.meta.main) for (const { yaml, json } of VERTICALS) writeFileSync(json, `${JSON.stringify(valueOf(yaml), null, 2)}\n`)
