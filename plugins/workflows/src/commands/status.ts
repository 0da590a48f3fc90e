import { JSON_FLAG, oneLine, readLine, table } from '@svc/command-line'
import type { Command, CommandCall, Run, RunStep } from '@svc/core/contracts'
import { statusRecord, stepRecord } from '@svc/wire'
import { follow } from './follow.ts'
import { openRuns, useOf } from './ground.ts'
import { counted, FOLLOW_FLAG, shownMs, USAGE } from './line.ts'
import { waitText } from './words.ts'

const HEAD = ['STEP', 'TYPE', 'STATUS', 'TOOK', 'TRIES', '']

/** `svc workflows status <run>`: how it stands, step by step; `--follow` stays to its end, and works on it where nobody does. */
const status: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.status, { ...FOLLOW_FLAG, ...JSON_FLAG }, [1, 1])
  const [id = ''] = positionals
  const use = useOf(call, 'status')
  const workflows = await openRuns(call, use)
  if (values.follow) return follow(call, workflows, id, values)
  const [run, steps] = await Promise.all([workflows.get(id, use), workflows.steps(id, use)])
  if (values.json) call.print(JSON.stringify({ ...statusRecord(run), steps: steps.map(stepRecord) }))
  else tell(call, run, steps)
}

export default status

function tell({ print, note }: CommandCall, run: Run, steps: readonly RunStep[]): void {
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
