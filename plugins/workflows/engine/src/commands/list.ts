import { oneLine, table } from '@svc/plugin-kit'
import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { infoRecord } from '@svc/api-types'
import { openWorkflows, contextOf } from './ground.ts'
import { counted } from './line.ts'

const HEAD = ['NAME', 'NODES', 'FROM', 'DESCRIPTION']

/** `svc workflows list`: those of plugins, and the files below the roots. */
export class WorkflowsList extends SvcCommand {
  static override summary = 'List workflows'
  static override description = 'Those of plugins, and the files below workflows.roots and <svc home>/workflows.'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(WorkflowsList)
    const all = await (await openWorkflows(this)).list(contextOf(this, 'list'))
    if (flags.json) return this.print(JSON.stringify({ workflows: all.map(infoRecord) }))
    if (all.length === 0) return this.note('there are no workflows; write one into a folder of workflows.roots')
    const rows = all.map(({ name, nodes, source, description = '', problems = [] }) => {
      const wrong = `cannot run: ${counted(problems.length, 'problem')}, svc workflows validate ${name}`
      return [name, problems.length > 0 ? '-' : String(nodes), source, problems.length > 0 ? wrong : oneLine(description)]
    })
    for (const line of table([HEAD, ...rows])) this.print(line)
  }
}
