import { oneLine, table } from '@svc/plugin-kit'
import type { Run, RunStatus } from '@svc/core/contracts'
import { Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { runRecord } from '@svc/api-types'
import { openRuns, contextOf } from './ground.ts'
import { shownMs } from './line.ts'

const HEAD = ['RUN', 'WORKFLOW', 'STATUS', 'BEGAN', 'TOOK', '']
const MOST = 200
const STATUSES = ['running', 'completed', 'failed'] as const satisfies readonly RunStatus[]

/** `svc workflows runs`: the newest first. */
export class WorkflowsRuns extends SvcCommand {
  static override summary = 'List runs, the newest first'
  static override examples = ['<%= config.bin %> <%= command.id %> --workflow release --status failed']
  static override flags = {
    workflow: Flags.string({ summary: 'Only runs of this workflow', helpValue: '<name>' }),
    status: Flags.option({ summary: 'Only runs with this status', options: STATUSES })(),
    limit: Flags.integer({
      summary: `Maximum number of runs, at most ${MOST}`,
      helpValue: '<int>',
      default: 20,
      min: 1,
      max: MOST,
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
    for (const line of table([HEAD, ...page.runs.map(cells)])) this.print(line)
    if (page.next !== undefined) this.note(`there are more: --limit, at most ${MOST}`)
  }
}

function cells({ id, workflow, status, createdAt, executionMs, waiting, error }: Run): string[] {
  const waits = waiting.map(one => one.step).join(', ')
  const more = error ? `${error.code}: ${oneLine(error.message, 60)}` : waits && `waits at ${waits}`
  return [id, workflow, status, new Date(createdAt).toISOString(), shownMs(executionMs), more]
}
