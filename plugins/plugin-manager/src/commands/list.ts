import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { Plugins } from './plugins.ts'

export class PluginsList extends BaseCommand {
  static override summary = 'List the plugins: where each came from, and how it is'
  static override description =
    'Those that were installed, linked or configured, and what failed: where each came from, where its code runs and how it is (running, restarting, quarantined, failed, disabled). Those that come with svc are counted; --all shows them too, --json always has them. With names, only plugins that have such a name, of svc too. Ends with 1 when one failed, or none has such a name.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> weather "svc-plugin-t*"',
    '<%= config.bin %> <%= command.id %> --all',
    '<%= config.bin %> <%= command.id %> --json',
  ]
  static override args = {
    names: Args.string({ description: 'Parts of names, or patterns with *; default: all', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...Plugins.flags, all: Flags.boolean({ summary: 'Those that come with svc, too' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsList)
    const { listPlugins } = await import('./report/list.ts')
    return listPlugins({ ...flags, names: args.names ?? [] })
  }
}
