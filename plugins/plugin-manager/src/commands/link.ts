import { Args, BaseCommand } from '@svc/cli/command'
import { changeFlags, placeFlags } from './flags.ts'

export class PluginsLink extends BaseCommand {
  static override summary = 'Use a plugin where it lies, while you work on it'
  static override description =
    'The folder stays where it is and is not verified: what is saved in it is what runs after the next reload, at once with `svc serve --watch`. Its dependencies are those that are installed in it.'
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
