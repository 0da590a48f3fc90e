import { runRecord, runReply, statusRecord, stepRecord } from '@svc/api-types'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { CommandContext, Json, Question, Run, RunStatus, RunStep, Waiting, Workflows } from '@svc/core/contracts'
import { lineInvalid, oneLine, table } from '@svc/plugin-kit'
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

/** `svc workflows run <workflow>`: runs it here and shows how it goes; `--detach` leaves it to a server of this home. */
export class WorkflowsRun extends SvcCommand {
  static override summary = 'Run a workflow and show how it goes'
  static override description =
    'Works on the run in this process: the result goes to the standard output, everything else to the standard error. Asks questions on the terminal; elsewhere the run waits for `svc workflows answer`. Ctrl-C cancels the run, a second one leaves it as it is; Ctrl-D at a question leaves it waiting. Ends with 0 when the run completes, 1 when it fails, 2 for a wrong command line, 3 when it is left waiting, 130 when it is cancelled.'
  static override examples = [
    `<%= config.bin %> <%= command.id %> release --input '{"tag": "v2"}' --param dry_run=true`,
    '<%= config.bin %> <%= command.id %> report --input @input.json --detach',
  ]
  static override args = WORKFLOW_ARG
  static override flags = {
    input: Flags.string({ summary: 'Input, as JSON or @ and a file of JSON', helpValue: '<json>' }),
    param: Flags.string({
      summary: 'A parameter, once for each',
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

/** A run that this command has begun: it is followed to its end, or only told where it was left to a server. Answers the exit code. */
async function showBegun(call: CommandContext, workflows: Workflows, begun: Run, { detach, json }: BeginFlags): Promise<number> {
  if (detach) {
    call.print(json ? JSON.stringify(runReply(begun)) : begun.id)
    return 0
  }
  call.note(`run ${begun.id}`)
  return follow(call, workflows, begun.id, { json })
}

/** How a run is begun: left to a server, or worked on here. */
const howOf = ({ detach }: Pick<BeginFlags, 'detach'>): { readonly detached?: true } => (detach ? { detached: true } : {})

const RUNS_HEAD = ['RUN', 'WORKFLOW', 'STATUS', 'BEGAN', 'TOOK', '']
const MAX_LISTED = 200
const STATUSES = ['running', 'completed', 'failed'] as const satisfies readonly RunStatus[]

/** `svc workflows runs`: the newest first. */
export class WorkflowsRuns extends SvcCommand {
  static override summary = 'List runs, the newest first'
  static override examples = ['<%= config.bin %> <%= command.id %> --workflow release --status failed']
  static override flags = {
    workflow: Flags.string({ summary: 'Only runs of this workflow', helpValue: '<name>' }),
    status: Flags.option({ summary: 'Only runs with this status', options: STATUSES })(),
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
    const { workflow, status, limit } = flags
    const ctx = contextOf(this, 'runs')
    const page = await (await openRuns(this, ctx)).runs(
      { limit, ...(workflow === undefined ? {} : { workflow }), ...(status === undefined ? {} : { status }) },
      ctx
    )
    if (flags.json) return this.print(JSON.stringify({ runs: page.runs.map(runRecord) }))
    if (page.runs.length === 0) return this.note('there are no such runs')
    for (const line of table([RUNS_HEAD, ...page.runs.map(runCells)])) this.print(line)
    if (page.next !== undefined) this.note(`there are more: --limit, at most ${MAX_LISTED}`)
  }
}

function runCells({ id, workflow, status, createdAt, executionMs, waiting, error }: Run): string[] {
  const waits = waiting.map(one => one.step).join(', ')
  const more = error ? `${error.code}: ${oneLine(error.message, 60)}` : waits && `waits at ${waits}`
  return [id, workflow, status, new Date(createdAt).toISOString(), shownMs(executionMs), more]
}

const STEPS_HEAD = ['STEP', 'TYPE', 'STATUS', 'TOOK', 'TRIES', '']

/** `svc workflows status <run>`: how it stands, step by step; `--follow` stays to its end, and works on it where no server does. */
export class WorkflowsStatus extends SvcCommand {
  static override summary = 'Show the status of a run, step by step'
  static override description =
    'With --follow it shows the run to its end as `svc workflows run` does, and works on it where no server does; exit codes and keys are the same.'
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
  const { id, workflow, progress, error, waiting, executionMs, spent } = run
  const percent = run.status === 'running' ? ` ${Math.floor(progress * 100)} %` : ''
  const used = [shownMs(executionMs), counted(spent.toolCalls, 'tool call'), counted(spent.tokens, 'token')].join(', ')
  print(`${id}  ${workflow}  ${run.status}${percent}  ${used}`)
  if (error) print(`${error.code}: ${oneLine(error.message, 400)}`)
  if (steps.length > 0) for (const line of table([STEPS_HEAD, ...steps.map(stepCells)])) print(line)
  for (const one of waiting) note(waitText(id, one))
}

function stepCells({ step, type, status: state, startedAt, finishedAt, attempts, error }: RunStep): string[] {
  const took = shownMs((finishedAt ?? Date.now()) - startedAt)
  return [step, type, state, took, String(attempts), error ? `${error.code}: ${oneLine(error.message, 60)}` : '']
}

/** `svc workflows cancel <run>`: ends it, wherever it is worked on; 1 where that takes more than ten seconds. */
export class WorkflowsCancel extends SvcCommand {
  static override summary = 'End a run'
  static override description =
    'Aborts what runs, wherever it runs, and undoes what is to be undone. Ends with 1 where that takes more than ten seconds.'
  static override examples = ['<%= config.bin %> <%= command.id %> 4f0c']
  static override args = RUN_ARG
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsCancel)
    const id = args.run
    const ctx = contextOf(this, 'cancel')
    const workflows = await openRuns(this, ctx)
    const ending = new AbortController()
    // where no server takes it from the queue, it is undone here
    const working = workflows.work(id, { ...ctx, signal: AbortSignal.any([ctx.signal, ending.signal]) })
    const [run] = await Promise.all([workflows.cancel(id, ctx).finally(() => ending.abort()), working])
    if (flags.json) this.print(JSON.stringify(statusRecord(run)))
    else this.print(run.status === 'running' ? `${id} is being ended` : `${id} is cancelled`)
    return run.status === 'running' ? 1 : 0
  }
}

/** `svc workflows retry <run>`: a new run that takes over what is done and begins with what failed; `--detach` leaves it to a server of this home. */
export class WorkflowsRetry extends SvcCommand {
  static override summary = 'Go on from where a run failed or was cancelled'
  static override description =
    'Begins a new run that takes over what is done and starts with what failed, and works on it in this process as `svc workflows run` does, with its exit codes and keys. The run must have failed or been cancelled.'
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

/** `svc workflows answer <run> [<step>] <answer>`: the step may be left out where only one asks. `--follow` stays to the end of the run. */
export class WorkflowsAnswer extends SvcCommand {
  static override summary = 'Answer what a run asks'
  static override description =
    'The step may be left out where only one asks. The answer to an approval is yes or no (y, true, approved; n, false, rejected), to a choice one of them or its number, else text or JSON.'
  static override usage = '<%= command.id %> <run> [<step>] <answer> [--follow] [--json]'
  static override examples = [
    '<%= config.bin %> <%= command.id %> 4f0c yes',
    '<%= config.bin %> <%= command.id %> 4f0c review yes --follow',
  ]
  static override args = {
    ...RUN_ARG,
    step: Args.string({ description: 'Step that asks, or the answer', required: true, ignoreStdin: true }),
    answer: Args.string({ description: 'The answer', ignoreStdin: true }),
  }
  static override flags = { ...FOLLOW_FLAG, ...JSON_FLAG }

  async run(): Promise<number | void> {
    const { args, flags } = await this.parse(WorkflowsAnswer)
    const id = args.run
    const ctx = contextOf(this, 'answer')
    const workflows = await openRuns(this, ctx)
    const { waiting, status } = await workflows.get(id, ctx)
    const asking = waiting.filter(one => one.ask)
    if (asking.length === 0) throw asksNothing(id, status)
    const step = args.answer === undefined ? onlyOne(asking) : args.step
    const typed = args.answer ?? args.step
    const { ask } = asking.find(one => one.step === step) ?? {}
    // the engine says what is no question any more
    await workflows.answer(id, { step, value: ask ? valueOf(ask, typed) : typed }, ctx)
    if (flags.follow) return follow(this, workflows, id, flags)
    if (flags.json) this.print(JSON.stringify({ success: true }))
    else this.note(`answered; a server of this home goes on with it, or svc workflows status ${id} --follow`)
  }
}

function onlyOne(asking: readonly Waiting[]): string {
  if (asking.length === 1) return asking[0]!.step
  throw lineInvalid(
    `several ask: ${asking.map(one => one.step).join(', ')}`,
    'workflows answer <run> [<step>] <answer> [--follow] [--json]'
  )
}

/** What is no answer is handed on as it is typed: the engine says what would be one. */
function valueOf(ask: Question, typed: string): Json {
  const value = answerOf(ask, typed)
  if (value === undefined && ask.kind === 'input') throw invalid('value', 'must not be empty')
  return value ?? typed
}
