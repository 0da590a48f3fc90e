import { join } from 'node:path'
import { errorFacts, passingPerson, printError, UNSET_HINT, unsetIn, unsetText, visible } from '@svc/cli/command'
import { abortOnInterrupt, endUnchanged, findSettings, here, setHome } from '@svc/cli/program'
import type { ConfigTree, SvcError } from '@svc/core'
import { findServers } from '@svc/runtime'
import { joinedValues } from '@svc/runtime/isolation'
import type { BuiltSet, LockedPlugin, SetOptions, StagedChange } from '../../set.ts'
import { accessOf, newValueWords, type Proposal, proposalFacts, proposalText } from './proposal-text.ts'
import { openProgress, type ProgressLine } from './progress.ts'
import { checkIsolation, checkNames, goesWithout, isolationOf, type IsolationChoice } from './isolation.ts'
import { checkBuilt, describeAll, describeCommandsOf } from './describe.ts'
import { consentMissing, settingsMissing } from '../errors.ts'
import { refusedText, settleAbandoned, type ChangeResult, tryChange } from './take-up.ts'

/** The request of a person. */
export interface ChangeCommand extends IsolationChoice {
  /** `install`, `update`. */
  readonly verb: string
  /** The past tense: `installed`. */
  readonly done: string
  readonly yes: boolean
  readonly dryRun: boolean
  readonly json: boolean
  readonly config?: string | undefined
  /** The message if there is nothing to change. */
  readonly nothing: string
  /** A bundle contains its isolation modes, so svc unpacks it before the question. */
  readonly isBundle?: boolean
}

/**
 * Prepares a change, shows it, asks, and puts it in effect; restores the former plugins if no server can start with it.
 * Resolves with the exit code.
 */
export async function runChange(
  plan: (home: string, options: SetOptions) => Promise<StagedChange>,
  asked: ChangeCommand
): Promise<number> {
  using interrupt = abortOnInterrupt()
  const { signal } = interrupt
  using progress = openProgress({ quiet: asked.json })
  try {
    await settleAbandoned(setHome(), here().home)
    await using change = await plan(setHome(), { signal, onProgress: progress.report })
    progress.clear()
    return await carryOut(change, asked, { signal, progress })
  } catch (error) {
    if (!signal.aborted) throw error
    progress.clear()
    return endUnchanged()
  }
}

interface ChangeContext {
  readonly signal: AbortSignal
  readonly progress: ProgressLine
}

async function carryOut(change: StagedChange, asked: ChangeCommand, around: ChangeContext): Promise<number> {
  const { signal, progress } = around
  const early = asked.isBundle === true ? await change.build() : undefined
  const { value } = await findSettings(asked.config === undefined ? {} : { config: asked.config })
  const proposals = proposalsOf(change, asked, value, early)
  progress.clear()
  if (change.isEmpty && proposals.every(proposal => isAsBefore(proposal, change)))
    return printSuccess(asked, { text: asked.nothing, facts: { plugins: [], removed: [] } })
  const facts = { plugins: proposals.map(proposalFacts), removed: change.removed.map(item => item.name) }
  if (proposals.length > 0) await show(proposals, change, asked)
  await checkNames(change, asked.config)
  for (const { candidate, isolation, trusted } of proposals) checkIsolation(candidate, isolation, trusted)
  await checkSettings(proposals)
  if (asked.dryRun)
    return printSuccess(asked, { text: 'nothing was changed: this was a dry run', facts: { dry_run: true, ...facts } })
  if (proposals.length > 0 && !asked.yes && !(await consent(questionOf(change, asked), asked.verb, signal))) {
    process.stderr.write('nothing was changed\n')
    return 1
  }
  const built = early ?? (await change.build())
  const taken = await takenUp(change, await lockedOf(built, proposals, asked, around), asked, around)
  progress.clear()
  if (taken.problems.length > 0) return refused(asked, taken.problems)
  const text = [`${asked.done} ${namesOf(change)}; ${servedBy(taken)}`, ...proposals.flatMap(unsetNote)].join('\n')
  return printSuccess(asked, { text, facts: { ...facts, servers: taken.urls } })
}

/** Reports missing settings before the question. A running server can have another configuration, and checks its own. */
async function checkSettings(proposals: readonly Proposal[]): Promise<void> {
  const [first] = proposals.filter(({ access }) => access.missing.length > 0)
  if (first === undefined) return
  using stack = new DisposableStack()
  const servers = (await findServers(here().home)).map(server => stack.use(server))
  if (servers.length === 0) throw settingsMissing(first.candidate.name, first.access.missing)
}

/** Only a note, because the plugin may work without the variables. */
function unsetNote({ candidate: { name, permissions } }: Proposal): string[] {
  const unset = unsetIn(permissions)
  return unset.length === 0 ? [] : [`note: of the variables that ${name} can read, ${visible(unsetText(unset))}: ${UNSET_HINT}`]
}

/** Tries the change; the former plugins stay in effect if it fails. */
async function takenUp(
  change: StagedChange,
  locked: readonly LockedPlugin[],
  { config }: ChangeCommand,
  { signal, progress }: ChangeContext
) {
  const taking = { config, before: change.before, signal, report: (step: 'reload' | 'start') => progress.report({ step }) }
  const taken = await tryChange(here().home, taking, holds => change.commit(locked, holds))
  signal.throwIfAborted()
  return taken
}

function proposalsOf(change: StagedChange, asked: ChangeCommand, config: ConfigTree, built: BuiltSet | undefined): Proposal[] {
  return change.candidates.map(candidate => {
    const former = change.before.plugins.find(plugin => plugin.name === candidate.name)
    const before = built?.plugins.find(plugin => plugin.name === candidate.name) ?? former
    // a bundle does not transfer trust to another machine
    const trusted = asked.trust || (built === undefined && before?.trusted === true)
    return { candidate, isolation: isolationOf(candidate, asked, before), trusted, access: accessOf(candidate, config, former) }
  })
}

/** Whether an installed plugin already has this isolation, trust and access. */
const isAsBefore = ({ candidate, isolation, trusted, access }: Proposal, { before }: StagedChange) =>
  newValueWords(access).length === 0 &&
  before.plugins.some(plugin => plugin.name === candidate.name && plugin.isolation === isolation && plugin.trusted === trusted)

/** The entries of the lock, with the user's choices and the declarations that the plugins make in their sandbox. */
async function lockedOf(
  built: BuiltSet,
  proposals: readonly Proposal[],
  { config }: ChangeCommand,
  { signal, progress }: ChangeContext
) {
  const locked = built.plugins.map(plugin => ({ ...plugin, ...choiceOf(plugin, proposals) }))
  // the declarations of a link can change at each start
  const unknown = locked.filter(
    item => item.isolation === 'process' && item.declares === undefined && item.origin.kind !== 'link'
  )
  const folders = unknown.map(item => ({ locked: item, folder: folderIn(built, item) }))
  const described = await describeAll(folders, { place: here(), config, signal, report: progress.report })
  for (const item of locked) if (isImported(item) && !unknown.includes(item)) await checkBuilt(item, folderIn(built, item))
  const learnt = locked.map(item => described.find(({ name }) => name === item.name) ?? item)
  const known = learnt.filter(item => isImported(item) && item.commands === undefined && item.origin.kind !== 'link')
  const withCommands = await describeCommandsOf(
    known.map(item => ({ locked: item, folder: folderIn(built, item) })),
    { place: here(), config, signal, report: progress.report }
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

async function show(proposals: readonly Proposal[], { removed, candidates }: StagedChange, { json, yes, config }: ChangeCommand) {
  if (json && yes) return
  const isOpen = proposals.some(proposal => proposal.isolation === 'process') && (await goesWithout(config))
  const goes = removed.length > 0 && candidates.length > 0 ? [`takes out ${removed.map(item => item.name).join(', ')}`] : []
  const stream = json ? process.stderr : process.stdout
  stream.write(`${[...proposals.map(proposal => proposalText(proposal, isOpen)), ...goes].join('\n\n')}\n\n`)
}

function questionOf({ candidates }: StagedChange, { verb }: ChangeCommand): string {
  const [first] = candidates
  const what = candidates.length === 1 ? `${first!.name} ${first!.version}` : `these ${candidates.length} plugins`
  return `${verb[0]!.toUpperCase()}${verb.slice(1)} ${what}?`
}

const namesOf = ({ candidates, removed }: StagedChange) =>
  candidates.length > 0
    ? candidates.map(candidate => `${candidate.name} ${candidate.version}`).join(', ')
    : removed.map(item => item.name).join(', ')

export function servedBy({ urls, others }: ChangeResult): string {
  const dev = others.length === 0 ? '' : `; ${others.join(', ')} (svc plugins dev) loads no installed plugins`
  const loaded =
    urls.length === 0
      ? `no ${others.length === 0 ? '' : 'other '}server runs: the next svc serve loads the change`
      : `${urls.join(', ')} ${urls.length === 1 ? 'has' : 'have'} loaded the change`
  return `${loaded}${dev}`
}

/** Prints a line or a JSON object about a success, and returns its exit code. */
export function printSuccess(
  { json }: { readonly json: boolean },
  { text, facts }: { readonly text: string; readonly facts: object }
): number {
  process.stdout.write(`${json ? JSON.stringify({ ok: true, ...facts }, null, 2) : text}\n`)
  return 0
}

/** Prints why svc restored the former plugins, and returns the exit code. */
export function refused({ json }: { readonly json: boolean }, problems: readonly SvcError[]): number {
  if (json)
    process.stdout.write(`${JSON.stringify({ ok: false, rolled_back: true, problems: problems.flatMap(errorFacts) }, null, 2)}\n`)
  else {
    process.stderr.write('svc restored the former plugins, because it cannot start with the change:\n\n')
    printError(refusedText(problems))
  }
  return 1
}

/** Asks at the terminal; only a clear yes counts. Throws CONSENT_MISSING without a terminal. */
export async function consent(question: string, verb: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw consentMissing(verb)
  const answer = await passingPerson(process.stderr).question(`${question} [y/N] `, signal)
  signal.throwIfAborted()
  return /^\s*y(es)?\s*$/i.test(answer ?? '')
}
