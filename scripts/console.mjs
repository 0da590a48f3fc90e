// Builds the page of the console into plugins/api/console/assets, if its sources have changed: `npm run console`
//   node scripts/console.mjs --background   returns at once (`npm start`): the server says meanwhile that the page is being built
//   node scripts/console.mjs --clean        builds it anew, without the files of the last build (before packing)
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PLUGIN = join(ROOT, 'plugins/api/console')
const PAGE = join(PLUGIN, 'page')
const ASSETS = join(PLUGIN, 'assets')
const STAMP = join(ASSETS, 'built.txt')
const FAILED = join(ASSETS, 'failed.txt')

/** What the page is made of. */
const SOURCES = ['plugins/api/console/page', 'client/src', 'libs/workflow-lang/src/states.ts', 'scripts/console.mjs']

const say = text => process.stderr.write(`svc: ${text}\n`)

function fingerprint() {
  const hash = createHash('sha256')
  for (const file of SOURCES.flatMap(filesIn).sort((a, b) => (a < b ? -1 : 1))) hash.update(file).update(readFileSync(file))
  return hash.digest('hex')
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path)
    .filter(name => name !== 'node_modules' && name !== 'dist')
    .flatMap(name => filesIn(join(path, name)))
}

const isCurrent = print => existsSync(STAMP) && readFileSync(STAMP, 'utf8') === print

/** What a page may need beyond the first load, in KiB of gzip. */
const LIMITS = { first: 160, css: 20, page: 100, editor: 150 }

/** The sizes of the files in KiB of gzip: of the first load, and of what each lazy part adds to it. */
function sizesOf(manifest, files) {
  const kib = names =>
    Math.round([...names].reduce((sum, name) => sum + statSync(join(files, '..', `${name}.gz`)).size, 0) / 102.4) / 10
  const closure = (key, found = new Set()) => {
    if (found.has(key)) return found
    found.add(key)
    for (const other of manifest[key].imports ?? []) closure(other, found)
    return found
  }
  const first = closure('index.html')
  const filesOf = keys => [...keys].map(key => manifest[key].file)
  const lazy = Object.entries(manifest).filter(([, { isDynamicEntry }]) => isDynamicEntry)
  const parts = lazy.map(([key, { src = key }]) => [
    src.replace(/^src\//, ''),
    kib(filesOf([...closure(key)].filter(other => !first.has(other)))),
  ])
  const css = [
    ...new Set(Object.values(manifest).flatMap(({ css = [], file }) => (file.endsWith('.css') ? [...css, file] : css))),
  ]
  return { limits: LIMITS, first: kib(filesOf(first)), css: kib(css), parts: Object.fromEntries(parts) }
}

async function build() {
  const { build } = await import('vite')
  const next = join(ASSETS, 'next')
  rmSync(next, { recursive: true, force: true })
  await build({
    root: PAGE,
    configFile: join(PAGE, 'vite.config.js'),
    logLevel: 'error',
    build: { outDir: next, manifest: 'manifest.json' },
  })
  const files = join(next, 'files')
  for (const name of readdirSync(files))
    if (/\.(js|css|svg)$/.test(name))
      writeFileSync(join(files, `${name}.gz`), gzipSync(readFileSync(join(files, name)), { level: 9 }))
  const sizes = sizesOf(JSON.parse(readFileSync(join(next, 'manifest.json'), 'utf8')), files)
  writeFileSync(join(ASSETS, 'sizes.json'), JSON.stringify(sizes, undefined, 2))
  say(`first load ${sizes.first} KiB of JavaScript and ${sizes.css} KiB of CSS, gzipped; beyond it:`)
  for (const [name, size] of Object.entries(sizes.parts)) say(`  ${name} ${size} KiB`)
  // Files of the last build stay until the next one, for pages that are open.
  const kept = existsSync(STAMP) ? new Set(readdirSync(join(ASSETS, 'files'))) : new Set()
  const last = existsSync(join(ASSETS, 'last.json')) ? new Set(JSON.parse(readFileSync(join(ASSETS, 'last.json'), 'utf8'))) : kept
  cpSync(files, join(ASSETS, 'files'), { recursive: true })
  const made = readdirSync(files)
  for (const name of kept) if (!made.includes(name) && !last.has(name)) rmSync(join(ASSETS, 'files', name))
  writeFileSync(join(ASSETS, 'last.json'), JSON.stringify(made))
  renameSync(join(next, 'index.html'), join(ASSETS, 'index.html'))
  rmSync(next, { recursive: true, force: true })
}

async function main() {
  if (process.argv.includes('--clean')) rmSync(ASSETS, { recursive: true, force: true })
  const print = fingerprint()
  if (isCurrent(print)) return
  mkdirSync(ASSETS, { recursive: true })
  rmSync(FAILED, { force: true })
  if (process.argv.includes('--background')) {
    say('builds the page of the console in the background')
    // before the first install, the script runs on the machine's Node
    const node = join(ROOT, 'node_modules/.bin/node')
    spawn(existsSync(node) ? node : process.execPath, [fileURLToPath(import.meta.url)], {
      cwd: ROOT,
      stdio: 'ignore',
      detached: true,
    }).unref()
    return
  }
  try {
    await build()
    writeFileSync(STAMP, print)
  } catch (error) {
    writeFileSync(FAILED, 'failed')
    throw error
  }
}

process.chdir(ROOT)
await main()
