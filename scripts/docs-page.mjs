// Updates the library of the page /docs: npm run docs-page:update -- <version>
// The package has 160 MB of dependencies, so its one browser file is committed, compressed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const PACKAGE = '@scalar/api-reference'
const assets = fileURLToPath(new URL('../plugins/api/docs-page/assets/', import.meta.url))

const version = process.argv[2] ?? 'latest'
const folder = mkdtempSync(join(tmpdir(), 'svc-docs-page-'))
try {
  run('npm', ['pack', '--loglevel=error', `${PACKAGE}@${version}`])
  run('tar', ['xzf', readdirSync(folder).find(name => name.endsWith('.tgz'))])
  const about = JSON.parse(readFileSync(join(folder, 'package/package.json'), 'utf8'))
  const script = readFileSync(join(folder, 'package/dist/browser/standalone.js'))
  writeFileSync(join(assets, 'api-reference.js.gz'), gzipSync(script, { level: 9 }))
  writeFileSync(join(assets, 'about.json'), `${JSON.stringify(aboutOf(about, script), null, 2)}\n`)
  process.stderr.write(`svc: /docs is ${PACKAGE} ${about.version}; look at it, and run npm run notices\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Its content is known from the paths in its source map. */
function aboutOf({ name, version, license, homepage }, script) {
  const { sources } = JSON.parse(readFileSync(join(folder, 'package/dist/browser/standalone.js.map'), 'utf8'))
  const packages = sources.flatMap(path => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [])
  const sha256 = createHash('sha256').update(script).digest('hex')
  return { name, version, license, homepage, sha256, bundles: [...new Set(packages)].sort((a, b) => (a < b ? -1 : 1)) }
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`)
}
