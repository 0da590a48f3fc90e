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
const SOURCES = ['plugins/api/console/page', 'client/src', 'scripts/console.mjs']

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

async function build() {
  const { build } = await import('vite')
  const next = join(ASSETS, 'next')
  rmSync(next, { recursive: true, force: true })
  await build({ root: PAGE, configFile: join(PAGE, 'vite.config.js'), logLevel: 'error', build: { outDir: next } })
  const files = join(next, 'files')
  for (const name of readdirSync(files))
    if (/\.(js|css|svg)$/.test(name))
      writeFileSync(join(files, `${name}.gz`), gzipSync(readFileSync(join(files, name)), { level: 9 }))
  // Files of the last build stay until the next one, for pages that are open.
  const kept = existsSync(STAMP) ? new Set(readdirSync(join(ASSETS, 'files'))) : new Set()
  const last = existsSync(join(ASSETS, 'last.json')) ? new Set(JSON.parse(readFileSync(join(ASSETS, 'last.json'), 'utf8'))) : kept
  cpSync(files, join(ASSETS, 'files'), { recursive: true })
  const made = readdirSync(files)
  for (const name of kept) if (!made.includes(name) && !last.has(name)) rmSync(join(ASSETS, 'files', name))
  writeFileSync(join(ASSETS, 'last.json'), JSON.stringify(made))
  renameSync(join(next, 'index.html'), join(ASSETS, 'index.html'))
  report(sizesOf(JSON.parse(readFileSync(join(next, 'manifest.json'), 'utf8'))))
  rmSync(next, { recursive: true, force: true })
}

/** Compressed bytes: of the first load, and of what each page and each other part adds when it is first used. */
function sizesOf(manifest) {
  const loadedWith = key => [key, ...(manifest[key].imports ?? []).flatMap(loadedWith)]
  const sizeOf = keys => {
    const files = new Set(keys.flatMap(key => [manifest[key].file, ...(manifest[key].css ?? [])]))
    const sizes = { js: 0, css: 0 }
    for (const file of files) sizes[file.endsWith('.css') ? 'css' : 'js'] += statSync(join(ASSETS, `${file}.gz`)).size
    return sizes
  }
  const entry = Object.keys(manifest).find(key => manifest[key].isEntry)
  const first = loadedWith(entry)
  const styles = Object.values(manifest).flatMap(({ file }) => (file.endsWith('.css') ? [file] : []))
  const css = styles.reduce((sum, file) => sum + statSync(join(ASSETS, `${file}.gz`)).size, 0)
  const parts = Object.keys(manifest)
    .filter(key => manifest[key].isDynamicEntry)
    .map(key => [key.replace(/^.*node_modules\/|^src\//g, ''), sizeOf(loadedWith(key).filter(one => !first.includes(one))).js])
    .sort((a, b) => b[1] - a[1])
  return { first: { js: sizeOf(first).js, css: Math.max(css, sizeOf(first).css) }, parts: Object.fromEntries(parts) }
}

function report(sizes) {
  writeFileSync(join(ASSETS, 'sizes.json'), JSON.stringify(sizes, null, 2))
  const kib = bytes => `${(bytes / 1024).toFixed(1)} KiB`
  say(`first load: ${kib(sizes.first.js)} of scripts and ${kib(sizes.first.css)} of styles, compressed`)
  for (const [name, size] of Object.entries(sizes.parts)) say(`  ${name}: ${kib(size)} more`)
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
