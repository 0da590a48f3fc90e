import { Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { howOf, tellBegun } from './begun.ts'
import { openRuns, openWorkflows, contextOf } from './ground.ts'
import { DETACH_FLAG, WORKFLOW_ARG } from './line.ts'
import { inputOf, parametersOf } from './values.ts'

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
    return tellBegun(this, workflows, begun, flags)
  }
}
