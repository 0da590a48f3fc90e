// Runs the tests: `npm test` calls it.
//   npm test                         installs missing system packages if allowed, builds, and runs all tests
//   npm test -- --no-system          installs nothing outside node_modules
//   npm test -- --shuffle[=seed]     takes the files in a random order, and prints the seed
//   npm test -- --again              runs the files that failed once more, one after the other, and names those that pass then
//   npm test -- --hide bwrap         runs only the files that need a program (bwrap, postgres, redis-server, …), with it hidden
//   npm run test:security            runs a part that has a script of its own: one of PARTS (--part security)
//   npm run test:unit                runs only the files that start no process and open no socket (--unit)
//   npm test -- core/kernel/test/a.spec.ts  passes everything else to one serial mocha
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { delimiter, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'))
/** Debian packages that tests need, by program. Without them the tests are skipped, see test/support/needs.ts. */
const PACKAGES = {
  bwrap: 'bubblewrap',
  chromium: 'chromium',
  haproxy: 'haproxy',
  pgbouncer: 'pgbouncer',
  postgres: 'postgresql',
  'redis-server': 'redis-server',
}
/** What test/support/needs.ts calls a program, where it has another name. */
const NEEDS = { bwrap: 'bubblewrap', 'redis-server': 'redis' }
/**
 * Number of mocha processes. They take the files one by one, in the order of .mocharc.yaml. Each is serial and checks what a
 * file left open. Two more than cores: while one waits for its processes the others work, which saves an eighth of the time.
 */
const JOBS = Math.min(4, availableParallelism() + 2)

/** Patterns in tests that start a process or open a socket, comments aside. `no-outside.ts` checks that the list is complete. */
const OUTSIDE =
  /node:(child_process|cluster|dgram|https?|net|tls)'|from '@svc\/worker-pool\/processes'|\bfetch\(|\bopenUpstream\b|\bisolated?\(|support\/needs\.ts|@svc\/testing\/engines'|Not a unit test:/

/** More failed files than these are no accident: they do not run again. */
const MOST_AGAIN = 6

const PARALLEL = ['--parallel', '--jobs', String(JOBS)]

/** Files with their own script: `npm test` skips them, `.ci/run` runs all but the clients, which are 1.9 GB, and the screenshots. */
const PARTS = {
  client: /^test\/client\//,
  // PostgreSQL and Redis; `plugins/storage/{postgres/test/{config,plugin},redis/test/config}.spec.ts` stay in `npm test`
  cluster:
    /^(plugins\/storage\/(postgres\/test\/(demoted|failures|feed|formats|kits|login|pooler|terminated)|redis\/test\/connection|(bus-postgres|queue-(bullmq|pgboss))\/test\/\w+|(bus-redis|cache-redis|counts-redis)\/test\/(failures|kit))|test\/(cluster-(nodes|plugins|start)|deploy|helm|migrate-(store|target)|nodes\/[\w-]+|postgres(-(errors|jobs|nodes|runs|workplaces))?|redis)|plugins\/workflows\/engine\/test\/workplaces)\.spec/,
  clients: /^test\/clients\//,
  // commands in processes of their own; `cli/test/commands.spec.ts` stays in `npm test`
  commands:
    /^(test\/(chat|eval|mcp|providers|secrets|tools|workflow)-command(s|-tools)?|test\/(chat-terminal|samples-operators|store-url)|cli\/test\/(folder-commands|mcp-serve|status|watching))\.spec/,
  // the console in Chromium; `test/console.spec.ts` stays in `npm test`
  console: /^test\/console\/(?!screenshots\.spec)/,
  // the HTTP contract and the MCP conformance suite
  conformance: /^test\/(api|conformance)\//,
  // `sdk.spec.ts`, the official clients of OpenAI and Anthropic, stays in `npm test`
  endpoints:
    /^(plugins\/api\/(acp|agui|anthropic-api|connect|gemini-api|openai-api)\/test|test\/acp)\/(?!sdk\.spec)|^test\/(connect-command|model-endpoints|responses-workers)\.spec/,
  management:
    /^(plugins\/api\/(admin-api|event-feed|traces|usage|webhooks)\/test|test\/management)\/|^(plugins\/workflows\/engine\/test\/schedules|test\/docs-page)\.spec/,
  plugins:
    /^test\/plugins\/|^plugins\/admin\/plugin-manager\/test\/(set\/|(ask|author|isolated-kit|list)\.spec)|^cli\/test\/(isolated-server|plugin-commands)\.spec/,
  // several workers, crashes and reloads; `test/crash.spec.ts` and `test/cluster.spec.ts` stay in `npm test`
  processes:
    /^(test\/(cluster-ends|mcp-owner|mcp-workers|reload|workflow-files|workflows-(crash|many|takeover|workers))|cli\/test\/reload|plugins\/sandbox\/isolation\/test\/deaths)\.spec/,
  // pictures of other machines differ, so `.ci/run` does not compare them
  screenshots: /^test\/console\/screenshots\.spec/,
  security: /^(test\/security\/|plugins\/tools\/git\/test\/hostile\.spec)/,
  services:
    /^(core\/testing\/test\/engines|plugins\/workflows\/(jobs|schedules)\/test|plugins\/storage\/(bus-store|cache|secrets|settings)\/test)\/|^test\/(isolated\/(jobs|services)|jobs|jobs-commands|servers)\.spec/,
}

/** Hundreds of processes read the same sources, so they share a compile cache. No other user can write to this folder. */
process.env.NODE_COMPILE_CACHE ??= resolve('node_modules/.cache/svc-test')

const say = text => process.stderr.write(`svc: ${text}\n`)

const OPTIONS = {
  'no-system': { type: 'boolean' },
  shuffle: { type: 'string' },
  again: { type: 'boolean' },
  hide: { type: 'string' },
  unit: { type: 'boolean' },
  part: { type: 'string' },
}
const args = process.argv.slice(2).map(word => (word === '--shuffle' ? `--shuffle=${Date.now() % 1_000_000}` : word))
const isOurs = word => Object.keys(OPTIONS).some(name => word === `--${name}` || word.startsWith(`--${name}=`))
const isOurValue = (word, i) => isOurs(word) || ['--hide', '--part'].includes(args[i - 1])
const { values } = parseArgs({ args: args.filter(isOurValue), options: OPTIONS })
const forMocha = args.filter((word, i) => !isOurValue(word, i))

process.exitCode = await main()

async function main() {
  if (forMocha.length > 0) return mocha(forMocha)
  if (values.unit) return mocha([...PARALLEL, '--require', 'test/support/no-outside.ts', ...oneByOne(unitFiles())])
  if (!values['no-system'] && values.hide === undefined) installPackages()
  await build()
  if (values.hide !== undefined)
    return withoutProgram(values.hide, env => mocha([...PARALLEL, ...oneByOne(filesThatNeed(values.hide))], { env }))
  const files = values.part === undefined ? filesOfNoPart() : filesOf(values.part)
  const code = await mocha([
    ...PARALLEL,
    ...oneByOne(values.shuffle === undefined ? files : shuffled(files, Number(values.shuffle))),
  ])
  if (values.part === undefined)
    say(
      `not run here: ${Object.keys(PARTS)
        .map(part => `npm run test:${part}`)
        .join(', ')}`
    )
  return code
}

async function mocha(words, options = {}) {
  if (!values.again) return run([MOCHA, ...words], options)
  const folder = mkdtempSync(join(tmpdir(), 'svc-failed-'))
  try {
    const failed = join(folder, 'failed')
    const env = { ...process.env, ...options.env, SVC_TEST_FAILED: failed }
    const code = await run([MOCHA, ...words], { ...options, env })
    const files = existsSync(failed) ? readFileSync(failed, 'utf8').split('\n') : []
    return code === 0 || files.length === 0 || files.length > MOST_AGAIN ? code : await again(files, options)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs each file in a process of its own, with nothing beside it. A file that passes now depends on the load of the machine: a defect to look for. */
async function again(files, options) {
  let worst = 0
  for (const file of files) {
    const code = await run([MOCHA, ...oneByOne([file])], options)
    say(`${relative(process.cwd(), file)} ${code === 0 ? 'passed' : 'failed again'} when it ran alone`)
    worst ||= code
  }
  return worst
}

async function run(words, options = {}) {
  const [code] = await once(spawn(process.execPath, words, { stdio: 'inherit', ...options }), 'exit')
  return code ?? 1
}

/** Installs missing packages if this user is allowed to, and prints what is skipped otherwise. */
function installPackages() {
  const missing = Object.keys(PACKAGES).filter(program => programAt(program) === undefined)
  if (missing.length === 0) return
  const packages = missing.map(program => PACKAGES[program]).join(' ')
  const before = rootCommand()
  if (before === undefined || programAt('apt-get') === undefined)
    return say(`tests that need ${packages} are skipped: install it, or run npm test as root on Debian`)
  say(`installs ${packages} with apt-get, which tests need (npm test -- --no-system installs nothing)`)
  const apt = words =>
    spawnSync(before[0] ?? 'env', [...before.slice(1), ...words], { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
  const get = [...(before.length > 0 ? ['env'] : []), 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq']
  apt([...get, 'update'])
  if (!apt([...get, 'install', '-y', '--no-install-recommends', ...packages.split(' ')]))
    say(`apt-get could not install ${packages}: tests that need it are skipped`)
}

/** The prefix of a command to run as root; undefined where that needs a password. */
function rootCommand() {
  if (process.getuid?.() === 0) return []
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : undefined
}

/** Debian keeps the programs of PostgreSQL out of PATH, and PgBouncer out of the PATH of most users. */
function programAt(name) {
  return [...folders(), ...globSync('/usr/lib/postgresql/*/bin'), '/usr/sbin'].map(folder => join(folder, name)).find(isProgram)
}

function folders() {
  return (process.env.PATH ?? '').split(delimiter).filter(Boolean)
}

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Builds first what tests start as users do: the build starts in half the time of the sources, which test/start.spec.ts and
 * others start by name.
 */
async function build() {
  const below = group => readdirSync(group).map(name => `${group}/${name}`)
  const folders = [...below('core'), ...below('libs'), ...below('plugins').flatMap(below), 'cli', 'client']
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))
  const env = { ...process.env, GOGC: '400' } // the compiler is written in Go, where early garbage collection is a tenth of its work
  const codes = await Promise.all(
    [
      // `npm run lint` checks the types.
      [tsc, '-b', '--noCheck', ...folders.map(folder => `${folder}/tsconfig.build.json`)],
      ['scripts/bundle.ts', ...folders],
      ['scripts/console.mjs'],
    ].map(words => run(words, { env }))
  )
  const failed = codes.find(code => code !== 0)
  if (failed !== undefined) process.exit(failed)
  process.env.SVC_TEST_ENTRY = resolve('cli/dist/main.js')
}

/** All test files, in the order of .mocharc.yaml. */
function allFiles() {
  const config = readFileSync('.mocharc.yaml', 'utf8')
  const patterns = [...config.matchAll(/^ {2}- "(.+)"$/gm)].map(([, pattern]) => pattern)
  return patterns.flatMap(pattern => globSync(pattern, { exclude: ['**/node_modules/**', '**/dist/**'] }).sort())
}

function filesOf(part) {
  return allFiles().filter(file => PARTS[part].test(file))
}

function filesOfNoPart() {
  return allFiles().filter(file => !Object.values(PARTS).some(part => part.test(file)))
}

/** Arguments of mocha for exactly these files: files on the command line are added to those of the configuration. */
function oneByOne(files) {
  const config = { 'node-option': ['conditions=svc-source', 'min-semi-space-size=16'], require: ['test/support/leftovers.ts'] }
  const words = Object.entries(config).flatMap(([name, list]) => list.flatMap(word => [`--${name}`, word]))
  return ['--no-config', ...words, '--reporter', 'test/support/reporter.mjs', '--timeout', '60000', '--exit', ...files]
}

/** A reproducible shuffle: a linear congruential generator (Numerical Recipes) and Fisher–Yates. */
function shuffled(files, seed) {
  say(`shuffles the test files: --shuffle=${seed}`)
  const list = [...files]
  let state = seed >>> 0
  for (let i = list.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const j = Math.floor((state / 2 ** 32) * (i + 1))
    ;[list[i], list[j]] = [list[j], list[i]]
  }
  return list
}

/** Test files that require a program. */
function filesThatNeed(program) {
  return filesWith(new RegExp(`'${NEEDS[program] ?? program}'${program === 'bwrap' ? '|noBubblewrap' : ''}`))
}

function unitFiles() {
  const outside = new Set(filesWith(OUTSIDE))
  return filesOfNoPart().filter(file => !outside.has(file))
}

/** Test files that contain these words, or import a test file that does. */
function filesWith(words) {
  const known = new Map()
  const isOne = file => {
    if (!known.has(file)) {
      known.set(file, false) // against import cycles
      const text = readFileSync(file, 'utf8')
      const imports = [...text.matchAll(/ from '(\.[^']+\.ts)'/g)].map(([, path]) => join(dirname(file), path))
      const ours = imports.filter(path => /\btest\//.test(path) && !path.endsWith('/needs.ts') && existsSync(path))
      known.set(file, words.test(text) || ours.some(isOne))
    }
    return known.get(file)
  }
  return allFiles().filter(isOne)
}

/** Runs with a PATH of all current programs but this one, which test engines do not find outside of PATH either. */
async function withoutProgram(program, does) {
  const root = mkdtempSync(join(tmpdir(), 'svc-path-'))
  chmodSync(root, 0o755) // test engines run as another user
  try {
    const path = folders().map((folder, i) => {
      const links = join(root, String(i))
      mkdirSync(links)
      for (const name of entriesOf(folder)) if (name !== program) symlinkSync(join(folder, name), join(links, name))
      return links
    })
    return await does({ ...process.env, PATH: path.join(delimiter), SVC_TEST_HIDDEN: program })
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

function entriesOf(folder) {
  try {
    return readdirSync(folder)
  } catch {
    return [] // PATH can name missing folders
  }
}
