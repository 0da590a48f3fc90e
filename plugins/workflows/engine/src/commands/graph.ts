import { lineInvalid } from '@svc/plugin-kit'
import { writeFile } from 'node:fs/promises'
import { messageOf } from '@svc/core'
import { Flags, SvcCommand } from '@svc/cli/command'
import { openWorkflows, contextOf } from './ground.ts'
import { counted, WORKFLOW_ARG } from './line.ts'

/** `svc workflows graph <workflow>`: on the terminal, or as SVG into a file. */
export class WorkflowsGraph extends SvcCommand {
  static override summary = 'Draw a workflow'
  static override description =
    'Draws a definition with problems as it is; the standard error says how many it has, and `svc workflows validate` shows them.'
  static override examples = ['<%= config.bin %> <%= command.id %> release --svg release.svg']
  static override args = WORKFLOW_ARG
  static override flags = {
    svg: Flags.string({ summary: 'Write SVG into a file; - is the standard output', helpValue: '<file>' }),
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsGraph)
    const { definition, info } = await (await openWorkflows(this)).show(args.workflow, contextOf(this, 'graph'))
    const problems = info.problems?.length ?? 0
    if (problems > 0) this.note(`the definition has ${counted(problems, 'fault')}: svc workflows validate ${args.workflow}`)
    const { drawSvg, drawTerminal } = await import('@svc/workflow-lang')
    if (flags.svg === undefined || flags.svg === '-')
      return this.print(flags.svg ? drawSvg(definition) : drawTerminal(definition))
    await writeFile(flags.svg, drawSvg(definition)).catch((error: unknown) => {
      throw lineInvalid(`--svg cannot be written: ${messageOf(error)}`, 'workflows graph <workflow> [--svg <file>]')
    })
    this.note(`drawn to ${flags.svg}`)
  }
}
