// Completes package-lock.json after `npm install`: node scripts/lock.mjs [folder] (npm run lock does both for the workspaces)
// npm leaves out optional packages of other platforms that the registry does not hold at that moment, and
// `npm ci` then refuses the whole lock ("Missing: … from lock file"). Each gets the entry that its parent's exact version names.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']
const libraries = { musl: 'musl', musleabihf: 'musl', gnu: 'glibc', gnueabihf: 'glibc' }

const file = fileURLToPath(new URL(join('..', process.argv[2] ?? '', 'package-lock.json'), import.meta.url))
const lock = JSON.parse(readFileSync(file, 'utf8'))
const added = Object.entries(lock.packages).flatMap(([path, entry]) => missing(path, entry))
for (const { name, entry } of added) lock.packages[`node_modules/${name}`] = entry
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')))
if (added.length > 0) writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
process.stderr.write(
  `svc: the lock is complete${added.length > 0 ? `, with ${added.length} packages of other platforms added` : ''}\n`
)

function missing(path, parent) {
  return Object.entries(parent.optionalDependencies ?? {})
    .filter(([name, version]) => /^\d+\.\d+\.\d+/.test(version) && !isThere(path, name))
    .map(([name, version]) => ({ name, entry: platformEntry(name, version, parent) }))
    .filter(({ entry }) => entry.os ?? entry.cpu)
}

/** Resolves a package like Node: next to its parent, then in each folder above. */
function isThere(path, name) {
  const steps = path.split('/node_modules/')
  const above = steps.map((_, i) => `${steps.slice(0, steps.length - i).join('/node_modules/')}/node_modules/${name}`)
  return [...above, `node_modules/${name}`].some(place => lock.packages[place])
}

function platformEntry(name, version, parent) {
  const words = name.split(/[/-]/)
  const pick = known => words.filter(word => known.includes(word))
  const libc = words.flatMap(word => libraries[word] ?? [])
  return {
    version,
    ...(pick(processors).length > 0 && { cpu: pick(processors) }),
    ...(parent.dev && { dev: true }),
    ...(libc.length > 0 && { libc }),
    optional: true,
    ...(pick(systems).length > 0 && { os: pick(systems) }),
  }
}
