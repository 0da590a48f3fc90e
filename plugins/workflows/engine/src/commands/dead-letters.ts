import { runRecord } from '@svc/api-types'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { BulkAction, BulkOutcome, RunFilter } from '@svc/core/contracts'
import { lineInvalid, table } from '@svc/plugin-kit'
import { durationMs } from '@svc/workflow-lang'
import { contextOf, counted, openRuns, RUN_ARG } from './arguments.ts'
import { runCells, RUNS_HEAD } from './runs.ts'

// Dead letters, and changes of many runs.

const MAX_LISTED = 200
const TIME = '<time>|<duration>'
const FILTER_FLAGS = {
  workflow: Flags.string({ summary: 'Only runs of this workflow', helpValue: '<name>' }),
  code: Flags.string({ summary: 'Only runs that failed with this code', helpValue: '<code>' }),
  owner: Flags.string({ summary: 'Only runs of this principal', helpValue: '<id>' }),
  since: Flags.string({ summary: 'Only runs since this time, or since this long ago', helpValue: TIME }),
  until: Flags.string({ summary: 'Only runs before this time, or older than this', helpValue: TIME }),
}

interface FilterFlags {
  readonly workflow?: string | undefined
  readonly code?: string | undefined
  readonly owner?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
}

/** The filter of the flags. Throws COMMAND_LINE_INVALID. */
function filterOf(call: string, { workflow, code, owner, since, until }: FilterFlags): RunFilter {
  const times = { since: timeOf(call, 'since', since), until: timeOf(call, 'until', until) }
  const filter = { workflow, errorCode: code, owner, ...times }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}

/** A time as `2026-01-31T12:00:00Z`, or a duration before now as `7d`. */
function timeOf(call: string, flag: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const ago = durationMs(given)
  const time = ago === undefined ? Date.parse(given) : Date.now() - ago
  if (!Number.isNaN(time)) return time
  throw lineInvalid(`--${flag} must be a time such as 2026-01-31T12:00:00Z or a duration such as 7d, was "${given}"`, call)
}

export class WorkflowsDeadLetters extends SvcCommand {
  static override summary = 'List runs that failed for good, the latest failure first'
  static override description =
    'A dead letter is a failed run that was not cancelled, and that no retry or replay continues. See its steps with `svc workflows status`, and continue it with `svc workflows retry` or `svc workflows replay`.'
  static override examples = ['<%= config.bin %> <%= command.id %> --workflow release --code HTTP_FAILED --since 1d']
  static override flags = {
    ...FILTER_FLAGS,
    limit: Flags.integer({
      summary: `Maximum number of runs, at most ${MAX_LISTED}`,
      helpValue: '<int>',
      default: 20,
      min: 1,
      max: MAX_LISTED,
    }),
    cursor: Flags.string({ summary: 'Continue after this page', helpValue: '<cursor>' }),
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(WorkflowsDeadLetters)
    const { limit, cursor } = flags
    const ctx = contextOf(this, 'dead-letters')
    const filter = filterOf('workflows dead-letters', flags)
    const query = { ...filter, limit, dead: true, ...(cursor === undefined ? {} : { cursor }) }
    const page = await (await openRuns(this, ctx)).runs(query, ctx)
    if (flags.json) return this.print(JSON.stringify({ runs: page.runs.map(runRecord), next_cursor: page.next ?? null }))
    if (page.runs.length === 0) return this.note('no dead letters found')
    for (const line of table([RUNS_HEAD, ...page.runs.map(runCells)])) this.print(line)
    if (page.next !== undefined) this.note(`more runs exist; continue with --cursor ${page.next}`)
  }
}

export class WorkflowsDrop extends SvcCommand {
  static override summary = 'Delete a dead letter with its log'
  static override examples = ['<%= config.bin %> <%= command.id %> 4f0c']
  static override args = RUN_ARG
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsDrop)
    const ctx = contextOf(this, 'drop')
    await (await openRuns(this, ctx)).drop(args.run, ctx)
    if (flags.json) this.print(JSON.stringify({ workflow_id: args.run, dropped: true }))
    else this.note(`dropped ${args.run}`)
  }
}

const ACTIONS = ['cancel', 'retry', 'drop'] as const satisfies readonly BulkAction[]
const BULK =
  'workflows bulk <cancel|retry|drop> [--workflow <name>] [--code <code>] [--since <time>] [--until <time>] [--owner <id>] [--yes|--dry-run]'

export class WorkflowsBulk extends SvcCommand {
  static override summary = 'Cancel, retry or drop all runs that meet conditions'
  static override description =
    'Cancels running runs, and retries or drops dead letters; `retry --code CANCELLED` retries cancelled runs. Needs at least one condition. A running server executes the runs, and changes more than 200 in a background job, see `svc jobs`. Exits with 1 if a run could not be changed.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> cancel --workflow release --dry-run',
    '<%= config.bin %> <%= command.id %> retry --code HTTP_FAILED --since 1d --yes',
  ]
  static override args = {
    action: Args.string({ description: 'What to do', options: [...ACTIONS], required: true, ignoreStdin: true }),
  }
  static override flags = {
    ...FILTER_FLAGS,
    'dry-run': Flags.boolean({ summary: 'Only count the runs', default: false }),
    yes: Flags.boolean({ char: 'y', summary: 'Confirm the change', default: false }),
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsBulk)
    const dryRun = flags['dry-run']
    const filter = filterOf(BULK, flags)
    if (Object.keys(filter).length === 0)
      throw lineInvalid('give at least one condition: --workflow, --code, --since, --until or --owner', BULK)
    if (!dryRun && !flags.yes) throw lineInvalid('this changes all runs that meet the conditions: add --yes, or --dry-run', BULK)
    const ctx = contextOf(this, 'bulk')
    const workflows = await openRuns(this, ctx)
    const outcome = await workflows.bulk({ action: args.action as BulkAction, filter, dryRun }, ctx)
    if (flags.json) this.print(JSON.stringify(recordOf(outcome)))
    else this.#show(outcome)
    return (outcome.failed?.length ?? 0) > 0 ? 1 : 0
  }

  #show({ count, job, changed = 0, pending = 0, failed = [] }: BulkOutcome): void {
    this.print(counted(count, 'run'))
    if (job !== undefined) this.note(`a running server changes them in the background; see svc jobs show ${job}`)
    if (changed > 0) this.note(`changed ${changed}`)
    if (pending > 0) this.note(`${pending} end later: a running server executes their compensations`)
    for (const { run, code, message } of failed) this.note(`${run}: ${code}: ${message}`)
  }
}

const recordOf = ({ count, job, changed, pending, failed }: BulkOutcome) => ({
  count,
  job_id: job ?? null,
  ...(changed === undefined ? {} : { changed, pending }),
  ...(failed === undefined ? {} : { failed: failed.map(({ run, code, message }) => ({ workflow_id: run, code, message })) }),
})
