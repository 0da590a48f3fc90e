import { Args, Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { changeFlags, offlineFlag, placeFlags } from './plugins-flags.ts'

export class PluginsUpdate extends Command {
  static override summary = SUMMARIES['plugins:update']
  static override description =
    'Each is asked for again as it was installed: the newest of its range, or its folder or tarball as it is now; a link is left alone. Shows what it asks for now and did not before, and asks you again. An older version is taken by `svc plugins install name@version`.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --dry-run',
    '<%= config.bin %> <%= command.id %> --yes --json',
  ]
  static override args = {
    names: Args.string({ description: 'Names of installed plugins; default: all', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...changeFlags, ...offlineFlag, ...placeFlags }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsUpdate)
    const { updatePlugins } = await import('../plugins/update.ts')
    const { 'dry-run': dryRun, ...rest } = flags
    const { withCompletion } = await import('../completion.ts')
    process.exitCode = await withCompletion(updatePlugins({ names: args.names ?? [], dryRun, ...rest }))
  }
}
