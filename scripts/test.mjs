// Runs all tests: node scripts/test.mjs, which `npm test` does; with arguments one mocha runs with them.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'))
/** Mochas that take the files one by one, in the order of .mocharc.yaml, each serial as ever and with its own look for what a file left open. One more than cores was slower. */
const JOBS = Math.min(4, Math.max(2, availableParallelism()))

const given = process.argv.slice(2)
if (given.length === 0) build()
process.exitCode = await mocha(given.length > 0 ? given : ['--parallel', '--jobs', String(JOBS)])

async function mocha(args) {
  const [code] = await once(spawn(process.execPath, [MOCHA, ...args], { stdio: 'inherit' }), 'exit')
  return code ?? 1
}

/** What the tests start as users do is built first, with its types: it starts in half the time of the sources, which test/start.spec.ts and others start by name. */
function build() {
  const folders = ['core', ...['libs', 'plugins'].flatMap(group => readdirSync(group).map(name => `${group}/${name}`)), 'cli']
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))
  for (const program of [
    [tsc, '-b', ...folders.map(folder => `${folder}/tsconfig.build.json`)],
    ['scripts/bundle.ts', ...folders],
  ]) {
    const { status } = spawnSync(process.execPath, program, { stdio: 'inherit' })
    if (status !== 0) process.exit(status ?? 1)
  }
  process.env.SVC_TEST_ENTRY = resolve('cli/dist/main.js')
  // hundreds of processes read the same sources: what one has compiled the next need not
  process.env.NODE_COMPILE_CACHE = resolve('node_modules/.cache/svc-test')
}
