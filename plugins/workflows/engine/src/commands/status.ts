import { oneLine, table } from '@svc/plugin-kit'
import type { CommandContext, Run, RunStep } from '@svc/core/contracts'
import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { statusRecord, stepRecord } from '@svc/api-types'
import { follow } from './follow.ts'
import { openRuns, contextOf } from './ground.ts'
import { counted, FOLLOW_FLAG, RUN_ARG, shownMs } from './line.ts'
import { waitText } from './words.ts'

const HEAD = ['STEP', 'TYPE', 'STATUS', 'TOOK', 'TRIES', '']

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
    else tell(this, run, steps)
  }
}

function tell({ print, note }: CommandContext, run: Run, steps: readonly RunStep[]): void {
  const { id, workflow, progress, error, waiting, executionMs, spent } = run
  const percent = run.status === 'running' ? ` ${Math.floor(progress * 100)} %` : ''
  const used = [shownMs(executionMs), counted(spent.toolCalls, 'tool call'), counted(spent.tokens, 'token')].join(', ')
  print(`${id}  ${workflow}  ${run.status}${percent}  ${used}`)
  if (error) print(`${error.code}: ${oneLine(error.message, 400)}`)
  if (steps.length > 0) for (const line of table([HEAD, ...steps.map(cells)])) print(line)
  for (const one of waiting) note(waitText(id, one))
}

function cells({ step, type, status: state, startedAt, finishedAt, attempts, error }: RunStep): string[] {
  const took = shownMs((finishedAt ?? Date.now()) - startedAt)
  return [step, type, state, took, String(attempts), error ? `${error.code}: ${oneLine(error.message, 60)}` : '']
}
