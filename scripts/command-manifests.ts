// Writes the help and completion data of the commands of packages, so that svc need not import them:
// node --conditions=svc-source scripts/command-manifests.ts plugins/workflows/teams cli (bundle.ts does it)
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeCommands } from '../cli/src/command-manifest.ts'

interface Package {
  readonly name: string
  readonly version: string
  readonly exports?: Readonly<Record<string, unknown>>
}

const OWN = new URL('../cli/src/commands.ts', import.meta.url).href

for (const folder of process.argv.slice(2)) {
  const { name, version, exports = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package
  const has = name === '@svc/cli' || Object.hasOwn(exports, './commands')
  if (!has) continue
  // From the sources of this repository, wherever a copy is bundled.
  const target = fileURLToPath(name === '@svc/cli' ? OWN : import.meta.resolve(`${name}/commands`))
  const facts = await describeCommands({ plugin: name, version, target })
  mkdirSync(join(folder, 'dist'), { recursive: true })
  writeFileSync(join(folder, 'dist/commands.json'), `${JSON.stringify(facts, null, 2)}\n`)
}
