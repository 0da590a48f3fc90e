import { JSON_FLAG, lineInvalid, oneLine, readLine, table } from '@svc/command-line'
import type { Command, Run, RunStatus } from '@svc/core/contracts'
import { runRecord } from '@svc/wire'
import { openRuns, useOf } from './ground.ts'
import { shownMs, USAGE } from './line.ts'

const OPTIONS = {
  workflow: { type: 'string' },
  status: { type: 'string' },
  limit: { type: 'string', default: '20' },
  ...JSON_FLAG,
} as const
const HEAD = ['RUN', 'WORKFLOW', 'STATUS', 'BEGAN', 'TOOK', '']
const MOST = 200

/** `svc workflows runs`: the newest first. */
const runs: Command = async call => {
  const { values } = readLine(call.args, USAGE.runs, OPTIONS, [0, 0])
  const { workflow } = values
  const status = statusOf(values.status)
  const limit = limitOf(values.limit)
  const use = useOf(call, 'runs')
  const page = await (await openRuns(call, use)).runs(
    { limit, ...(workflow === undefined ? {} : { workflow }), ...(status === undefined ? {} : { status }) },
    use
  )
  if (values.json) return call.print(JSON.stringify({ runs: page.runs.map(runRecord) }))
  if (page.runs.length === 0) return call.note('there are no such runs')
  for (const line of table([HEAD, ...page.runs.map(cells)])) call.print(line)
  if (page.next !== undefined) call.note(`there are more: --limit, at most ${MOST}`)
}

export default runs

const STATUSES: readonly string[] = ['running', 'completed', 'failed'] satisfies readonly RunStatus[]
const isStatus = (word: string): word is RunStatus => STATUSES.includes(word)

function statusOf(given: string | undefined): RunStatus | undefined {
  if (given === undefined || isStatus(given)) return given
  throw lineInvalid(`--status must be one of ${STATUSES.join(', ')}, was "${given}"`, USAGE.runs)
}

function limitOf(given: string): number {
  const limit = Number(given)
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST) return limit
  throw lineInvalid(`--limit must be 1 to ${MOST}, was "${given}"`, USAGE.runs)
}

function cells({ id, workflow, status, createdAt, executionMs, waiting, error }: Run): string[] {
  const waits = waiting.map(one => one.step).join(', ')
  const more = error ? `${error.code}: ${oneLine(error.message, 60)}` : waits && `waits at ${waits}`
  return [id, workflow, status, new Date(createdAt).toISOString(), shownMs(executionMs), more]
}
