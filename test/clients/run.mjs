// Installs the clients and runs their tests: `npm run test:clients`. Later runs need no network.
//   npm run test:clients -- -g 'Claude Code'    passes everything else to mocha
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const ROOT = join(FOLDER, '../..')
const STAMP = join(FOLDER, 'node_modules/.svc-ready')
const UNREACHABLE = /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|network/

/**
 * Installs the packages if they are not there as the lock has them. No install script runs: the tests start the program of the
 * platform from its own package. Returns the reason if the registry cannot be reached.
 */
function install() {
  const want = createHash('sha256')
    .update(readFileSync(join(FOLDER, 'package-lock.json')))
    .digest('hex')
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === want) return undefined
  console.error('test:clients: installing the clients (1.9 GB) …')
  const { status, stderr } = spawnSync('npm', ['ci', '--ignore-scripts', '--loglevel=error'], {
    cwd: FOLDER,
    stdio: ['ignore', 'inherit', 'pipe'],
    encoding: 'utf8',
  })
  if (status === 0) writeFileSync(STAMP, want)
  if (status === 0) return undefined
  if (UNREACHABLE.test(stderr)) return 'the package registry cannot be reached'
  console.error(stderr)
  process.exit(status ?? 1)
}

const reason = install()
if (reason !== undefined) console.error(`test:clients: skipped: ${reason}`)
else {
  const options = [
    '--no-config',
    '--node-option',
    'conditions=svc-source',
    '--require',
    'test/support/leftovers.ts',
    '--timeout',
    '600000',
    '--exit',
  ]
  const files = globSync('test/clients/*.spec.ts', { cwd: ROOT }).sort()
  const mocha = [fileURLToPath(import.meta.resolve('mocha/bin/mocha.js')), ...options, ...process.argv.slice(2), ...files]
  const { status } = spawnSync(process.execPath, mocha, { cwd: ROOT, stdio: 'inherit' })
  process.exitCode = status ?? 1
}
