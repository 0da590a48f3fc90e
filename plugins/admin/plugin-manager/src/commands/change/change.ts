import { errorFacts, passingPerson, printError, UNSET_HINT, unsetText, visible } from '@svc/cli/command'
import { abortOnInterrupt, endUnchanged, findSettings, here, setHome } from '@svc/cli/program'
import type { SvcError } from '@svc/core'
import type { SetOptions, StagedChange } from '../../set.ts'
import { type AskedServers, accessWith, askServers, checkSettings } from './server-settings.ts'
import { type Proposal, proposalFacts, proposalText } from './proposal-text.ts'
import { openProgress, type ProgressLine } from './progress.ts'
import { goesWithout, type IsolationChoice } from './isolation.ts'
import { consentMissing } from '../errors.ts'
import { patiently } from './patience.ts'
import { checkProposals, changesNothing, proposalsOf, putInEffect } from './proposals.ts'
import { checkRevision } from './cluster-set.ts'
import { refusedText, settleAbandoned, type ChangeResult } from './take-up.ts'

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
    await checkRevision(asked.config, signal)
    await using change = await patiently(() => plan(setHome(), { signal, onProgress: progress.report }), {
      signal,
      report: step => progress.report({ step }),
    })
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
  const { candidates: requests } = change
  const config = await findSettings(asked.config === undefined ? {} : { config: asked.config })
  const servers = await askServers(requests, signal)
  const access = accessWith(servers, { requests, config: config.value, isNamed: asked.config !== undefined })
  const proposals = proposalsOf(change, asked, access, early)
  progress.clear()
  if (changesNothing(change, proposals)) return printSuccess(asked, { text: asked.nothing, facts: { plugins: [], removed: [] } })
  const facts = { plugins: proposals.map(proposalFacts), removed: change.removed.map(item => item.name) }
  if (proposals.length > 0) await show(proposals, change, asked)
  await checkProposals(change, proposals, asked.config)
  checkSettings(servers, { requests, config })
  if (asked.dryRun)
    return printSuccess(asked, { text: 'nothing was changed: this was a dry run', facts: { dry_run: true, ...facts } })
  if (proposals.length > 0 && !asked.yes && !(await consent(questionOf(change, asked), asked.verb, signal))) {
    process.stderr.write('nothing was changed\n')
    return 1
  }
  const taken = await putInEffect(change, proposals, { config: asked.config, signal, report: progress.report }, early)
  progress.clear()
  if (taken.problems.length > 0)
    return refused(
      asked,
      taken.problems.map(problem => hintedAfter(problem, change, asked))
    )
  const text = [`${asked.done} ${namesOf(change)}; ${servedBy(taken)}`, ...unsetNotes(proposals, servers)].join('\n')
  return printSuccess(asked, { text, facts: { ...facts, ...takenFacts(taken) } })
}

/** What a change has reached, for `--json`. */
export const takenFacts = ({ urls, revision }: ChangeResult) => ({
  servers: urls,
  ...(revision === undefined ? {} : { revision }),
})

/** Only notes, because the plugins may work without the variables. A server has the variables of its start, not those of here. */
function unsetNotes(proposals: readonly Proposal[], { answers }: AskedServers): string[] {
  const named = (item: Proposal, text: string) => `note: of the variables that ${item.candidate.name} can read, ${visible(text)}`
  if (answers.length === 0)
    return proposals.flatMap(item => {
      const { unset } = item.access
      return unset.length === 0 ? [] : [`${named(item, unsetText(unset))}: ${UNSET_HINT}`]
    })
  return answers.flatMap(({ url, found }) =>
    proposals.flatMap((item, at) => {
      const { unset = [] } = found[at] ?? {}
      return unset.length === 0 ? [] : [`${named(item, unsetText(unset, `in the server at ${url}`))}: ${UNSET_HINT}`]
    })
  )
}

/** After a rollback, the hint of a problem can name what is not there any more, or not yet. */
function hintedAfter(problem: SvcError, { candidates, removed }: StagedChange, { config }: ChangeCommand): SvcError {
  const { code, plugin, details, where } = problem
  if (code === 'PERMISSION_NOT_ACCEPTED' && candidates.some(({ name, from }) => name === plugin && from === undefined))
    return Object.assign(problem, {
      hint: `Run this command again ${config === undefined ? 'in the folder of the server, or pass its configuration with --config' : 'without --config: svc then asks for the values of the server'}`,
    })
  if (code !== 'CONFIG_UNKNOWN_KEY' || removed.length === 0) return problem
  return Object.assign(problem, { hint: keyHint(String(details.path), where, removed) })
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

export function servedBy({ urls, others, revision }: ChangeResult): string {
  const cluster = revision === undefined ? '' : `; the nodes of the cluster take over revision ${revision}`
  const dev = others.length === 0 ? '' : `; ${others.join(', ')} (svc plugins dev) loads no installed plugins`
  const loaded =
    urls.length === 0
      ? `no ${others.length === 0 ? '' : 'other '}server runs: the next svc serve loads the change`
      : `${urls.join(', ')} ${urls.length === 1 ? 'has' : 'have'} loaded the change`
  return `${loaded}${dev}${cluster}`
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

/** A section of the configuration outlives its plugin. */
export const keyHint = (path: string, where: string | undefined, plugins: readonly { readonly name: string }[]): string =>
  `Remove ${path} from ${where?.replace(/:\d+$/, '') ?? 'the configuration'} if it belongs to ${plugins.map(({ name }) => name).join(', ')}, then run this command again`

/** Asks at the terminal; only a clear yes counts. Throws CONSENT_MISSING without a terminal. */
export async function consent(question: string, verb: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw consentMissing(verb)
  const answer = await passingPerson(process.stderr).question(`${question} [y/N] `, signal)
  signal.throwIfAborted()
  return /^\s*y(es)?\s*$/i.test(answer ?? '')
}
