// Runs all tests: node scripts/test.mjs, which `npm test` does; with arguments one mocha runs with them.
// Two mochas share the work, each serial as ever and with its own look for what was left open: most tests wait for processes to start, so one keeps one core busy.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'))
/** What each leaves to the other: the tests of the whole service and its commands take as long as those of the packages. */
const LEFT_OUT = ['{core,libs,plugins,examples}/**', '{test,cli}/**']
/** The last line of test/support/reporter.mjs. */
const SUM = /^(\d+) passed, (\d+) failed, (\d+) skipped$/

const given = process.argv.slice(2)
process.exitCode = given.length > 0 ? await alone(given) : await both()

async function alone(args) {
  const [code] = await once(spawn(process.execPath, [MOCHA, ...args], { stdio: 'inherit' }), 'exit')
  return code ?? 1
}

async function both() {
  build()
  const colour = process.stdout.isTTY ? ['--color'] : []
  const [first, second] = LEFT_OUT.map(pattern => started(['--ignore', pattern, ...colour]))
  first.tell()
  await first.ended
  second.tell()
  await second.ended
  const sums = [first.sum, second.sum]
  if (sums.includes(undefined)) process.stdout.write('One of the two runs ended before all its tests.\n')
  const [passed, failed, skipped] = [0, 1, 2].map(at => sums.reduce((all, one) => all + (one?.[at] ?? 0), 0))
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`)
  return Math.max(...[first, second].map(one => (one.sum === undefined ? 1 : one.code)))
}

/** What the tests start as users do is built first: it starts in half the time of the sources, which test/start.spec.ts and others start by name. */
function build() {
  const folders = ['core', ...['libs', 'plugins'].flatMap(group => readdirSync(group).map(name => `${group}/${name}`)), 'cli']
  const { status } = spawnSync(process.execPath, ['scripts/bundle.ts', ...folders], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  process.env.SVC_TEST_ENTRY = resolve('cli/dist/main.js')
  // hundreds of processes read the same sources: what one has compiled the next need not
  process.env.NODE_COMPILE_CACHE = resolve('node_modules/.cache/svc-test')
}

/** A mocha whose lines are kept until they are to be told. */
function started(args) {
  const child = spawn(process.execPath, [MOCHA, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const kept = []
  let say = line => kept.push(line)
  const run = {
    code: 1,
    sum: undefined,
    tell() {
      say = line => process.stdout.write(`${line}\n`)
      for (const line of kept.splice(0)) say(line)
    },
  }
  const read = stream => createInterface({ input: stream }).on('line', line => take(line))
  const take = line => {
    const sum = SUM.exec(line)
    if (sum) run.sum = sum.slice(1).map(Number)
    else say(line)
  }
  const lines = [child.stdout, child.stderr].map(stream => once(read(stream), 'close'))
  const ended = Promise.all([once(child, 'exit'), ...lines]).then(([[code]]) => (run.code = code ?? 1))
  return Object.assign(run, { ended })
}
