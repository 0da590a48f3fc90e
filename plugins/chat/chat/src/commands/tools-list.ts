import { Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class ToolsList extends SvcCommand {
  static override summary = 'List the tools'
  static override description =
    'Lists name, category, effects and a short description of each tool. The tools come from the running server of this svc home, or from the server of --url or --port. If no server runs, the command starts the configured plugins in its own process. A server does not report effects; --local does. Exits with 2 if the category does not exist. The command sends SVC_API_KEY (an API key or a token) if it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --category files --local',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
  ]
  static override flags = {
    category: Flags.string({ summary: 'List only the tools of this category', helpValue: '<name>' }),
    ...SERVER_FLAGS,
    json: Flags.boolean({ summary: 'Print a JSON object' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(ToolsList)
    const { listTools } = await import('./tools/list.ts')
    return listTools(this, flags)
  }
}
