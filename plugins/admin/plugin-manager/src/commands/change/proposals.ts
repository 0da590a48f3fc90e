import { join } from 'node:path'
import { here, setHome } from '@svc/cli/program'
import { joinedValues } from '@svc/runtime/isolation'
import { type BuiltSet, changeLock, type Lock, type LockedPlugin, type PluginCandidate, type StagedChange } from '../../set.ts'
import { checkBuilt, describeAll, describeCommandsOf } from './describe.ts'
import { checkIsolation, checkNames, isolationOf, type IsolationChoice } from './isolation.ts'
import type { Step } from './progress.ts'
import type { ConfiguredAccess } from './configured-access.ts'
import { newValueWords, type Proposal } from './proposal-text.ts'
import { type ChangeResult, tryChange } from './take-up.ts'

// The part of a change that a command and the server have in common: what it proposes, and how it takes effect.

/** The surroundings of a change. */
export interface ChangePlace {
  /** The configuration file; default: the one that svc finds. */
  readonly config?: string | undefined
  readonly signal: AbortSignal
  readonly report: (step: Step) => void
}

/** The plugins of a change with their isolation and access. `built`: the set of a bundle, which contains isolation modes. */
export function proposalsOf(
  change: StagedChange,
  asked: IsolationChoice,
  accessTo: (candidate: PluginCandidate, former?: LockedPlugin) => ConfiguredAccess,
  built?: BuiltSet
): Proposal[] {
  return change.candidates.map(candidate => {
    const former = change.before.plugins.find(plugin => plugin.name === candidate.name)
    const before = built?.plugins.find(plugin => plugin.name === candidate.name) ?? former
    // a bundle does not transfer trust to another machine
    const trusted = asked.trust || (built === undefined && before?.trusted === true)
    return { candidate, isolation: isolationOf(candidate, asked, before), trusted, access: accessTo(candidate, former) }
  })
}

export const changesNothing = (change: StagedChange, proposals: readonly Proposal[]): boolean =>
  change.isEmpty && proposals.every(proposal => isAsBefore(proposal, change))

/** Whether an installed plugin already has this isolation, trust and access. */
const isAsBefore = ({ candidate, isolation, trusted, access }: Proposal, { before }: StagedChange) =>
  newValueWords(access).length === 0 &&
  before.plugins.some(plugin => plugin.name === candidate.name && plugin.isolation === isolation && plugin.trusted === trusted)

/** Throws NAME_TAKEN, PLUGIN_ISOLATION_UNFIT and PLUGIN_NEEDS_TRUST, before any code runs. */
export async function checkProposals(change: StagedChange, proposals: readonly Proposal[], config?: string): Promise<void> {
  await checkNames(change, config)
  for (const { candidate, isolation, trusted } of proposals) checkIsolation(candidate, isolation, trusted)
}

/** Builds the change and tries it; the former plugins stay in effect if it fails. */
export async function putInEffect(
  change: StagedChange,
  proposals: readonly Proposal[],
  place: ChangePlace,
  early?: BuiltSet
): Promise<ChangeResult> {
  const { config, signal, report } = place
  const locked = await lockedOf(early ?? (await change.build()), proposals, place)
  const taken = await tryChange(here().home, { config, before: change.before, signal, report: step => report({ step }) }, holds =>
    change.commit(locked, holds)
  )
  signal.throwIfAborted()
  return taken
}

/** The entries of the lock, with the user's choices and the declarations that the plugins make in their sandbox. */
async function lockedOf(built: BuiltSet, proposals: readonly Proposal[], { config, signal, report }: ChangePlace) {
  const locked = built.plugins.map(plugin => ({ ...plugin, ...choiceOf(plugin, proposals) }))
  // the declarations of a link can change at each start
  const unknown = locked.filter(
    item => item.isolation === 'process' && item.declares === undefined && item.origin.kind !== 'link'
  )
  const folders = unknown.map(item => ({ locked: item, folder: folderIn(built, item) }))
  const described = await describeAll(folders, { place: here(), config, signal, report })
  for (const item of locked) if (isImported(item) && !unknown.includes(item)) await checkBuilt(item, folderIn(built, item))
  const learnt = locked.map(item => described.find(({ name }) => name === item.name) ?? item)
  const known = learnt.filter(item => isImported(item) && item.commands === undefined && item.origin.kind !== 'link')
  const withCommands = await describeCommandsOf(
    known.map(item => ({ locked: item, folder: folderIn(built, item) })),
    { place: here(), config, signal, report }
  )
  return learnt.map(item => withCommands.find(({ name }) => name === item.name) ?? item)
}

const folderIn = ({ folder }: BuiltSet, { name, origin }: LockedPlugin) =>
  origin.kind === 'link' ? origin.spec : join(folder, 'node_modules', name)

const isImported = ({ isolation }: LockedPlugin) => isolation === 'process' || isolation === 'in-process'

/** Servers of one home can have different configurations, so values that were accepted before stay accepted. */
function choiceOf(
  { name }: LockedPlugin,
  proposals: readonly Proposal[]
): Pick<LockedPlugin, 'isolation' | 'trusted' | 'values'> {
  const { isolation, trusted, access } = proposals.find(proposal => proposal.candidate.name === name)!
  return { isolation, trusted, values: joinedValues(access.accepted, access.values) }
}

/** Enables or disables installed plugins; they stay as they are if no server can start with the change. */
export function switchInEffect(
  before: Lock,
  { names, enabled }: { readonly names: readonly string[]; readonly enabled: boolean },
  { config, signal, report }: ChangePlace
): Promise<ChangeResult> {
  const taking = { config, before, signal, report: (step: 'reload' | 'start' | 'wait') => report({ step }) }
  return tryChange(here().home, taking, holds => changeLock(setHome(), lock => switched(lock, names, enabled), holds))
}

const switched = (lock: Lock, names: readonly string[], enabled: boolean): Lock => ({
  ...lock,
  plugins: lock.plugins.map(plugin => (names.includes(plugin.name) ? { ...plugin, enabled } : plugin)),
})
