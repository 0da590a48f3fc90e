import { get, type Manifest } from '@svc/core'
import type { Candidate, IsolationMode, LockedPlugin } from '../../set.ts'
import { whyInProcess, findSettings } from '@svc/cli/program'
import { isolationUnfit, needsTrust } from './errors.ts'

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
