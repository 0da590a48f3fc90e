import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { messageOf, type Plan, planHost, shownPath, StartFailed } from '@svc/core'
import type { LockedPlugin } from '../../set.ts'
import { hostOptions, noteImports, abortOnInterrupt, INTERRUPTED, findSettings, here } from '@svc/cli/program'
import { tell } from '../change/change.ts'
import { copyConfig } from './config-files.ts'
import { copyPackage, level } from './copy.ts'
import { folderTaken, pluginLoose } from './errors.ts'
import { copyInstalled } from './installed-set.ts'
import { packagesFor, rootOf } from './packages.ts'
import { bundled } from './sources.ts'
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
