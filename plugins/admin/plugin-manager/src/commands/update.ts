import { Args, BaseCommand } from '@svc/cli/command'
import { changeFlags, offlineFlag, placeFlags } from './flags.ts'

export class PluginsUpdate extends BaseCommand {
  static override summary = 'Update installed plugins'
  static override description =
    'Installs the newest version in the range of each plugin, or its folder or tarball in its present state. Linked plugins stay as they are. Shows new permissions and asks you again. To install an older version, run `svc plugins install name@version`.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --dry-run',
    '<%= config.bin %> <%= command.id %> --yes --json',
  ]
  static override args = {
    names: Args.string({ description: 'Names of installed plugins; default: all', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...changeFlags, ...offlineFlag, ...placeFlags }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsUpdate)
    const { updatePlugins } = await import('./change/update.ts')
    const { 'dry-run': dryRun, ...rest } = flags
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(updatePlugins({ names: args.names ?? [], dryRun, ...rest }))
  }
}
