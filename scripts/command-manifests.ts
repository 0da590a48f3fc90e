// Writes what help and completion show of the commands of packages, so that neither imports them:
// node --conditions=svc-source scripts/command-manifests.ts plugins/teams cli (bundle.ts does it)
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describeCommands } from '../cli/src/command-manifest.ts'

for (const folder of process.argv.slice(2)) {
  const target = resolve(folder, 'src/commands.ts')
  if (!existsSync(target)) continue
  const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string; version: string }
  const facts = await describeCommands({ plugin: name, version, target })
  mkdirSync(join(folder, 'dist'), { recursive: true })
  writeFileSync(join(folder, 'dist/commands.json'), `${JSON.stringify(facts, null, 2)}\n`)
}
