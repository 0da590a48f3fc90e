// Compiles the schemas of svc's modules ahead of time: node --conditions=svc-source scripts/validators.ts <file>
// scripts/bundle.ts runs it for the command line. Loading ajv and compiling at startup would take a third of a start.
import { subscribe } from 'node:diagnostics_channel'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type JsonSchema, precompile } from '../core/kernel/config/validator.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface Manifest {
  readonly exports?: Readonly<Record<string, string | { readonly 'svc-source'?: string }>>
}

const made: JsonSchema[] = []
subscribe('svc:schema', json => void made.push(json as JsonSchema))
// Servers do not load test kits.
const core = below('core').filter(folder => folder !== 'core/testing')
for (const folder of [...core, ...below('libs'), ...below('plugins').flatMap(below), 'cli']) await load(folder)
writeFileSync(process.argv[2]!, precompile(made))

function below(group: string): string[] {
  return readdirSync(join(ROOT, group), { withFileTypes: true })
    .filter(item => item.isDirectory())
    .map(item => join(group, item.name))
}

/** Loads the exports of a package. Schemas of modules that are imported on demand are compiled at run time. */
async function load(folder: string): Promise<void> {
  const { exports = {} } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest
  for (const item of Object.values(exports))
    if (typeof item === 'object' && item['svc-source']) await import(pathToFileURL(join(ROOT, folder, item['svc-source'])).href)
}
