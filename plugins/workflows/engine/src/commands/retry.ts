import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { howOf, tellBegun } from './begun.ts'
import { openRuns, contextOf } from './ground.ts'
import { DETACH_FLAG, RUN_ARG } from './line.ts'

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
    return tellBegun(this, workflows, begun, flags)
  }
}
