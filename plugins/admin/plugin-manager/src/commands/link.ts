import { Args, BaseCommand } from '@svc/cli/command'
import { changeFlags, placeFlags } from './flags.ts'

export class PluginsLink extends BaseCommand {
  static override summary = 'Link a local plugin for development'
  static override description =
    'Loads the plugin from its folder, without verification of its files. A saved change takes effect at the next reload, or immediately with `svc serve --watch`. The plugin uses the dependencies installed in its folder.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./weather',
    '<%= config.bin %> <%= command.id %> ~/weather --yes --json',
  ]
  static override args = { folder: Args.string({ description: 'Folder of a plugin', required: true, ignoreStdin: true }) }
  static override flags = { ...changeFlags, ...placeFlags }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsLink)
    const { linkPlugin } = await import('./change/install.ts')
    const { 'dry-run': dryRun, ...rest } = flags
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(linkPlugin({ folder: args.folder, dryRun, ...rest }))
  }
}
