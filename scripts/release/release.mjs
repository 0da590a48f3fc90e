// Prepares a release with release-it: versions, changelog, commit and tag. It does not push or publish.
// `npm run release -- minor --dry-run` shows the steps.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const STAMP = join(FOLDER, 'node_modules/.svc-ready')

const want = createHash('sha256')
  .update(readFileSync(join(FOLDER, 'package-lock.json')))
  .digest('hex')
if (!existsSync(STAMP) || readFileSync(STAMP, 'utf8') !== want) {
  console.error('release: installing the release tool …')
  run('npm', ['ci', '--ignore-scripts', '--loglevel=error'], FOLDER)
  writeFileSync(STAMP, want)
}
const config = join(FOLDER, 'release-it.json')
/** Without a terminal, release-it must not ask. */
const quiet = process.stdin.isTTY ? [] : ['--ci']
const tool = join(FOLDER, 'node_modules/release-it/bin/release-it.js')
run(process.execPath, [tool, '--config', config, ...quiet, ...process.argv.slice(2)])

function run(command, args, cwd = join(FOLDER, '../..')) {
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
