import { Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { mcpServeFlags, optionsOf } from './shared-flags.ts'

const FLAGS = mcpServeFlags()

export class McpServe extends Command {
  static override summary = SUMMARIES['mcp:serve']
  static override description =
    'Publishes the tools as `svc serve --mcp` does, but neither chat nor the rest of the API: /mcp, /tools, /health and /metrics. With --stdio a single process serves the client at its standard input and output, and ends with it.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --port 9001 --tools read_file,search_text',
    '<%= config.bin %> <%= command.id %> --stdio',
  ]
  static override flags = FLAGS

  async run(): Promise<void> {
    const { flags } = await this.parse(McpServe)
    const { runServe } = await import('../serve-command.ts')
    await runServe({ ...optionsOf(flags, Object.keys(FLAGS)), surface: 'mcp' })
  }
}
