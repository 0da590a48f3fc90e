import { Args, Command, Flags } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { SERVER_FLAGS } from '../command/flags.ts'

export class ToolsShow extends Command {
  static override summary = SUMMARIES['tools:show']
  static override description =
    'Its description, its parameters as a table, its category; of a host in this process also its effects, its time-out, whether it asks, and with --json the schema of its arguments: a server does not tell these. Ends with 2 when there is no such tool.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> read_file',
    '<%= config.bin %> <%= command.id %> read_file --local --json',
  ]
  static override args = { name: Args.string({ description: 'Name of the tool', required: true, ignoreStdin: true }) }
  static override flags = { ...SERVER_FLAGS, json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ToolsShow)
    const { showTool } = await import('../tools-list.ts')
    process.exitCode = await showTool({ ...flags, name: args.name })
  }
}
