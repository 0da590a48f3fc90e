import { Args, Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class ToolsShow extends SvcCommand {
  static override summary = 'Show the description and parameters of a tool'
  static override description =
    'Shows description, parameters and category of a tool. With --local, also shows effects, time limit and whether the tool requires approval, and with --json the schema of its arguments; a server does not report these. Exits with 2 if the tool does not exist.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> read_file',
    '<%= config.bin %> <%= command.id %> read_file --local --json',
  ]
  static override args = { name: Args.string({ description: 'Name of the tool', required: true, ignoreStdin: true }) }
  static override flags = { ...SERVER_FLAGS, json: Flags.boolean({ summary: 'Print a JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ToolsShow)
    const { showTool } = await import('./tools/list.ts')
    return showTool(this, { ...flags, name: args.name })
  }
}
