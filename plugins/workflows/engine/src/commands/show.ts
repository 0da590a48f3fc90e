import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { infoRecord } from '@svc/api-types'
import { openWorkflows, contextOf } from './ground.ts'
import { WORKFLOW_ARG } from './line.ts'
import { placeOf, problemLines } from './validate.ts'

/** `svc workflows show <workflow>`: the definition as it is now, wherever it comes from. */
export class WorkflowsShow extends SvcCommand {
  static override summary = 'Show the definition of a workflow'
  static override examples = ['<%= config.bin %> <%= command.id %> release']
  static override args = WORKFLOW_ARG
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsShow)
    const { info, definition } = await (await openWorkflows(this)).show(args.workflow, contextOf(this, 'show'))
    if (flags.json) return this.print(JSON.stringify({ workflow: infoRecord(info), definition }))
    const { stringify } = await import('yaml')
    this.note(`from ${info.source}`)
    this.print(stringify(definition, { lineWidth: 120 }).trimEnd())
    for (const line of problemLines(placeOf(info, info.source), info.problems ?? [])) this.note(line)
  }
}
