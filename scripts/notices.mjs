// Writes THIRD-PARTY-NOTICES, the third-party code that svc ships or installs, with licences: `npm run notices`. With --check
// it only reports whether the file is current.
// Runs on plain Node 20. It uses the lock and node_modules. Packages for one platform are listed without their text, so that
// the result is the same everywhere.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FILE = join(ROOT, 'THIRD-PARTY-NOTICES')
const ASSETS = join(ROOT, 'plugins/api/docs-page/assets')
const LINE = '-'.repeat(100)

const INTRO = `Third-party notices

svc itself is under the MIT licence (LICENSE). This is what it installs or ships of others, written by \`npm run notices\` from package-lock.json; what only
developers install is not listed.`

const text = notices()
if (!process.argv.includes('--check')) writeFileSync(FILE, text)
else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== text) {
  process.stderr.write('svc: THIRD-PARTY-NOTICES is not current; npm run notices writes it\n')
  process.exitCode = 1
}

function notices() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  const all = Object.entries(packages)
    .filter(([path, entry]) => path.includes('node_modules/') && !entry.link && !entry.dev)
    .map(([path, entry]) => foreign(path, entry))
  const rest = [...new Map(all.map(item => [item.title, item])).values()].sort((a, b) => (a.title < b.title ? -1 : 1))
  const blocks = [...byText(rest)].map(([words, some]) => `${some.map(item => item.title).join('\n')}\n\n${words}`)
  return `${[INTRO, docsPage(), ...blocks].join(`\n\n${LINE}\n\n`)}\n`
}

/** Map.groupBy is missing in Node 20. */
function byText(all) {
  const groups = new Map()
  for (const item of all) groups.set(item.text, [...(groups.get(item.text) ?? []), item])
  return groups
}

function foreign(path, { version, license, os, cpu, optional }) {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const isOfPlatform = Boolean(os ?? cpu ?? optional)
  const about = isOfPlatform ? {} : JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8'))
  const words = license ?? about.license ?? about.licenses?.map(item => item.type).join(' or ') ?? 'no licence stated'
  const inside = isOfPlatform
    ? 'A package for one platform, installed there; its licence lies in it.'
    : licenceIn(join(ROOT, path))
  return { title: `${name} ${version} (${words})`, text: inside }
}

function licenceIn(folder) {
  const files = readdirSync(folder)
    .filter(name => /^(licen[cs]e|copying|notice)(\.|-|$)/i.test(name))
    .sort()
  const texts = files.map(name =>
    readFileSync(join(folder, name), 'utf8')
      .replaceAll('\r\n', '\n')
      .replaceAll(/[ \t]+$/gm, '')
      .trim()
  )
  return texts.join('\n\n') || 'The package has no file with the text of its licence.'
}

/** The library of the page /docs is not in the lock. */
function docsPage() {
  const { name, version, license, bundles } = JSON.parse(readFileSync(join(ASSETS, 'about.json'), 'utf8'))
  const licence = readFileSync(join(ASSETS, 'LICENSE.api-reference.txt'), 'utf8').trim()
  return `${name} ${version} (${license}), in plugins/api/docs-page/assets\n\n${licence}\n\nIts file holds parts of these packages, each under the licence that it has in its own repository:\n${bundles.join(', ')}`
}
