import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { statusRecord } from '@svc/api-types'
import { openRuns, contextOf } from './ground.ts'
import { RUN_ARG } from './line.ts'

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
