import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsSearch extends BaseCommand {
  static override summary = 'Search the registry for plugins'
  static override description =
    'Asks the registry that npm is set up with for packages with the keyword svc-plugin. Whoever publishes may say so: what a plugin asks for is shown before it is installed.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> weather',
    '<%= config.bin %> <%= command.id %> "postgres store" --json',
  ]
  static override args = { text: Args.string({ description: 'Words', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsSearch)
    const { searchRegistry } = await import('./change/search.ts')
    return searchRegistry({ text: args.text, ...flags })
  }
}
