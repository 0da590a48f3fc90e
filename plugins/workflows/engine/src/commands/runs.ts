import { runRecord, runReply, statusRecord, stepRecord } from '@svc/api-types'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { CallContext } from '@svc/core'
import type { CommandContext, Json, Question, Run, RunStatus, RunStep, Waiting, Workflows } from '@svc/core/contracts'
import { definedOf, lineInvalid, oneLine, table } from '@svc/plugin-kit'
import { asksNothing, invalid } from '../errors.ts'
import {
  answerOf,
  contextOf,
  counted,
  DETACH_FLAG,
  FOLLOW_FLAG,
  inputOf,
  openRuns,
  openWorkflows,
  parametersOf,
  RUN_ARG,
  shownMs,
  WORKFLOW_ARG,
} from './arguments.ts'
import { follow, waitText } from './follow.ts'

export class WorkflowsRun extends SvcCommand {
  static override summary = 'Run a workflow and show its progress'
  static override description =
    'Executes the run in this process. Prints the result to the standard output, and everything else to the standard error. Asks questions on the terminal; without a terminal, the run waits for `svc workflows answer`. Ctrl-C cancels the run, a second Ctrl-C leaves it as it is, and Ctrl-D at a question leaves it waiting. Exit codes: 0 completed, 1 failed, 2 invalid command line, 3 left waiting, 130 cancelled.'
  static override examples = [
    `<%= config.bin %> <%= command.id %> release --input '{"tag": "v2"}' --param dry_run=true`,
    '<%= config.bin %> <%= command.id %> report --input @input.json --detach',
  ]
  static override args = WORKFLOW_ARG
  static override flags = {
    input: Flags.string({ summary: 'Input as JSON, or @ and the path of a JSON file', helpValue: '<json>' }),
    param: Flags.string({
      summary: 'Set a parameter; repeat the flag for several',
      helpValue: '<name>=<value>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    ...DETACH_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsRun)
    const { workflow } = args
    const input = await inputOf(flags.input)
    const ctx = contextOf(this, 'run')
    const workflows = await (flags.detach ? openRuns(this, ctx) : openWorkflows(this))
    const { definition } = await workflows.show(workflow, ctx)
    const parameters = parametersOf(flags.param ?? [], definition)
    const begun = await workflows.start({ workflow, input, parameters, ...howOf(flags) }, ctx)
    return showBegun(this, workflows, begun, flags)
  }
}

interface BeginFlags {
  readonly detach: boolean
  readonly json: boolean
}

/** Follows a run that this command started, or prints its id after `--detach`. Returns the exit code. */
async function showBegun(call: CommandContext, workflows: Workflows, begun: Run, { detach, json }: BeginFlags): Promise<number> {
  if (detach) {
    call.print(json ? JSON.stringify(runReply(begun)) : begun.id)
    return 0
  }
  call.note(`run ${begun.id}`)
  return follow(call, workflows, begun.id, { json })
}

/** Start options for `--detach`. */
const howOf = ({ detach }: Pick<BeginFlags, 'detach'>): { readonly detached?: true } => (detach ? { detached: true } : {})

/** The head of a list of runs. */
export const RUNS_HEAD = ['RUN', 'WORKFLOW', 'STATUS', 'BEGAN', 'TOOK', '']
const MAX_LISTED = 200
const STATUSES = ['running', 'completed', 'failed'] as const satisfies readonly RunStatus[]

export class WorkflowsRuns extends SvcCommand {
  static override summary = 'List runs, newest first'
  static override examples = ['<%= config.bin %> <%= command.id %> --workflow release --status failed']
  static override flags = {
    workflow: Flags.string({ summary: 'Only runs of this workflow', helpValue: '<name>' }),
    status: Flags.option({ summary: 'Only runs with this status', options: STATUSES })(),
    paused: Flags.boolean({ summary: 'Only paused runs' }),
    limit: Flags.integer({
      summary: `Maximum number of runs, at most ${MAX_LISTED}`,
      helpValue: '<int>',
      default: 20,
      min: 1,
      max: MAX_LISTED,
    }),
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(WorkflowsRuns)
    const { workflow, status, paused, limit } = flags
    const ctx = contextOf(this, 'runs')
    const page = await (await openRuns(this, ctx)).runs({ limit, ...definedOf({ workflow, status, paused }) }, ctx)
    if (flags.json) return this.print(JSON.stringify({ runs: page.runs.map(runRecord) }))
    if (page.runs.length === 0) return this.note('no runs found')
    for (const line of table([RUNS_HEAD, ...page.runs.map(runCells)])) this.print(line)
    if (page.next !== undefined) this.note(`more runs exist; increase --limit (maximum ${MAX_LISTED})`)
  }
}

/** A run in a list. */
export function runCells({ id, workflow, status, createdAt, executionMs, waiting, error, pausedAt }: Run): string[] {
  const waits = waiting.map(item => item.step).join(', ')
  const more = error ? `${error.code}: ${oneLine(error.message, 60)}` : waits && `waits at ${waits}`
  return [id, workflow, pausedAt === undefined ? status : 'paused', new Date(createdAt).toISOString(), shownMs(executionMs), more]
}

const STEPS_HEAD = ['STEP', 'TYPE', 'STATUS', 'TOOK', 'TRIES', '']

export class WorkflowsStatus extends SvcCommand {
  static override summary = 'Show the status of a run and its steps'
  static override description =
    'With --follow, shows the run to its end, and executes it if no server does. Keys and exit codes are those of `svc workflows run`.'
  static override examples = ['<%= config.bin %> <%= command.id %> 4f0c', '<%= config.bin %> <%= command.id %> 4f0c --follow']
  static override args = RUN_ARG
  static override flags = { ...FOLLOW_FLAG, ...JSON_FLAG }

  async run(): Promise<number | void> {
    const { args, flags } = await this.parse(WorkflowsStatus)
    const id = args.run
    const ctx = contextOf(this, 'status')
    const workflows = await openRuns(this, ctx)
    if (flags.follow) return follow(this, workflows, id, flags)
    const [run, steps] = await Promise.all([workflows.get(id, ctx), workflows.steps(id, ctx)])
    if (flags.json) this.print(JSON.stringify({ ...statusRecord(run), steps: steps.map(stepRecord) }))
    else printRun(this, run, steps)
  }
}

function printRun({ print, note }: CommandContext, run: Run, steps: readonly RunStep[]): void {
  const { id, workflow, progress, error, waiting, executionMs, spent, affinity } = run
  const percent = run.status === 'running' ? ` ${Math.floor(progress * 100)} %` : ''
  const status = run.pausedAt === undefined ? run.status : 'paused'
  const cost = spent.cost === undefined ? [] : [`cost ${spent.cost}`]
  const used = [shownMs(executionMs), counted(spent.toolCalls, 'tool call'), counted(spent.tokens, 'token'), ...cost].join(', ')
  print(`${id}  ${workflow}  ${status}${percent}  ${used}`)
  if (affinity !== undefined) print(`node with its files: ${affinity}`)
  if (error) print(`${error.code}: ${oneLine(error.message, 400)}`)
  if (steps.length > 0) for (const line of table([STEPS_HEAD, ...steps.map(stepCells)])) print(line)
  for (const item of waiting) note(waitText(id, item))
}

function stepCells({ step, type, status: state, startedAt, finishedAt, attempts, error }: RunStep): string[] {
  const took = shownMs((finishedAt ?? Date.now()) - startedAt)
  return [step, type, state, took, String(attempts), error ? `${error.code}: ${oneLine(error.message, 60)}` : '']
}

export class WorkflowsCancel extends SvcCommand {
  static override summary = 'Cancel a run'
  static override description =
    'Aborts running nodes in any process and runs the compensations. Exits with 1 if that takes more than ten seconds.'
  static override examples = ['<%= config.bin %> <%= command.id %> 4f0c']
  static override args = RUN_ARG
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsCancel)
    const id = args.run
    const ctx = contextOf(this, 'cancel')
    const workflows = await openRuns(this, ctx)
    const ending = new AbortController()
    // without a server, this process runs the compensations
    const working = workflows.work(id, { ...ctx, signal: AbortSignal.any([ctx.signal, ending.signal]) })
    const [run] = await Promise.all([workflows.cancel(id, ctx).finally(() => ending.abort()), working])
    if (flags.json) this.print(JSON.stringify(statusRecord(run)))
    else this.print(run.status === 'running' ? `${id} is being cancelled` : `${id} is cancelled`)
    return run.status === 'running' ? 1 : 0
  }
}

export class WorkflowsRetry extends SvcCommand {
  static override summary = 'Retry a failed or cancelled run'
  static override description =
    'Starts a new run that keeps the completed steps and continues with the failed one. Executes it in this process with the keys and exit codes of `svc workflows run`.'
  static override examples = ['<%= config.bin %> <%= command.id %> 4f0c --detach']
  static override args = RUN_ARG
  static override flags = { ...DETACH_FLAG, ...JSON_FLAG }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsRetry)
    const ctx = contextOf(this, 'retry')
    const workflows = await openRuns(this, ctx)
    const begun = await workflows.retry(args.run, howOf(flags), ctx)
    return showBegun(this, workflows, begun, flags)
  }
}

export class WorkflowsReplay extends SvcCommand {
  static override summary = 'Repeat an ended run from a node'
  static override description =
    'Starts a new run that reuses the recorded results of the nodes before --from, with the input and the definition of the run unless you give others. Executes it in this process with the keys and exit codes of `svc workflows run`.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> 4f0c --from summarize',
    `<%= config.bin %> <%= command.id %> 4f0c --from send --input '{"to": "ops"}' --current --detach`,
  ]
  static override args = RUN_ARG
  static override flags = {
    from: Flags.string({
      summary: 'Node from which nodes run again, or <node>#<visit>; default: the first',
      helpValue: '<node>',
    }),
    input: Flags.string({ summary: 'Another input as JSON, or @ and the path of a JSON file', helpValue: '<json>' }),
    param: Flags.string({
      summary: 'Change a parameter; repeat the flag for several',
      helpValue: '<name>=<value>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    current: Flags.boolean({ summary: 'Use the current definition of the workflow', default: false }),
    ...DETACH_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsReplay)
    const { from, param = [], current } = flags
    const ctx = contextOf(this, 'replay')
    const workflows = await openRuns(this, ctx)
    const input = flags.input === undefined ? {} : { input: await inputOf(flags.input) }
    const parameters = param.length === 0 ? {} : { parameters: await changedParameters(workflows, args.run, param, ctx) }
    const request = { ...(from === undefined ? {} : { from }), ...input, ...parameters, ...howOf(flags) }
    const begun = await workflows.replay(args.run, { ...request, definition: current ? 'current' : 'same' }, ctx)
    return showBegun(this, workflows, begun, flags)
  }
}

/** The parameters of a run with some changed. */
async function changedParameters(workflows: Workflows, id: string, given: readonly string[], ctx: CallContext): Promise<Json> {
  const { workflow, parameters } = await workflows.get(id, ctx)
  // without its definition, values are read as JSON where they are valid JSON
  const definition = await workflows.show(workflow, ctx).then(
    shown => shown.definition,
    () => ({ name: workflow, nodes: {} })
  )
  return { ...(parameters as object), ...(parametersOf(given, definition) as object) }
}

export class WorkflowsAnswer extends SvcCommand {
  static override summary = 'Answer a question of a run'
  static override description =
    'Omit the step if only one step asks. Answer an approval with yes or no (y, true, approved; n, false, rejected), a choice with its text or number, and other questions with text or JSON.'
  static override usage = '<%= command.id %> <run> [<step>] <answer> [--follow] [--json]'
  static override examples = [
    '<%= config.bin %> <%= command.id %> 4f0c yes',
    '<%= config.bin %> <%= command.id %> 4f0c review yes --follow',
  ]
  static override args = {
    ...RUN_ARG,
    step: Args.string({ description: 'Step that asks, or the answer if you omit the step', required: true, ignoreStdin: true }),
    answer: Args.string({ description: 'The answer', ignoreStdin: true }),
  }
  static override flags = { ...FOLLOW_FLAG, ...JSON_FLAG }

  async run(): Promise<number | void> {
    const { args, flags } = await this.parse(WorkflowsAnswer)
    const id = args.run
    const ctx = contextOf(this, 'answer')
    const workflows = await openRuns(this, ctx)
    const { waiting, status } = await workflows.get(id, ctx)
    const asking = waiting.filter(item => item.ask)
    if (asking.length === 0) throw asksNothing(id, status)
    const step = args.answer === undefined ? onlyOne(asking) : args.step
    const typed = args.answer ?? args.step
    const { ask } = asking.find(item => item.step === step) ?? {}
    // the engine rejects answers to closed questions
    await workflows.answer(id, { step, value: ask ? valueOf(ask, typed) : typed }, ctx)
    if (flags.follow) return follow(this, workflows, id, flags)
    if (flags.json) this.print(JSON.stringify({ success: true }))
    else this.note(`answered; a running server continues the run, or run: svc workflows status ${id} --follow`)
  }
}

function onlyOne(asking: readonly Waiting[]): string {
  if (asking.length === 1) return asking[0]!.step
  throw lineInvalid(
    `several steps wait for an answer: ${asking.map(waiting => waiting.step).join(', ')}`,
    'workflows answer <run> [<step>] <answer> [--follow] [--json]'
  )
}

/** An invalid answer is passed on as typed, and the engine reports the valid ones. */
function valueOf(ask: Question, typed: string): Json {
  const value = answerOf(ask, typed)
  if (value === undefined && ask.kind === 'input') throw invalid('value', 'must not be empty')
  return value ?? typed
}
