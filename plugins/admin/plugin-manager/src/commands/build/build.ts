import { randomUUID, createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { rename, rm, rmdir, mkdir, writeFile, symlink } from 'node:fs/promises'
import { dirname, join, resolve, basename, relative } from 'node:path'
import { messageOf, type Plan, planHost, shownPath, StartFailed, type Config } from '@svc/core'
import { type LockedPlugin, type Lock, lockFile, readLock, setFolder, verifySet } from '../../set.ts'
import {
  hostOptions,
  noteImports,
  abortOnInterrupt,
  INTERRUPTED,
  findSettings,
  here,
  type Imports,
  setHome,
} from '@svc/cli/program'
import { tell } from '../change/change.ts'
import { copyPackage, level, copyOne, copyTree } from './copy.ts'
import { folderTaken, pluginLoose, configScattered, configTwice, pluginLinked } from './errors.ts'
import { packagesFor, rootOf, bundled } from './packages.ts'
import { type BuiltPlugin, writeFrame } from './written.ts'

export interface BuildAsked {
  readonly folder: string
  readonly config?: string | undefined
  readonly json: boolean
}

/** `svc build`: writes a folder with svc and exactly the configured plugins; resolves with the exit code. */
export async function buildFolder({ folder, config, json }: BuildAsked): Promise<number> {
  const target = resolve(folder)
  if (existsSync(target) && readdirSync(target).length > 0) throw folderTaken(shownPath(target))
  using interrupt = abortOnInterrupt()
  const { signal } = interrupt
  mkdirSync(dirname(target), { recursive: true })
  const part = `${target}.${randomUUID()}`
  try {
    const plugins = await writeBuild(part, config, signal)
    signal.throwIfAborted()
    if (existsSync(target)) await rmdir(target)
    await rename(part, target)
    return tell({ json }, { text: textOf(target, plugins), facts: { folder: target, plugins } })
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
  // what the environment says now would be in no build
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
  for (const one of await bundled(packages, work, signal)) {
    signal.throwIfAborted()
    await copyPackage(one.folder, join(part, one.path), one.files)
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

/** The plugins of the plan that came with svc. Throws BUILD_PLUGIN_LOOSE for one that is neither that nor installed, nor code of the configuration itself. */
function curatedIn({ loaded }: Plan, installed: readonly LockedPlugin[]): string[] {
  const root = rootOf()
  const others = loaded.filter(({ name, found }) => found.declared && !installed.some(one => one.name === name))
  return others.map(({ name, found }) => {
    const own = join(root, 'node_modules', name)
    if (!existsSync(own) || found.folder === undefined || realpathSync(own) !== realpathSync(found.folder))
      throw pluginLoose(name)
    return name
  })
}

/** What a file is called where svc looks for it. */
const KNOWN = /^svc\.config\.(ts|mts|js|json|yaml)$/
const MODULE = /\.[mc]?[jt]s$/

/** Copies the file of configuration and what it imports by relative paths; an empty one where there is none. */
async function copyConfig(config: Config, imports: Imports, to: string): Promise<void> {
  const files = config.layers.flatMap(({ file }) => (file === undefined ? [] : [file]))
  const [file, ...others] = files
  if (others.length > 0) throw configTwice(files.map(one => shownPath(one)))
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
      .withImported([file])
      .filter(existsSync)
      .map(one => realpathSync(one))
  )) {
    const path = relative(base, other)
    if (path.startsWith('..')) throw configScattered(shownPath(file), shownPath(other))
    if (other === realpathSync(file)) continue
    await mkdir(dirname(join(to, path)), { recursive: true })
    await copyOne(other, join(to, path))
  }
}

/** Copies what is installed and enabled, verified; returns it. */
async function copyInstalled(to: string): Promise<readonly LockedPlugin[]> {
  const home = setHome()
  const lock = await readLock(home)
  const plugins = lock.plugins.filter(one => one.enabled)
  const link = plugins.find(one => one.origin.kind === 'link')
  if (link) throw pluginLinked(link.name)
  const set = setFolder(home, lock)
  if (set === undefined || plugins.length === 0) return []
  const problems = await verifySet(home, lock)
  if (problems.length > 0) throw new StartFailed(problems)
  const built = builtLock(lock)
  const folder = setFolder(to, built)!
  await copyTree(set, folder, path => path !== 'host/core')
  await mkdir(join(folder, 'host'), { recursive: true })
  // the core of the build, whatever machine it comes to lie on
  await symlink('../../../../../node_modules/@svc/core', join(folder, 'host', 'core'))
  await writeFile(lockFile(to), `${JSON.stringify(built, null, 2)}\n`)
  return plugins
}

/** What is the same wherever and whenever it is built: no times, no path of this machine. */
function builtLock({ version, plugins, dependencies }: Lock): Lock {
  const plain = plugins.map(one => ({ ...one, origin: { ...one.origin, spec: plainSpec(one) } }))
  const id = createHash('sha256')
    .update(JSON.stringify([plain, dependencies.files]))
    .digest('hex')
    .slice(0, 8)
  return { version, set: `build-${id}`, plugins: plain, dependencies: { files: dependencies.files, stamp: '' } }
}

const plainSpec = ({ origin: { kind, spec } }: LockedPlugin) => (kind === 'registry' ? spec : basename(spec))
