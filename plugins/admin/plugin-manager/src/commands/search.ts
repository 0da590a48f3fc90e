import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsSearch extends BaseCommand {
  static override summary = 'Search the registry for plugins'
  static override description =
    'Searches the registry of npm for packages with the keyword svc-plugin. Any package can use this keyword. `svc plugins install` shows the permissions of a plugin before it installs anything.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> weather',
    '<%= config.bin %> <%= command.id %> "postgres store" --json',
  ]
  static override args = { text: Args.string({ description: 'Words to search for', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsSearch)
    const { searchRegistry } = await import('./change/search.ts')
    return searchRegistry({ text: args.text, ...flags })
  }
}
