// Runs all tests: node scripts/test.mjs, which `npm test` does; with arguments one mocha runs with them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'))
/**
 * Mochas that take the files one by one, in the order of .mocharc.yaml, each serial as ever and with its own look for what a file left open. One more than cores:
 * while one waits for its processes the others work, which makes an eighth of the time.
 */
const JOBS = Math.min(4, availableParallelism() + 1)

const given = process.argv.slice(2)
if (given.length === 0) await build()
process.exitCode = await mocha(given.length > 0 ? given : ['--parallel', '--jobs', String(JOBS)])

function mocha(args) {
  return run([MOCHA, ...args])
}

async function run(words, options = {}) {
  const [code] = await once(spawn(process.execPath, words, { stdio: 'inherit', ...options }), 'exit')
  return code ?? 1
}

/** What the tests start as users do is built first, with its types: it starts in half the time of the sources, which test/start.spec.ts and others start by name. */
async function build() {
  const folders = ['core', ...['libs', 'plugins'].flatMap(group => readdirSync(group).map(name => `${group}/${name}`)), 'cli']
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))
  const env = { ...process.env, GOGC: '400' } // the compiler is written in Go: collecting garbage early is a tenth of its work
  const codes = await Promise.all(
    [
      [tsc, '-b', ...folders.map(folder => `${folder}/tsconfig.build.json`)],
      ['scripts/bundle.ts', ...folders],
    ].map(words => run(words, { env }))
  )
  const failed = codes.find(code => code !== 0)
  if (failed !== undefined) process.exit(failed)
  process.env.SVC_TEST_ENTRY = resolve('cli/dist/main.js')
  // hundreds of processes read the same sources: what one has compiled the next need not
  process.env.NODE_COMPILE_CACHE = resolve('node_modules/.cache/svc-test')
}
