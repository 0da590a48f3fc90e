// Compiles ahead of time the schemas that the modules of svc make when they are loaded: node --conditions=svc-source scripts/validators.ts <file>
// scripts/bundle.ts runs it for the command line. Loading ajv and compiling them at a start would be a third of it.
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
// kits of tests are in no server
const core = below('core').filter(folder => folder !== 'core/testing')
for (const folder of [...core, ...below('libs'), ...below('plugins').flatMap(below), 'cli']) await load(folder)
writeFileSync(process.argv[2]!, precompile(made))

function below(group: string): string[] {
  return readdirSync(join(ROOT, group), { withFileTypes: true })
    .filter(one => one.isDirectory())
    .map(one => join(group, one.name))
}

/** Loads what a package exports; schemas of modules that are imported only when they are needed are compiled then. */
async function load(folder: string): Promise<void> {
  const { exports = {} } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest
  for (const one of Object.values(exports))
    if (typeof one === 'object' && one['svc-source']) await import(pathToFileURL(join(ROOT, folder, one['svc-source'])).href)
}
