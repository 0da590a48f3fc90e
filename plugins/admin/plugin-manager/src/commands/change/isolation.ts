import { existsSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { fileURLToPath } from 'node:url'
import { findSettings, here, OURS, whyInProcess } from '@svc/cli/program'
import { get, type Manifest, type PluginEntry, readManifest } from '@svc/core'
import type { PluginCandidate, IsolationMode, LockedPlugin, StagedChange } from '../../set.ts'
import { namesIn } from '../author/lint.ts'
import { isolationUnfit, nameTaken, needsTrust } from '../errors.ts'

/** The user's choice of isolation. */
export interface IsolationChoice {
  readonly isolation?: IsolationMode | undefined
  readonly trust: boolean
}

/** The isolation of a plugin: the requested one, the former one, or `process`. */
export function isolationOf({ manifest }: PluginCandidate, { isolation }: IsolationChoice, before?: LockedPlugin): IsolationMode {
  if (isolation !== undefined) return isolation
  const read = readAs(manifest)
  if (read !== undefined) return read
  if (whyInProcess(manifest) !== undefined) return 'in-process'
  const known = before?.isolation ?? 'process'
  return known === 'in-process' ? known : 'process'
}

/** The mode of a plugin whose code svc does not import. */
const readAs = ({ runtime }: Manifest) => (runtime === undefined ? undefined : runtime === 'quickjs' ? 'quickjs' : 'data')

/** Throws PLUGIN_ISOLATION_UNFIT if the plugin cannot run in this mode, and PLUGIN_NEEDS_TRUST if nothing would isolate it. */
export function checkIsolation({ name, manifest }: PluginCandidate, mode: IsolationMode, trusted: boolean): void {
  const why = whyInProcess(manifest)
  const read = readAs(manifest)
  if (read !== undefined && mode !== read) throw isolationUnfit(name, mode, `its manifest has "runtime": "${manifest.runtime}"`)
  if (read === undefined && mode === 'quickjs') throw isolationUnfit(name, mode, 'its manifest has no "runtime": "quickjs"')
  if (mode === 'process' && why !== undefined) throw isolationUnfit(name, mode, `${why}, which works only in the process of svc`)
  if (mode === 'in-process' && !trusted) throw needsTrust(name, why ?? 'you passed --isolation in-process')
}

/** Whether the configuration allows isolated plugins on a machine without a sandbox. */
export async function goesWithout(config?: string): Promise<boolean> {
  const { value } = await findSettings(config === undefined ? {} : { config })
  return !['refuse', undefined].includes(get(value, ['isolation', 'without_sandbox']) as string | undefined)
}

/** Describes the isolation for a person. */
export const runsText = (mode: IsolationMode, isOpen: boolean): string =>
  mode === 'process' && isOpen ? WITHOUT : ISOLATIONS[mode]

const WITHOUT =
  'in its own process, with its permissions enforced only if this machine has a sandbox; otherwise, as isolation.without_sandbox says, its NETWORK IS OPEN and its memory has no limit'
const ISOLATIONS: Readonly<Record<IsolationMode, string>> = {
  process: 'in its own process, with its permissions enforced',
  'in-process': 'in the process of svc, without isolation',
  quickjs: 'in the JavaScript sandbox, with its permissions enforced',
  data: 'nowhere: it is data, which the plugin of its runtime reads',
}

/** Throws NAME_TAKEN if a new plugin declares a name of another plugin. The manifests show it before svc installs packages. */
export async function checkNames({ before, candidates, removed }: StagedChange, config?: string): Promise<void> {
  const going = new Set([...candidates, ...removed].map(candidate => candidate.name))
  const installed = { ...before, plugins: before.plugins.filter(plugin => !going.has(plugin.name)) }
  const { plugins } = await findSettings(config === undefined ? {} : { config }, { ...here(), installed })
  const taken = await namesOf(plugins)
  const isOff = (name: string) => before.plugins.some(plugin => plugin.name === name && !plugin.enabled)
  for (const { name: plugin, manifest } of candidates.filter(candidate => !isOff(candidate.name)))
    for (const [slot, name] of namesIn(manifest)) {
      const by = taken.get(`${slot} ${name}`)
      if (by !== undefined) throw nameTaken(plugin, slot, name, by)
      taken.set(`${slot} ${name}`, plugin)
    }
}

/**
 * The declared names of all plugins of svc and all installed ones: `tools read_file` → plugin. A start reports clashes with
 * others.
 */
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
