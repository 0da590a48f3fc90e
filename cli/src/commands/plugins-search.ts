import { Args, Command, Flags } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'

export class PluginsSearch extends Command {
  static override summary = SUMMARIES['plugins:search']
  static override description =
    'Asks the registry that npm is set up with for packages with the keyword svc-plugin. Whoever publishes may say so: what a plugin asks for is shown before it is installed.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> weather',
    '<%= config.bin %> <%= command.id %> "postgres store" --json',
  ]
  static override args = { text: Args.string({ description: 'Words', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsSearch)
    const { searchRegistry } = await import('../plugins/search.ts')
    process.exitCode = await searchRegistry({ text: args.text, ...flags })
  }
}
