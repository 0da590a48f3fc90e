import { Args, Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class ToolsShow extends SvcCommand {
  static override summary = 'Show what a tool does and takes'
  static override description =
    'Its description, its parameters as a table, its category; of a host in this process also its effects, its time-out, whether it asks, and with --json the schema of its arguments: a server does not tell these. Ends with 2 when there is no such tool.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> read_file',
    '<%= config.bin %> <%= command.id %> read_file --local --json',
  ]
  static override args = { name: Args.string({ description: 'Name of the tool', required: true, ignoreStdin: true }) }
  static override flags = { ...SERVER_FLAGS, json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ToolsShow)
    const { showTool } = await import('./tools/list.ts')
    return showTool(this, { ...flags, name: args.name })
  }
}
