import { existsSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { fileURLToPath } from 'node:url'
import { findSettings, here, OURS, whyInProcess } from '@svc/cli/program'
import { get, type Manifest, type PluginEntry, readManifest } from '@svc/core'
import type { Candidate, IsolationMode, LockedPlugin, StagedChange } from '../../set.ts'
import { namesIn } from '../author/lint.ts'
import { isolationUnfit, nameTaken, needsTrust } from '../errors.ts'

/** What a person says of how a plugin shall run. */
export interface Wish {
  readonly isolation?: IsolationMode | undefined
  readonly trust: boolean
}

/** Where a plugin will run: as it is wished, as it did before, else behind a wall. */
export function isolationOf({ manifest }: Candidate, { isolation }: Wish, before?: LockedPlugin): IsolationMode {
  if (isolation !== undefined) return isolation
  const read = readAs(manifest)
  if (read !== undefined) return read
  if (whyInProcess(manifest) !== undefined) return 'in-process'
  const known = before?.isolation ?? 'process'
  return known === 'in-process' ? known : 'process'
}

/** How a plugin is taken whose code is never imported. */
const readAs = ({ runtime }: Manifest) => (runtime === undefined ? undefined : runtime === 'quickjs' ? 'quickjs' : 'data')

/** Throws PLUGIN_ISOLATION_UNFIT for what cannot run there, PLUGIN_NEEDS_TRUST for what would run where nothing holds it. */
export function checkIsolation({ name, manifest }: Candidate, mode: IsolationMode, trusted: boolean): void {
  const why = whyInProcess(manifest)
  const read = readAs(manifest)
  if (read !== undefined && mode !== read) throw isolationUnfit(name, mode, `its manifest has "runtime": "${manifest.runtime}"`)
  if (read === undefined && mode === 'quickjs') throw isolationUnfit(name, mode, 'its manifest has no "runtime": "quickjs"')
  if (mode === 'process' && why !== undefined) throw isolationUnfit(name, mode, `${why}, which works in the process of svc only`)
  if (mode === 'in-process' && !trusted) throw needsTrust(name, why ?? '--isolation in-process was said')
}

/** Whether the configuration lets plugins run in processes of their own where this machine has no sandbox that can hold them. */
export async function goesWithout(config?: string): Promise<boolean> {
  const { value } = await findSettings(config === undefined ? {} : { config })
  return !['refuse', undefined].includes(get(value, ['isolation', 'without_sandbox']) as string | undefined)
}

/** Where a plugin runs and what holds it, for a person. */
export const runsText = (mode: IsolationMode, isOpen: boolean): string =>
  mode === 'process' && isOpen ? WITHOUT : ISOLATIONS[mode]

const WITHOUT =
  'in a process of its own, held to what it may only where this machine has a sandbox; else, as isolation.without_sandbox says, the NETWORK IS OPEN to it and its memory has no limit'
const ISOLATIONS: Readonly<Record<IsolationMode, string>> = {
  process: 'in a process of its own, held to what it may',
  'in-process': 'in the process of svc: nothing holds it to what it may',
  quickjs: 'in the JavaScript sandbox, held to what it may',
  data: 'nowhere: it is data, which the plugin of its runtime reads',
}

/** Throws NAME_TAKEN where what a plugin that comes declares is another's by both manifests: that is known before anything of it is put together. */
export async function checkNames({ before, candidates, removed }: StagedChange, config?: string): Promise<void> {
  const going = new Set([...candidates, ...removed].map(one => one.name))
  const installed = { ...before, plugins: before.plugins.filter(one => !going.has(one.name)) }
  const { plugins } = await findSettings(config === undefined ? {} : { config }, { ...here(), installed })
  const taken = await namesOf(plugins)
  const isOff = (name: string) => before.plugins.some(one => one.name === name && !one.enabled)
  for (const { name: plugin, manifest } of candidates.filter(one => !isOff(one.name)))
    for (const [slot, name] of namesIn(manifest)) {
      const by = taken.get(`${slot} ${name}`)
      if (by !== undefined) throw nameTaken(plugin, slot, name, by)
      taken.set(`${slot} ${name}`, plugin)
    }
}

/** `tools read_file` → who, by the manifests of what came with svc and of what is installed: of others a start tells. */
async function namesOf(entries: readonly PluginEntry[]): Promise<Map<string, string>> {
  const files = entries.map(({ use }) => (typeof use === 'string' ? fileOf(use) : undefined)).filter(file => file !== undefined)
  const infos = await Promise.all(files.filter(existsSync).map(readManifest))
  return new Map(infos.flatMap(({ name: by, manifest }) => namesIn(manifest).map(([slot, name]) => [`${slot} ${name}`, by])))
}

function fileOf(use: string): string | undefined {
  if (use.startsWith('file:')) return fileURLToPath(new URL('package.json', use))
  try {
    return use.startsWith('@svc/') ? findPackageJSON(use, OURS) : undefined
  } catch {
    return undefined
  }
}
