// Compiles ahead of time the schemas that the modules of svc make when they are loaded: node --conditions=svc-source scripts/validators.ts <file>
// scripts/bundle.ts runs it for the command line. Loading ajv and compiling them at a start would be a third of it.
import { subscribe } from 'node:diagnostics_channel'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import standalone from 'ajv/dist/standalone/index.js'
import { digestOf, type Made, makeAjv } from '../core/config/validator.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface Manifest {
  readonly exports?: Readonly<Record<string, string | { readonly 'svc-source'?: string }>>
}

if (import.meta.main) {
  const made: Made[] = []
  subscribe('svc:schema', message => void made.push(message as Made))
  for (const folder of ['core', ...below('libs'), ...below('plugins'), 'cli']) await load(folder)
  writeFileSync(process.argv[2]!, moduleOf(made))
}

function below(group: string): string[] {
  return readdirSync(join(ROOT, group), { withFileTypes: true })
    .filter(one => one.isDirectory())
    .map(one => join(group, one.name))
}

/** Loads what a package exports; schemas of modules that are imported only when they are needed are compiled then. */
async function load(folder: string): Promise<void> {
  const { exports = {} } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest
  for (const one of Object.values(exports))
    if (typeof one === 'object' && one['svc-source'] && !one['svc-source'].includes('/testing/'))
      await import(pathToFileURL(join(ROOT, folder, one['svc-source'])).href)
}

/** The CommonJS module that `usePrecompiled` reads. */
export function moduleOf(made: readonly Made[]): string {
  return `module.exports = {\n${functionOf(made, 'all')},\n${functionOf(made, 'first')}\n}\n`
}

/** ajv's own module of these schemas, as a function: its `require` is that of the package that has ajv. */
function functionOf(made: readonly Made[], faults: Made['faults']): string {
  const ajv = makeAjv(faults, { source: true })
  const schemas = new Map(made.filter(one => one.faults === faults).map(one => [digestOf(one.json), one.json]))
  for (const [digest, json] of schemas) ajv.addSchema(json as object, digest)
  const names = Object.fromEntries([...schemas.keys()].map(digest => [digest, digest]))
  return `${faults}(require, exports) {\n${standalone.default(ajv, names)}\nreturn exports\n}`
}
