// Sets the version of all workspaces and of their dependencies on each other: node scripts/release/versions.mjs 0.2.0
import { globSync, readFileSync, writeFileSync } from 'node:fs'

const [version = ''] = process.argv.slice(2)
if (!/^\d+\.\d+\.\d+/.test(version)) throw new Error(`"${version}" is not a version: write 0.2.0`)

const read = file => JSON.parse(readFileSync(file, 'utf8'))
const { workspaces } = read('package.json')
const manifests = workspaces.flatMap(pattern => globSync(`${pattern}/package.json`)).map(file => [file, read(file)])
const previous = new Map(manifests.map(([, { name, version: old }]) => [name, old]))

for (const [file, manifest] of manifests) {
  if (manifest.version === undefined) continue
  manifest.version = version
  for (const field of ['dependencies', 'peerDependencies', 'devDependencies', 'optionalDependencies'])
    for (const [name, range] of Object.entries(manifest[field] ?? {}))
      if (previous.has(name)) manifest[field][name] = range.replace(previous.get(name), version)
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}
