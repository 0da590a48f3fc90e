// Ensures that the locked packages are installed before a command runs: node scripts/ready.mjs prod|all
// Runs on plain Node 20 without dependencies, before anything is installed.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { takeTurn } from './turn.mjs'

const stamp = 'node_modules/.svc-ready'
const hidden = 'node_modules/.package-lock.json' // npm writes it last, so an interrupted install has none
const ownNode = 'node_modules/.bin/node'
const fields = ['dependencies', 'optionalDependencies', 'peerDependencies', 'devDependencies']
const oldestRuntime = 24

/** @type {[RegExp, string][]} message of npm → hint */
const fixes = [
  [
    /can only install packages when your package\.json and package-lock\.json/,
    'Run `npm run lock` and commit package-lock.json.',
  ],
  [/ENOSPC/, 'Free disk space: about 500 MB are needed.'],
  [/ENOTEMPTY/, 'Another npm uses this folder. Wait for it, or remove node_modules, then start again.'],
  [/EINTEGRITY/, 'A package differs from the lock. Run `npm cache clean --force` and try again.'],
  [/EACCES|EPERM|EROFS/, `Make ${process.cwd()} and npm's cache (\`npm config get cache\`) writable for you.`],
  [/SELF_SIGNED|CERT_|UNABLE_TO_(GET|VERIFY)/, 'Tell npm your certificate authority: `npm config set cafile /path/to/ca.pem`.'],
  [
    /EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network/,
    'Check the network, the proxy and `npm config get registry`.',
  ],
  [/E401|E403|E404|ETARGET/, 'The registry does not provide this package. Check `npm config get registry`.'],
]

const say = text => process.stderr.write(`svc: ${text}\n`)
const seconds = since => Math.round((Date.now() - since) / 1000)
const readJson = file => JSON.parse(readFileSync(file, 'utf8'))
const major = version => Number(/^v?(\d+)/.exec(version)?.[1])
const sorted = object => JSON.stringify(Object.entries(object ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)))

class ReadyError extends Error {
  constructor(code, what, hint) {
    super(`${code}\n  ${what}\n  ${hint}`)
  }
}

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
try {
  await ready(process.argv[2] ?? 'all')
} catch (error) {
  say(error instanceof ReadyError ? error.message : error.stack)
  process.exitCode = 1
}

async function ready(set) {
  if (set !== 'prod' && set !== 'all')
    throw new ReadyError('READY_USAGE', `the set must be prod or all, was "${set}"`, 'Write: node scripts/ready.mjs all')
  if (major(process.version) < 20)
    throw new ReadyError(
      'NODE_TOO_OLD',
      `Node ${process.version} cannot install svc`,
      'Install Node 20 or newer: https://nodejs.org'
    )
  if (isStamped(set)) return checkRuntime()
  const turn = await takeTurn(owner => say(`another start (process ${owner}) is installing: waiting for it …`))
  try {
    if (isStamped(set)) return checkRuntime() // another process installed meanwhile
    checkManifests()
    if (!isInstalled(set)) await install(set, turn)
    dropUnusableNode()
    writeFileSync(stamp, `${isInstalled('all') ? 'all' : 'prod'} ${fingerprint()}`)
    checkRuntime({ aloud: true })
  } finally {
    turn.end()
  }
}

// ---- current state

function isStamped(set) {
  if (!existsSync(stamp)) return false
  const [has, print] = readFileSync(stamp, 'utf8').split(' ')
  return (has === 'all' || has === set) && print === fingerprint()
}

function fingerprint() {
  const hash = createHash('sha256').update(process.platform + process.arch)
  hash.update(readFileSync('package-lock.json'))
  for (const { dir, manifest } of manifests()) hash.update([dir, ...fields.map(field => sorted(manifest[field]))].join('\n'))
  return hash.digest('hex')
}

/** The root and every workspace. */
function manifests() {
  const root = readJson('package.json')
  const folders = root.workspaces.flatMap(pattern => (pattern.endsWith('/*') ? folderNames(pattern.slice(0, -2)) : [pattern]))
  const dirs = folders.filter(dir => existsSync(`${dir}/package.json`))
  return [{ dir: '', manifest: root }, ...dirs.map(dir => ({ dir, manifest: readJson(`${dir}/package.json`) }))]
}

function folderNames(parent) {
  if (!existsSync(parent)) return []
  return readdirSync(parent)
    .sort()
    .map(name => `${parent}/${name}`)
}

/** Fails before npm ci deletes anything when the lock does not know a package.json. */
function checkManifests() {
  const { packages } = readJson('package-lock.json')
  const behind = manifests().filter(({ dir, manifest }) =>
    fields.some(field => sorted(manifest[field]) !== sorted(packages[dir]?.[field]))
  )
  if (behind.length === 0) return
  const names = behind.map(({ dir }) => (dir ? `${dir}/package.json` : 'package.json')).join(', ')
  throw new ReadyError(
    'LOCK_BEHIND',
    `package-lock.json does not know what ${names} asks for`,
    'Run `npm run lock` and commit package-lock.json.'
  )
}

/** Whether the packages that npm recorded as installed match the lock. */
function isInstalled(set) {
  if (!existsSync(hidden)) return false
  const { packages: there } = readJson(hidden)
  return Object.entries(readJson('package-lock.json').packages)
    .filter(([path, entry]) => path.includes('node_modules/') && (set === 'all' || !entry.dev))
    .every(([path, entry]) => (there[path] ? isSame(there[path], entry) : entry.optional || entry.devOptional))
}

function isSame(a, b) {
  return a.version === b.version && a.integrity === b.integrity && Boolean(a.link) === Boolean(b.link)
}

// ---- installing

async function install(set, turn) {
  const begun = Date.now()
  const isFirst = !existsSync('node_modules')
  say(
    `installing ${set === 'prod' ? 'what the server needs' : 'all packages'} (${isFirst ? 'first start, ' : 'the lock or the set changed, '}about 20 s) …`
  )
  const addsOnly = set === 'all' && isInstalled('prod') // keeps the files of a server that runs from this folder
  for (const file of [stamp, hidden]) rmSync(file, { force: true }) // an interruption from here on starts over
  if (addsOnly) await npm(['install', '--no-save', ...flags(set)], { begun, turn })
  if (!addsOnly || !isInstalled(set)) await npm(['ci', ...flags(set)], { begun, turn })
  if (!isInstalled(set))
    throw new ReadyError(
      'INSTALL_INCOMPLETE',
      'npm succeeded, but node_modules does not match the lock',
      'Remove node_modules and try again.'
    )
  say(`packages are installed (${seconds(begun)} s)`)
}

// Node itself is in optional packages, so personal settings (omit, NODE_ENV=production) must not exclude them.
function flags(set) {
  return [
    '--ignore-scripts',
    '--include=optional',
    set === 'prod' ? '--omit=dev' : '--include=dev',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
}

async function npm(args, { begun, turn }) {
  const { command, first } = npmCommand()
  const child = spawn(command, [...first, ...args], {
    stdio: ['ignore', 2, 'pipe'],
    shell: process.platform === 'win32' && first.length === 0,
  })
  if (child.pid) turn.share(child.pid)
  const beat = setInterval(() => say(`still installing (${seconds(begun)} s) …`), 10_000)
  const pass = signal => child.kill(signal)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, pass)
  let complaint = ''
  child.stderr.on('data', chunk => {
    complaint += chunk
    process.stderr.write(chunk)
  })
  const { code, signal, error } = await new Promise(resolve => {
    child.on('error', error => resolve({ error }))
    child.on('close', (code, signal) => resolve({ code, signal }))
  })
  clearInterval(beat)
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(name, pass)
  if (error)
    throw new ReadyError(
      'NPM_MISSING',
      `failed to start npm: ${error.message}`,
      'Install npm 10 or newer; it comes with Node: https://nodejs.org'
    )
  if (signal) throw new ReadyError('INSTALL_STOPPED', `npm was stopped by ${signal}`, 'Start again. The install starts over.')
  if (code !== 0)
    throw new ReadyError('INSTALL_FAILED', `npm ${args[0]} exited with code ${code}; see its output above`, hintFor(complaint))
}

/** The npm and Node that run this script, so that the install does not depend on the Node that it replaces. */
function npmCommand() {
  const { npm_execpath: cli, npm_node_execpath: node } = process.env
  if (cli && basename(cli).startsWith('npm') && /\.[cm]?js$/.test(cli) && existsSync(cli))
    return { command: node && existsSync(node) ? node : process.execPath, first: [cli] }
  return { command: 'npm', first: [] }
}

function hintFor(complaint) {
  return fixes.find(([pattern]) => pattern.test(complaint))?.[1] ?? 'Fix the problem that npm reports, then start again.'
}

// ---- the Node that runs svc

/** Some machines cannot run the packaged Node (Alpine with musl). They use their own. */
function dropUnusableNode() {
  if (existsSync(ownNode) && spawnSync(ownNode, ['--version']).status !== 0) rmSync(ownNode)
}

function checkRuntime({ aloud = false } = {}) {
  if (existsSync(ownNode)) return
  const here = `${process.platform}-${process.arch}`
  if (major(process.version) < oldestRuntime) {
    const hint = `Install Node ${oldestRuntime} or newer (https://nodejs.org) and start again.`
    throw new ReadyError(
      'NODE_TOO_OLD',
      `svc has no packaged Node for ${here}, and the installed one is ${process.version}`,
      hint
    )
  }
  if (aloud) say(`no packaged Node for ${here}: using your own Node ${process.version}`)
}
