import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { Plugins } from './plugins.ts'

export class PluginsList extends BaseCommand {
  static override summary = 'List the plugins with their origin and state'
  static override description =
    'Lists installed, linked, configured and failed plugins: where each comes from, where its code runs, and its state (running, restarting, quarantined, failed, disabled). Plugins that come with svc are only counted, except with --all or --json. Names select plugins, including those of svc. Exits with 1 when a plugin failed, or when no plugin matches.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> weather "svc-plugin-t*"',
    '<%= config.bin %> <%= command.id %> --all',
    '<%= config.bin %> <%= command.id %> --json',
  ]
  static override args = {
    names: Args.string({ description: 'Part of a name, or a pattern with *; default: all', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...Plugins.flags, all: Flags.boolean({ summary: 'Include the plugins that come with svc' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsList)
    const { listPlugins } = await import('./report/list.ts')
    return listPlugins({ ...flags, names: args.names ?? [] })
  }
}
