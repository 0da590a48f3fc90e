import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import type { Candidate } from './change-types.ts'
import { dependencyStray, nameDiffers, notAPlugin } from './errors.ts'
import type { Origin } from './lock-types.ts'
import { type NpmRun, runNpm } from './npm.ts'
import { type PluginPackage, readPluginPackage } from './package-json.ts'
import { labelOf, partsOf } from './spec.ts'
import { readTarball } from './tarball.ts'

/** A plugin that was fetched and looked at; nothing of it is unpacked. */
export interface Fetched extends PluginPackage {
  readonly origin: Origin
  readonly scripts: boolean
  /** Undefined for a link. */
  readonly tarball?: string
  readonly integrity: string
  readonly bytes: number
  readonly registry?: NonNullable<Candidate['registry']>
}

export interface Wanted {
  readonly origin: Origin
  readonly scripts: boolean
}

export interface FetchPlace {
  /** A folder of its own for each. */
  readonly work: string
  readonly npm: Omit<NpmRun, 'cwd'>
  readonly tell: (step: 'fetch' | 'inspect', plugin: string) => void
}

export async function fetchPlugin({ origin, scripts }: Wanted, { work, npm, tell }: FetchPlace): Promise<Fetched> {
  const label = labelOf(origin)
  await mkdir(work, { recursive: true })
  tell('fetch', label)
  if (origin.kind === 'link')
    return { ...(await packageIn(origin.spec, label, work)), installScripts: [], origin, scripts: false, integrity: '', bytes: 0 }
  const tarball = await FETCH[origin.kind](origin, work, { ...npm, plugin: label })
  tell('inspect', label)
  const { packageJson, contents, integrity, bytes } = await readTarball(tarball, label, npm.signal)
  const plugin = await readPluginPackage(packageJson, label, work, contents.has('binding.gyp'))
  // npm would fetch it to look at it, before anybody has said yes
  if (plugin.stray[0] !== undefined) throw dependencyStray(plugin.name, plugin.stray[0])
  if (origin.kind !== 'registry') return { ...plugin, origin, scripts, tarball, integrity, bytes }
  const [asked] = partsOf(origin.spec)
  if (asked !== plugin.name) throw nameDiffers(asked, plugin.name)
  const registry = await toldBy(plugin, { ...npm, cwd: work })
  return { ...plugin, origin, scripts, tarball, integrity, bytes, ...(registry ? { registry } : {}) }
}

const FETCH = {
  registry: ({ spec }: Origin, work: string, npm: Omit<NpmRun, 'cwd'>) => pack(spec, work, npm),
  async folder({ spec }: Origin, work: string, npm: Omit<NpmRun, 'cwd'>) {
    // a package that is no plugin gets the error of svc, not one of npm
    await packageIn(spec, labelOf({ kind: 'folder', spec }), work)
    return pack(spec, work, npm)
  },
  async tarball({ spec }: Origin, work: string) {
    const copy = join(work, 'plugin.tgz')
    await copyFile(spec, copy)
    return copy
  },
}

async function packageIn(folder: string, label: string, work: string): Promise<PluginPackage> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') throw notAPlugin(label, 'its folder has no package.json')
    throw error
  })
  return readPluginPackage(text, label, work, false)
}

async function pack(spec: string, work: string, npm: Omit<NpmRun, 'cwd'>): Promise<string> {
  const into = join(work, 'packed')
  await mkdir(into, { recursive: true })
  await runNpm(['pack', `--pack-destination=${into}`, '--', spec], { ...npm, cwd: work })
  const [file] = await readdir(into)
  return join(into, file!)
}

interface Dist {
  readonly signatures?: readonly unknown[]
  readonly attestations?: { readonly provenance?: { readonly predicateType?: string } }
}

/** Shown to the user only, so a registry without an answer is no error. */
async function toldBy({ name, version }: PluginPackage, run: NpmRun): Promise<Candidate['registry']> {
  try {
    const dist = Object(
      JSON.parse(await runNpm(['view', '--json', '--', `${name}@${version}`, 'dist'], { ...run, plugin: name }))
    ) as Dist
    const provenance = dist.attestations?.provenance?.predicateType
    return { signatures: dist.signatures?.length ?? 0, ...(provenance === undefined ? {} : { provenance }) }
  } catch {
    run.signal?.throwIfAborted()
    return undefined
  }
}
