import { Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class ToolsList extends SvcCommand {
  static override summary = 'List the tools'
  static override description =
    'Name, category, effects and the first line of the description of each tool: of the server that runs from this svc home or that --url or --port names; where none runs, of the configured plugins, started in this process. A server does not tell effects; --local does. Ends with 2 when there is no such category. SVC_API_KEY (an API key or a token) is sent where it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --category files --local',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
  ]
  static override flags = {
    category: Flags.string({ summary: 'Only the tools of this category', helpValue: '<name>' }),
    ...SERVER_FLAGS,
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(ToolsList)
    const { listTools } = await import('./tools/list.ts')
    return listTools(this, flags)
  }
}
