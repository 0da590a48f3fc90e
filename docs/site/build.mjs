// Builds the documentation site into docs/site/dist/site and checks its links: `npm run docs:site`.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pages } from './pages.mjs'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const ROOT = join(FOLDER, '../..')
const STAMP = join(FOLDER, 'node_modules/.svc-ready')

/** Installs the generator if it is not there as the lock has it. Later runs need no network. */
function install() {
  const want = createHash('sha256')
    .update(readFileSync(join(FOLDER, 'package-lock.json')))
    .digest('hex')
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === want) return
  console.error('docs:site: installing the generator …')
  run('npm', ['ci', '--ignore-scripts', '--loglevel=error'])
  writeFileSync(STAMP, want)
}

function run(command, args) {
  const env = { ...process.env, ASTRO_TELEMETRY_DISABLED: '1' }
  const { status } = spawnSync(command, args, { cwd: FOLDER, stdio: 'inherit', env })
  if (status !== 0) process.exit(status ?? 1)
}

function writePages() {
  const content = join(FOLDER, 'dist/source/content/docs')
  rmSync(join(FOLDER, 'dist'), { recursive: true, force: true })
  for (const [slug, text] of pages(ROOT)) {
    const file = join(content, `${slug || 'index'}.md`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  cpSync(join(FOLDER, 'content.config.ts'), join(FOLDER, 'dist/source/content.config.ts'))
  cpSync(join(ROOT, 'docs/images'), join(FOLDER, 'dist/public/images'), { recursive: true })
}

install()
writePages()
run(process.execPath, [join(FOLDER, 'node_modules/astro/bin/astro.mjs'), process.argv.includes('--watch') ? 'dev' : 'build'])
