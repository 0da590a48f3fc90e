import { Args, Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { changeFlags, placeFlags } from './plugins-flags.ts'

export class PluginsLink extends Command {
  static override summary = SUMMARIES['plugins:link']
  static override description =
    'The folder stays where it is and is not verified: what is saved in it is what runs after the next reload, at once with `svc serve --watch`. Its dependencies are those that are installed in it.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./weather',
    '<%= config.bin %> <%= command.id %> ~/weather --yes --json',
  ]
  static override args = { folder: Args.string({ description: 'Folder of a plugin', required: true, ignoreStdin: true }) }
  static override flags = { ...changeFlags, ...placeFlags }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsLink)
    const { linkPlugin } = await import('../plugins/install.ts')
    const { 'dry-run': dryRun, ...rest } = flags
    const { withCompletion } = await import('../completion.ts')
    process.exitCode = await withCompletion(linkPlugin({ folder: args.folder, dryRun, ...rest }))
  }
}
