import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { mkdir, rename, rm, rmdir, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { abortOnInterrupt, findSettings, here, hostOptions, INTERRUPTED, setHome } from '@svc/cli/program'
import { type Config, messageOf, type Plan, planHost, shownPath, StartFailed } from '@svc/core'
import { type Imports, noteImports } from '@svc/runtime/watching'
import { givenPackages, type Lock, type LockedPlugin, lockFile, readLock, setFolder, verifySet } from '../../set.ts'
import { printSuccess } from '../change/change.ts'
import { configScattered, configTwice, buildFolderTaken, pluginLinked, pluginLoose } from '../errors.ts'
import { bundled, copyOne, copyPackage, copyTree, level, packagesFor, rootOf } from './packages.ts'

export interface BuildAsked {
  readonly folder: string
  readonly config?: string | undefined
  readonly json: boolean
}

/** `svc build`: writes a folder with svc and exactly the configured plugins; resolves with the exit code. */
export async function buildFolder({ folder, config, json }: BuildAsked): Promise<number> {
  const target = resolve(folder)
  if (existsSync(target) && readdirSync(target).length > 0) throw buildFolderTaken(shownPath(target))
  using interrupt = abortOnInterrupt()
  const { signal } = interrupt
  mkdirSync(dirname(target), { recursive: true })
  const part = `${target}.${randomUUID()}`
  try {
    const plugins = await writeBuild(part, config, signal)
    signal.throwIfAborted()
    if (existsSync(target)) await rmdir(target)
    await rename(part, target)
    return printSuccess({ json }, { text: textOf(target, plugins), facts: { folder: target, plugins } })
  } catch (error) {
    if (!signal.aborted) throw error
    process.stderr.write(`${messageOf(signal.reason)}: nothing was written\n`)
    return INTERRUPTED
  } finally {
    await rm(part, { recursive: true, force: true })
  }
}

const textOf = (target: string, plugins: readonly BuiltPlugin[]) =>
  `wrote ${shownPath(target)}: svc with ${plugins.length} plugins; it starts with: cd ${shownPath(target)} && npm start`

async function writeBuild(part: string, file: string | undefined, signal: AbortSignal): Promise<BuiltPlugin[]> {
  using imports = noteImports()
  const { SVC_PLUGINS } = process.env
  // a build contains no environment variables
  const place = { ...here(), env: SVC_PLUGINS === undefined ? {} : { SVC_PLUGINS } }
  const config = await findSettings(file === undefined ? {} : { config: file }, place)
  const options = hostOptions(config, place.home)
  const plan = await planHost(options)
  if (plan.problems.length > 0) throw new StartFailed(plan.problems)
  mkdirSync(part)
  const installed = await copyInstalled(part)
  const curated = curatedIn(plan, installed)
  const work = join(part, '.work')
  const packages = packagesFor(curated)
  for (const item of await bundled(packages, work, signal)) {
    signal.throwIfAborted()
    await copyPackage(item.folder, join(part, item.path), item.files)
  }
  await rm(work, { recursive: true, force: true })
  await copyConfig(config, imports, part)
  const plugins = [...packages.filter(({ name }) => curated.includes(name)), ...installed].map(({ name, version }) => ({
    name,
    version,
  }))
  await writeFrame(part, options.version ?? '0.0.0', plugins)
  await level(part)
  return plugins
}

/**
 * The configured plugins that come with svc. Throws BUILD_PLUGIN_LOOSE for a local plugin, unless it is installed or inline
 * code.
 */
function curatedIn({ loaded }: Plan, installed: readonly LockedPlugin[]): string[] {
  const root = rootOf()
  const others = loaded.filter(({ name, found }) => found.declared && !installed.some(lockedPlugin => lockedPlugin.name === name))
  return others.map(({ name, found }) => {
    const own = join(root, 'node_modules', name)
    if (!existsSync(own) || found.folder === undefined || realpathSync(own) !== realpathSync(found.folder))
      throw pluginLoose(name)
    return name
  })
}

/** The name under which svc finds the file. */
const KNOWN = /^svc\.config\.(ts|mts|js|json|yaml)$/
const MODULE = /\.[mc]?[jt]s$/

/** Copies the configuration file and its relative imports; writes an empty one if there is none. */
async function copyConfig(config: Config, imports: Imports, to: string): Promise<void> {
  const files = config.layers.flatMap(({ file }) => (file === undefined ? [] : [file]))
  const [file, ...others] = files
  if (others.length > 0) throw configTwice(files.map(item => shownPath(item)))
  if (file === undefined) return writeFile(join(to, 'svc.config.json'), '{}\n')
  const name = basename(file)
  const known = KNOWN.test(name)
    ? name
    : name
        .replace(/^.*(?=\.[^.]+$)/, 'svc.config')
        .replace(/\.mjs$/, '.js')
        .replace(/\.yml$/, '.yaml')
  await copyOne(file, join(to, known))
  if (!MODULE.test(name)) return
  const base = dirname(realpathSync(file))
  for (const other of new Set(
    imports
      .withImports([file])
      .filter(existsSync)
      .map(withImport => realpathSync(withImport))
  )) {
    const path = relative(base, other)
    if (path.startsWith('..')) throw configScattered(shownPath(file), shownPath(other))
    if (other === realpathSync(file)) continue
    await mkdir(dirname(join(to, path)), { recursive: true })
    await copyOne(other, join(to, path))
  }
}

/** Copies the installed, enabled plugins after verification; returns them. */
async function copyInstalled(to: string): Promise<readonly LockedPlugin[]> {
  const home = setHome()
  const lock = await readLock(home)
  const plugins = lock.plugins.filter(plugin => plugin.enabled)
  const link = plugins.find(plugin => plugin.origin.kind === 'link')
  if (link) throw pluginLinked(link.name)
  const set = setFolder(home, lock)
  if (set === undefined || plugins.length === 0) return []
  const problems = await verifySet(home, lock)
  if (problems.length > 0) throw new StartFailed(problems)
  const built = builtLock(lock)
  const folder = setFolder(to, built)!
  await copyTree(set, folder, path => !path.startsWith('host/'))
  await mkdir(join(folder, 'host'), { recursive: true })
  // relative links to the packages of the build, for any machine
  for (const { name, path } of givenPackages()) await symlink(`../../../../../node_modules/${name}`, join(folder, path))
  await writeFile(lockFile(to), `${JSON.stringify(built, null, 2)}\n`)
  return plugins
}

/** A lock without times and without paths of this machine, so that builds are identical. */
function builtLock({ version, plugins, dependencies }: Lock): Lock {
  // a start of the build accepts the values of its configuration
  const plain = plugins.map(({ values: _accepted, ...plugin }) => ({
    ...plugin,
    origin: { ...plugin.origin, spec: plainSpec(plugin) },
  }))
  const id = createHash('sha256')
    .update(JSON.stringify([plain, dependencies.files]))
    .digest('hex')
    .slice(0, 8)
  return { version, set: `build-${id}`, plugins: plain, dependencies: { files: dependencies.files, stamp: '' } }
}

const plainSpec = ({ origin: { kind, spec } }: LockedPlugin) => (kind === 'registry' ? spec : basename(spec))

interface BuiltPlugin {
  readonly name: string
  readonly version: string
}

const START = `// Starts this build: node start.mjs serves; node start.mjs <command> is svc <command>.

process.env.SVC_PLUGINS = import.meta.dirname
process.env.SVC_HOME ??= import.meta.dirname + '/home'
// the configuration is part of the build
process.env.SVC_TRUST_CONFIG ??= '1'
process.env.SVC_ACCEPT_VALUES ??= '1'
process.chdir(import.meta.dirname)
const [first = '-'] = process.argv.slice(2)
if (first.startsWith('-') && !['-h', '--help', '--version'].includes(first)) process.argv.splice(2, 0, 'serve')
await import('./node_modules/@svc/cli/bin/svc.js')
`

const LIMITS = '@svc/plugin-rate-limit'

/** An image listens on all addresses, so it requires credentials, and limits requests if the build can. */
const container = (plugins: readonly BuiltPlugin[]) => `# This build in a container: podman build -t svc .
FROM docker.io/library/node:24-bookworm-slim
RUN apt-get update \\
  && apt-get install -y --no-install-recommends bubblewrap \\
  && rm -rf /var/lib/apt/lists/* \\
  && mkdir --mode=0700 /var/lib/svc && chown node:node /var/lib/svc
WORKDIR /opt/svc
COPY . .
USER node
ENV SVC_HOME=/var/lib/svc SVC_SERVER__HOST=0.0.0.0 SVC_SERVER__AUTH__ENABLED=true${plugins.some(({ name }) => name === LIMITS) ? ' SVC_SERVER__RATE_LIMIT__ENABLED=true' : ''}
VOLUME /var/lib/svc
EXPOSE 8080
# asks at the port and with the TLS of the configuration
HEALTHCHECK --start-period=60s CMD ["node", "start.mjs", "status", "--live"]
ENTRYPOINT ["node", "start.mjs"]
CMD ["serve"]
`

const readme = (
  plugins: readonly BuiltPlugin[]
) => `# A build of svc\n\nRun \`npm start\` to serve (Node.js 24 or newer). It needs no \`npm install\`, because it contains node_modules. Run \`podman build .\` to build a container. Data is in SVC_HOME, by default \`home/\`.\n\n${plugins.map(({ name, version }) => `- ${name} ${version}`).join('\n')}
`

/** Writes the files that make a folder of packages a build that starts with one command. */
async function writeFrame(to: string, version: string, plugins: readonly BuiltPlugin[]): Promise<void> {
  const pkg = {
    name: 'svc-build',
    version,
    private: true,
    type: 'module',
    scripts: { start: 'node start.mjs' },
    engines: { node: '>=24' },
  }
  const files = {
    'package.json': `${JSON.stringify(pkg, null, 2)}\n`,
    'start.mjs': START,
    Containerfile: container(plugins),
    '.dockerignore': 'home\n',
    'README.md': readme(plugins),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(to, name), text)
}
